// What a caller asks for, checked and resolved.
#pragma once

#include <memory>
#include <vector>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/communicator/descriptor.hpp"
#include "libgccl/communicator/recovery/members.hpp"
#include "libgccl/transports/fast_path.hpp"

namespace gccl {

// The caller's arrays of a v-collective, as Call::table. Arrays stay the caller's.
struct Lengths {
  Rank me = 0;
  const std::size_t *send_counts = nullptr, *send_places = nullptr;
  const std::size_t *recv_counts = nullptr, *recv_places = nullptr;
  std::vector<std::size_t> packed_send, packed_recv;  // places where the caller gave none
};

struct Work {
  Descriptor what;
  Elements elements;
  Call call{};
  Buffers memory;
  std::unique_ptr<Lengths> lengths;      // of v-collectives; call.table points to it
  const Algorithm* algorithm = nullptr;  // asked for, with its slicing; null: the communicator chooses
  Slicing slicing{};
  bool blocking = false;        // its caller waits for it from its start on, and for nothing else
  bool to_first_block = false;  // reduce_scatter in place: the result moves to the front at the end

  // For another run of the call. Requires that it has no lengths.
  Work without_lengths() const;
  // What is left to do once all messages have come.
  void conclude(const Members& members);
};

}  // namespace gccl
