// How a communicator's calls are carried out: a plan for each shape of call, made when it first comes, and kept.
#pragma once

#include <memory>

#include "libgccl/communicator/prepared_plan.hpp"
#include "libgccl/communicator/setting.hpp"
#include "libgccl/communicator/work.hpp"
#include "libgccl/transports/open_transports.hpp"

namespace gccl {

// One thread at a time.
class Plans {
 public:
  // All of them outlive it.
  Plans(Rank rank, const Ports& ports, const TransportModels& models, const Authorities& authorities)
      : rank_(rank),
        fast_(ports.fast_path()),
        asked_(authorities),
        setting_{.models = &models,
                 .in_memory = ports.in_memory(),
                 .oversubscribed = ports.oversubscribed(),
                 .cost_model = ports.cost_model()} {}

  // Another opinion on which ranks are near each other. What was planned before is forgotten.
  void use(Layout layout) {
    layout_ = std::move(layout);
    set();
    authorities_ = asked_.on(setting_.first.all.size, setting_.first.nodes);
  }
  // From now on calls are planned around these pairs; the same on every rank, and while no schedule is carried out.
  // Plans that were made before are of an earlier epoch, and not to be used any more.
  void avoid(std::vector<SlowPair> pairs) {
    slow_ = std::move(pairs);
    set();
  }
  std::uint32_t epoch() const { return epoch_; }
  const Layout& layout() const { return layout_; }
  const View& view() const { return setting_.view; }
  const Authorities& authorities() const { return authorities_; }

  // What one link is expected to carry, in bytes a second: by the cost model, if that is not the compiled-in one, which
  // knows nothing of these machines; else 0.
  double link_rate() const;

  // *made says whether it was made just now.
  std::shared_ptr<PreparedPlan> of(const Work& work, bool* made);
  Plan planned(const Call& call, std::uint32_t element_bytes);
  // With what it would take, where the algorithm has a closed form.
  Plan estimated(Collective kind, Count count, std::uint32_t element_bytes);

 private:
  void set();
  std::shared_ptr<PreparedPlan> prepare(const Work& work);

  const Rank rank_;
  FastPath* const fast_;
  const Authorities& asked_;
  Authorities authorities_;  // the same, for this communicator
  Layout layout_;
  Setting setting_;
  std::vector<SlowPair> slow_;
  Detours detours_;
  std::uint32_t epoch_ = 0;
  PlanCache kept_;
};

}  // namespace gccl
