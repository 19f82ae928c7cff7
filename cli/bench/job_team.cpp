#include "cli/bench/job_team.hpp"

#include <algorithm>

#include "cli/bench/job.hpp"

namespace gccl::bench {
namespace {

class JobTeam : public Team {
 public:
  JobTeam(std::shared_ptr<void> kept, std::unique_ptr<Job> job) : kept_(std::move(kept)), job_(std::move(job)) {}

  Rank rank() const override { return job_->rank(); }
  Rank ranks() const override { return job_->ranks(); }
  Rank ranks_here() const override {
    const auto& nodes = job_->nodes();
    return Rank(std::count(nodes.begin(), nodes.end(), nodes[rank()]));
  }

  std::vector<std::string> gather(const std::string& mine) override {
    job_->barrier_asleep();
    std::vector<std::string> all(ranks());
    all[rank()] = mine;
    for (Rank r = 0; r < ranks(); ++r) job_->share(all[r], r);
    return all;
  }

 private:
  std::shared_ptr<void> kept_;
  std::unique_ptr<Job> job_;
};

}  // namespace

Team* meet_team(const GCCL_Config& config, const char* command, std::shared_ptr<void> kept, std::string* error) {
  std::unique_ptr<Job> job;
  if (const Status s = Job::meet(config, command, &job); !s.ok()) {
    *error = s.text();
    return nullptr;
  }
  return new JobTeam(std::move(kept), std::move(job));
}

}  // namespace gccl::bench
