// The sends of one link: cut into frames, written over its streams.
#pragma once

#include <memory>
#include <vector>

#include "libgccl/transports/tcp/data/completions.hpp"
#include "libgccl/transports/tcp/data/numbered_queue.hpp"
#include "libgccl/transports/tcp/data/stream.hpp"

namespace gccl::tcp {

using Streams = std::vector<std::unique_ptr<Stream>>;  // null where not connected yet

class Outgoing {
 public:
  // With several streams, messages longer than this are cut so that every stream that can take more gets more.
  static constexpr std::uint64_t kStripeBytes = 256 << 10;

  void post(GCCL_Transfer* t);
  bool empty() const { return queue_.empty(); }
  const GCCL_Transfer* front() const { return queue_.front(); }
  // Writes what the sockets take, one visit to each; complete sends go to `done`. False: a connection failed, *error is
  // the errno.
  bool advance(Streams& streams, Completions* done, int* error);
  // False when the transfer is not one of these. Resets the streams that still hold parts of it.
  bool cancel(Streams& streams, GCCL_Transfer* t);

 private:
  bool assign(Stream* stream, bool first_stream, bool alone);
  void finish(GCCL_Transfer* t, Completions* done);

  NumberedQueue queue_;
  GCCL_Transfer* assigning_ = nullptr;  // first in queue_ with payload not yet given to a stream
};

}  // namespace gccl::tcp
