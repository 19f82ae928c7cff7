// One call in flight on one communicator, from its start to the moment its caller has it back.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "libgccl/communicator/failure.hpp"
#include "libgccl/communicator/flow.hpp"
#include "libgccl/communicator/links/link_watch.hpp"
#include "libgccl/communicator/prepared_plan.hpp"
#include "libgccl/communicator/watch/comparison.hpp"
#include "libgccl/communicator/watch/stall.hpp"
#include "libgccl/transports/fast_path.hpp"

namespace gccl {

class CommunicatorCore;

// A function of GCCL_On_complete, and what calls it.
struct Completion {
  using Caller = void (*)(GCCL_Completion_function function, GCCL_Result result, void* context);
  GCCL_Completion_function function;
  void* context;
  Caller call;
};

inline constexpr std::uint64_t kPointToPointCookie = ~std::uint64_t(0);  // of transfers that are no Flow's

struct Operation {
  explicit Operation(CommunicatorCore& c) : communicator(&c) {}

  // pending: the communicator has it. completing: it has ended, and functions of GCCL_On_complete are due or running.
  // complete: it is its caller's alone.
  enum class Stage : std::uint8_t { pending, completing, complete };
  std::atomic<Stage> stage{Stage::pending};

  CommunicatorCore* communicator;  // gone, perhaps, once the operation has ended
  Work work;
  std::shared_ptr<PreparedPlan> plan;
  bool started = false, replaying = false;
  Replay replay;
  std::optional<Flow> flow;
  GCCL_Transfer transfer{};        // point to point
  bool transferring = false;       // it is with a port
  std::uint32_t message = 0;       // of those to or from that rank the how manyth
  std::int64_t started_ns = 0;     // in flight since then
  std::int64_t begun_ns = 0;       // a collective: carried out since then; 0: it waits for those before it
  std::int64_t timed_from_ns = 0;  // 0: not timed
  Stall stall;                     // looked at while it is the first in flight

  std::unique_ptr<Comparison> comparison;  // what the operation gathers, where it is no call of the user's
  std::optional<Descriptor> checked;       // by GCCL_CHECK: the call that it precedes, or was

  std::unique_ptr<LinkExchange> exchange;  // likewise
  bool counted = false;                    // by the LinkWatch
  // No call of the user's.
  bool internal() const { return comparison || exchange; }

  // It gathers this: the work becomes the comparison's.
  void compare(Comparison&& c, const Members& members) {
    comparison = std::make_unique<Comparison>(std::move(c));
    work = comparison->work(members);
  }
  // What it is, in words.
  std::string text() const;
  // Before its work is carried out another time.
  void start_again() {
    started = replaying = false;
    flow.reset();
    plan.reset();
  }
  // Steps or messages done so far: as long as that changes, nothing stalls.
  std::uint64_t moved() const;
  // For whom the operation waits, its own rank where that is not known, and for what, in words; *receives: for a
  // message.
  std::string awaited(Rank* peer, bool* receives = nullptr) const;
  // After Flow::settle() or completed() has returned false.
  Status flow_failure(const Members& members) const;

  Status status;
  Failure::Said said;  // where it has failed: whether a call has returned why
  // How it ended, for a caller who learns it so.
  Status hand_out() noexcept {
    if (said) said->store(true, std::memory_order_relaxed);
    return status.copy_or_code();
  }
  bool blocking = false;  // a thread does nothing else until it has ended
  bool given_up = false;  // nobody will wait: deleted instead of becoming complete
  std::vector<Completion> functions;
  // Point to point, while it is in flight (transfers.hpp):
  Operation* earlier = nullptr;
  Operation* later = nullptr;
  // While completing (completions.cpp):
  Operation* next_completing = nullptr;
  bool running = false;
};

}  // namespace gccl
