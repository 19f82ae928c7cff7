// One call under way on one communicator, from its start to the moment its caller has been told.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "libgccl/communicator/descriptor.hpp"
#include "libgccl/communicator/flow.hpp"
#include "libgccl/communicator/prepared_plan.hpp"
#include "libgccl/transports/fast_path.hpp"

namespace gccl {

class Communicator;

inline constexpr std::uint64_t kPointToPointCookie = ~std::uint64_t(0);  // of transfers that are no Flow's
inline constexpr std::size_t kTimedBytes =
    64 * 1024;  // calls from here on are all timed; of smaller ones each sixteenth

// The caller's arrays of a v-collective, as Call::table. Arrays stay the caller's.
struct Lengths {
  Rank me = 0;
  const std::size_t *send_counts = nullptr, *send_places = nullptr;
  const std::size_t *recv_counts = nullptr, *recv_places = nullptr;
  std::vector<std::size_t> packed_send, packed_recv;  // places where the caller gave none
};

// What a caller asks for, checked and resolved.
struct Work {
  Descriptor what;
  Elements elements;
  Call call{};
  Buffers memory;
  std::unique_ptr<Lengths> lengths;      // of v-collectives; call.table points to it
  const Algorithm* algorithm = nullptr;  // asked for, with its slicing; null: the communicator chooses
  Slicing slicing{};
  bool to_first_block = false;  // reduce_scatter in place: the result moves to the front at the end
};

struct Operation {
  explicit Operation(Communicator& c) : communicator(&c) {}

  // under_way: the communicator has it. telling: it has ended, and functions of GCCL_On_complete are due or running.
  // complete: it is its caller's alone.
  enum class Stage : std::uint8_t { under_way, telling, complete };
  std::atomic<Stage> stage{Stage::under_way};

  Communicator* communicator;  // gone, perhaps, once the operation has ended
  Work work;
  std::shared_ptr<PreparedPlan> plan;
  bool started = false, replaying = false;
  Replay replay;
  std::optional<Flow> flow;
  GCCL_Transfer transfer{};   // point to point
  bool transferring = false;  // it is with a port
  std::int64_t started_ns = 0;
  std::int64_t timed_from_ns = 0;  // 0: not timed

  // What this operation is there to compare. For GCCL_CHECK the descriptions of the call that follows in the queue, or
  // what the other ranks send to this one in it; before a communicator is freed the digests of all calls, and where
  // these differ the latest calls.
  enum class Checks : std::uint8_t { nothing, descriptions, lengths, digests, histories };
  Checks checks = Checks::nothing;
  std::vector<std::uint64_t> check_mine, check_all, check_due;

  Status status;
  bool given_up = false;  // nobody will wait: deleted instead of becoming complete
  std::vector<std::pair<GCCL_Completion_function, void*>> functions;
  // While telling (completions.cpp):
  Operation* next_telling = nullptr;
  bool running = false;
};

}  // namespace gccl
