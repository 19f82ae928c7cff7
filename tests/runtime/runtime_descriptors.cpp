// Ranks that may open nothing more agree and shrink, or say why not, and nobody waits for them.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

void limit_descriptors(rlim_t count) {
  rlimit limit{};
  RANK_CHECK(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = count;
  RANK_CHECK(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

}  // namespace

// Over one transport alone nothing is dialled in shrinking, and the first call of the new communicator ends with an
// error.
TEST_CASE("ranks agree and shrink where one may open nothing more, or all are told why not") {
  std::vector<std::unique_ptr<Running>> jobs;
  std::vector<std::string> names;
  for (Job job : transports(3))
    for (const int victim : {1, 2}) {
      job.environment["GCCL_START_TIMEOUT_MS"] = "1600";
      names.push_back(describe(job) + ", rank " + std::to_string(victim));
      jobs.push_back(std::make_unique<Running>(job, [victim](int rank) {
        GCCL_Comm world = begin(), smaller = GCCL_COMM_NULL;
        RANK_SUCCESS(GCCL_Barrier(world));
        if (rank == victim) limit_descriptors(3);
        const auto began = Clock::now();
        std::uint64_t flags = 7;
        RANK_SUCCESS(GCCL_Comm_agree(world, &flags));
        RANK_CHECK(flags == 7);
        if (GCCL_Comm_shrink(world, &smaller) != GCCL_SUCCESS) expect_text("rank", "who");
        if (smaller && GCCL_Barrier(smaller) != GCCL_SUCCESS) expect_text("lost rank", "who");
        RANK_CHECK(seconds_since(began) < 8);
        std::fflush(stdout);
        ::_exit(any_reported());
      }));
    }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const std::vector<End> ends = jobs[i]->wait();
    for (const End& end : ends) CHECK_MESSAGE(end.good(), names[i] << "\n" << texts(ends));
  }
}
