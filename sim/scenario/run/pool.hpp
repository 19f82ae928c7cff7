// Runs independent jobs in forked children, several at once: SimGrid allows one platform in a process, memory is
// measured for each job, and a crash costs one job. The simulator itself has no thread and no lock.
#pragma once

#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace gccl::sim {

// Set it (from a signal handler, say) and a pool that runs kills its children and throws Interrupted.
using StopFlag = std::atomic<bool>;

struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

// A job that threw, crashed or was killed.
struct JobFailed : std::runtime_error {
  enum class Blame : char { program = 'e', input = 'i', machine = 'm' };  // see WorkloadError, SystemRefused

  JobFailed(std::size_t j, const std::string& why, Blame b = Blame::program)
      : std::runtime_error(why), job(j), blame(b) {}
  // Throws it with another number and text, or as what the machine refused.
  [[noreturn]] void rethrow(std::size_t number, const std::string& text) const;

  std::size_t job;
  Blame blame;
};

struct PoolOptions {
  unsigned children = 1;  // at once
  // Called in the parent after each job with its result and the number done; may be empty.
  std::function<void(std::size_t job, const std::string& result, std::size_t done)> finished;
  // Called for a job that fails where its input is not to blame: it has no result, and the others go on. Empty: they
  // do not.
  std::function<void(const JobFailed& why)> failed = {};
  const StopFlag* stop = nullptr;
};

// results[j] = job(j) for each j in `order`, which holds 0 .. order.size()-1 in any order; jobs start in this order.
// Each job runs in a child of its own: it sees memory as it is now, changes to it are lost, and it may crash. Children
// end with their parent. Throws JobFailed at the first job that fails, unless options.failed takes it, and Interrupted,
// in both cases without any child left. Needs a process without other threads.
std::vector<std::string> run_pool(const std::vector<std::size_t>& order,
                                  const std::function<std::string(std::size_t)>& job, const PoolOptions& options);

}  // namespace gccl::sim
