// Points are played in children of the program: their order, their ends, and what stops them.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <stdexcept>

#include "libgccl/base/system_refused.hpp"
#include "tests/scenario/stand_ins.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

Outcome crash(const Workload&) {
  raise(SIGSEGV);
  return {};
}
Outcome killed(const Workload&) {
  raise(SIGKILL);
  return {};
}
Outcome stuck(const Workload&) { throw std::runtime_error("rank 3 waits for rank 4"); }
Outcome out_of_memory(const Workload&) { throw std::bad_alloc(); }
Outcome endless(const Workload&) {
  for (;;) pause();
}

}  // namespace

TEST_CASE("a job that crashes, throws or runs out of memory is named") {
  const Campaign plan = plan_of(with(kRing, {{"algorithms", {"ring", "swing"}}}));
  const auto failure = [&](Outcome (*engine)(const Workload&)) -> std::string {
    try {
      result_of(plan, {engine, engine});
    } catch (const JobFailed& e) {
      return e.what();
    } catch (const SystemRefused& e) {
      return std::string("refused: ") + e.what();
    }
    return "none";
  };
  CHECK(failure(crash).find("allreduce ") == 0);
  CHECK(failure(crash).find("(model): ended by signal 11 ") != std::string::npos);
  CHECK(failure(stuck).ends_with("(model): rank 3 waits for rank 4"));
  const std::string refused = failure(out_of_memory);
  CHECK(refused.starts_with("refused: allreduce "));
  CHECK(refused.ends_with("(model): out of memory"));
  CHECK(failure(killed).starts_with("refused: allreduce "));
  CHECK(failure(killed).ends_with("(Killed): probably out of memory"));
}

TEST_CASE("a stopped pool leaves no child") {
  static StopFlag stop{false};
  stop = false;
  signal(SIGALRM, [](int) { stop = true; });
  alarm(1);
  const Campaign plan = plan_of(with(kRing, {{"algorithms", {"ring", "swing"}}}));
  CHECK_THROWS_AS(run_campaign(plan, {endless, endless}, {.jobs = 2, .progress = {}, .stop = &stop}), Interrupted);
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);  // no child left, not even a dead one
}

TEST_CASE("where somebody takes failed jobs the others go on") {
  std::vector<std::size_t> failed;
  const auto results = run_pool({0, 1, 2},
                                [](std::size_t j) {
                                  if (j == 1) raise(SIGKILL);
                                  return std::to_string(j);
                                },
                                {.children = 2, .finished = {}, .failed = [&](const JobFailed& e) {
                                   failed.push_back(e.job);
                                   CHECK(std::string(e.what()).find("signal 9") != std::string::npos);
                                 }});
  CHECK(results == std::vector<std::string>{"0", "", "2"});
  CHECK(failed == std::vector<std::size_t>{1});
}

TEST_CASE("jobs run in the order asked for and answer in theirs, whatever they send") {
  const std::string large(3 << 20, 'x');
  const auto results = run_pool({2, 0, 1},
                                [&](std::size_t j) {
                                  return j == 1 ? large : j == 2 ? std::string() : std::string("e\0r", 3);
                                },
                                {.children = 2, .finished = {}});
  CHECK(results == std::vector<std::string>{std::string("e\0r", 3), large, ""});
  CHECK(run_pool({}, [](std::size_t) { return std::string(); }, {.children = 1, .finished = {}}).empty());
}
