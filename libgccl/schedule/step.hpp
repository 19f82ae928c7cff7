// A step: the smallest thing a schedule asks an executor to do.
#pragma once

#include "libgccl/schedule/region.hpp"

namespace gccl {

enum class Op : std::uint8_t {
  send,         // `from` goes to peer
  recv,         // the message from peer becomes `to`
  recv_reduce,  // to = from (+) the message from peer; from and to have the message's count, and may be the same region
  copy,         // to = from
  reduce,       // to = to (+) from
};

// A step with a buffer but no element does nothing and is never seen by a backend; so is a copy onto itself. A signal
// (Buffer::none) is a message without content: it always travels. As there is nothing to hold, it completes without its
// receive on every backend, unless an earlier one to the same rank still waits for its own.
struct Step {
  Op op;
  Rank peer;  // of the communicator; unused by copy and reduce
  Region from, to;

  bool receives() const { return op == Op::recv || op == Op::recv_reduce; }
  bool local() const { return op == Op::copy || op == Op::reduce; }
  // It does nothing: executors drop it.
  bool idle() const {
    if (op == Op::send) return from.buffer != Buffer::none && from.count == 0;
    return (to.buffer != Buffer::none && to.count == 0) || (op == Op::copy && from == to);
  }
  // The message's or the local work's size, in elements.
  Count count() const { return op == Op::send ? from.count : to.count; }
  // What it reads and what it writes; regions of count 0 where it does not.
  Region reads() const { return op == Op::recv ? Region{} : from; }
  Region writes() const { return op == Op::send ? Region{} : to; }
};

inline Step send(Rank peer, Region from) { return {Op::send, peer, from, {}}; }
inline Step recv(Rank peer, Region to) { return {Op::recv, peer, {}, to}; }
inline Step recv_reduce(Rank peer, Region from, Region to) { return {Op::recv_reduce, peer, from, to}; }
inline Step recv_reduce(Rank peer, Region at) { return {Op::recv_reduce, peer, at, at}; }
inline Step copy(Region from, Region to) { return {Op::copy, 0, from, to}; }
inline Step reduce(Region from, Region to) { return {Op::reduce, 0, from, to}; }
inline Step signal(Rank peer) { return {Op::send, peer, {}, {}}; }
inline Step await(Rank peer) { return {Op::recv, peer, {}, {}}; }

// True when `later` must wait for `earlier` of the same lane: it touches what that writes, or writes what that reads. A
// signal waits for every earlier await: it says to others that what was awaited has happened.
inline bool conflicts(const Step& later, const Step& earlier) {
  const bool later_reads = later.op != Op::recv, later_writes = later.op != Op::send;
  const bool earlier_reads = earlier.op != Op::recv, earlier_writes = earlier.op != Op::send;
  return (later_reads && earlier_writes && overlap(later.from, earlier.to)) ||
         (later_writes && earlier_reads && overlap(later.to, earlier.from)) ||
         (later_writes && earlier_writes && overlap(later.to, earlier.to)) ||
         (later.op == Op::send && later.from.buffer == Buffer::none && earlier.op == Op::recv &&
          earlier.to.buffer == Buffer::none);
}

}  // namespace gccl
