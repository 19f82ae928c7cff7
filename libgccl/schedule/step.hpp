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
  // Steps to a group, which every member takes (group_step.hpp says which sends and receives they mean). Its first
  // `roots` members are the roots.
  send_all,         // a root's `from` goes to all members; the part of every root comes to its place in `to`
  recv_reduce_all,  // each root's `to` = the sum of its part of all members' `from`
};

// Whom a step to a group is for: the view's node or rail.
enum class Scope : std::uint8_t { node, rail };
// How a vector that a step to a group names lies in the roots' parts: Region::part(i, roots), or blocks of one length
// that are equally far apart, from the first block's first element to the last one's end.
enum class Divided : std::uint8_t { parts, blocks };

// A step with a buffer but no element does nothing and is never seen by a backend; so is a copy onto itself. A signal
// (Buffer::none) is a message without content: it always travels. As there is nothing to hold, it completes without its
// receive on every backend, unless an earlier one to the same rank still waits for its own.
struct Step {
  Op op;
  Scope scope = Scope::node;         // of a step to a group, as is
  Divided divided = Divided::parts;  // this
  union {
    Rank peer;   // of the communicator; unused by copy and reduce
    Rank roots;  // of a step to a group
  };
  Region from, to;

  bool receives() const { return op == Op::recv || op == Op::recv_reduce; }
  bool to_group() const { return op == Op::send_all || op == Op::recv_reduce_all; }
  bool local() const { return op == Op::copy || op == Op::reduce; }
  // It does nothing: executors drop it.
  bool idle() const {
    if (op == Op::send) return from.buffer() != Buffer::none && from.count == 0;
    if (op == Op::recv_reduce_all) return from.count == 0;
    return (to.buffer() != Buffer::none && to.count == 0) || (op == Op::copy && from == to);
  }
  // The message's or the local work's size, in elements.
  Count count() const { return op == Op::send || op == Op::recv_reduce_all ? from.count : to.count; }
  // What it reads and what it writes; regions of count 0 where it does not.
  Region reads() const { return op == Op::recv ? Region{} : from; }
  Region writes() const { return op == Op::send ? Region{} : to; }
};

inline Step send(Rank peer, Region from) { return {.op = Op::send, .peer = peer, .from = from, .to = {}}; }
inline Step recv(Rank peer, Region to) { return {.op = Op::recv, .peer = peer, .from = {}, .to = to}; }
inline Step recv_reduce(Rank peer, Region from, Region to) {
  return {.op = Op::recv_reduce, .peer = peer, .from = from, .to = to};
}
inline Step recv_reduce(Rank peer, Region at) { return {.op = Op::recv_reduce, .peer = peer, .from = at, .to = at}; }
inline Step copy(Region from, Region to) { return {.op = Op::copy, .peer = 0, .from = from, .to = to}; }
inline Step reduce(Region from, Region to) { return {.op = Op::reduce, .peer = 0, .from = from, .to = to}; }
inline Step signal(Rank peer) { return {.op = Op::send, .peer = peer, .from = {}, .to = {}}; }
inline Step await(Rank peer) { return {.op = Op::recv, .peer = peer, .from = {}, .to = {}}; }

// True when `later` must wait for `earlier` of the same lane: it touches what that writes, or writes what that reads. A
// signal waits for every earlier await: it says to others that what was awaited has happened.
[[gnu::always_inline]] inline bool conflicts(const Step& later, const Step& earlier) {
  const bool later_reads = later.op != Op::recv, later_writes = later.op != Op::send;
  const bool earlier_reads = earlier.op != Op::recv, earlier_writes = earlier.op != Op::send;
  return (later_reads && earlier_writes && overlap(later.from, earlier.to)) ||
         (later_writes && earlier_reads && overlap(later.to, earlier.from)) ||
         (later_writes && earlier_writes && overlap(later.to, earlier.to)) ||
         (later.op == Op::send && later.from.buffer() == Buffer::none && earlier.op == Op::recv &&
          earlier.to.buffer() == Buffer::none);
}

}  // namespace gccl
