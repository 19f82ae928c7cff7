// The sends of one link: cut into frames, written over its streams.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libgccl/transports/tcp/data/completions.hpp"
#include "libgccl/transports/tcp/data/numbered_queue.hpp"
#include "libgccl/transports/tcp/data/stream.hpp"

namespace gccl::tcp {

using Streams = std::vector<std::unique_ptr<Stream>>;  // null where not connected yet

class Outgoing {
 public:
  void post(GCCL_Transfer* t);
  bool empty() const { return queue_.empty(); }
  const GCCL_Transfer* front() const { return queue_.front(); }
  // Writes what the sockets take, one visit to each; complete sends go to `done`. False: a connection failed for good,
  // *problem says how. One that is to be mended is broken off.
  bool advance(Streams& streams, Completions* done, std::string* problem);
  // Sends that are written as a whole wait for the peer's word; or for copies, where there is nothing better to do.
  bool awaits_acknowledgement() const { return awaiting_ > 0; }
  void copy_some(Streams& streams, Completions* done);
  std::uint64_t awaited_bytes(const Streams& streams) const;
  void break_off(Stream* stream, const std::string& problem, Completions* done);
  Stream::Resumed resume(Stream* stream, Completions* done, std::string* problem);
  // False when the transfer is not one of these. Resets the streams that still hold parts of it.
  bool cancel(Streams& streams, GCCL_Transfer* t);

 private:
  bool assign(Stream* stream, bool first_stream, bool alone);
  void control(Stream* stream);
  bool write(Streams& streams, Stream* stream, bool first_stream, Completions* done, int* error);
  void released(GCCL_Transfer* t, Completions* done);
  void finish(GCCL_Transfer* t, Completions* done);

  NumberedQueue queue_;
  GCCL_Transfer* assigning_ = nullptr;  // first in queue_ with payload not yet given to a stream
  std::size_t awaiting_ = 0;            // of queue_, written as a whole
};

}  // namespace gccl::tcp
