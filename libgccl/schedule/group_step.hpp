// Steps to a group: what they mean in plain sends and receives, and the one place where they become these.
//
// NVIDIA's NVLS ("NVLink SHARP") and SHARP: a switch that multicasts what one card sends, and reduces what all cards
// hold for one that asks. A schedule writes the exchange of a group as one step, which every member takes in the same
// order; the k-th step to a group of a lane on one member meets the k-th one on the others.
//
//   recv_reduce_all   each root sums its part of all members' vectors      a reduce-scatter
//   send_all          each root's part goes to all members                 an all-gather
//
// Where the members' switch can do so (View::node_switch, rail_switch: the simulator's executor sets them, from the
// cluster) the step stays whole. Each of its messages then passes each link once: a member's way up and every way down
// when it multicasts, every way up and the root's way down when the switch reduces. Everywhere else, on real transports
// and in the prover, it is the plain steps below, in turns (turns.hpp), of which a window of 1 over buffered sends and
// one of 2 without buffers never block.
#pragma once

#include "libgccl/schedule/group.hpp"
#include "libgccl/schedule/schedule.hpp"

namespace gccl {

inline const Group& group_of(const View& v, Scope scope) { return scope == Scope::node ? v.node : v.rail; }
inline bool in_switch(const View& v, Scope scope) { return scope == Scope::node ? v.node_switch : v.rail_switch; }

// Members 0 .. roots-1 are the roots; `whole` is divided among them. `part` is this member's own part, empty where it
// is no root. It may lie inside `whole`.
inline Step send_all(Scope scope, Rank roots, Region part, Region whole) {
  return {.op = Op::send_all, .scope = scope, .roots = roots, .from = part, .to = whole};
}
inline Step recv_reduce_all(Scope scope, Rank roots, Region whole, Region part) {
  return {.op = Op::recv_reduce_all, .scope = scope, .roots = roots, .from = whole, .to = part};
}
// The same for blocks, one for each member: all are roots.
inline Region span_of(Blocks b, Rank n) { return {b.buffer, b.offset, b.count ? (n - 1) * b.stride + b.count : 0}; }
inline Step send_all(Scope scope, Rank roots, Region block, Blocks all) {
  Step s = send_all(scope, roots, block, span_of(all, roots));
  s.divided = Divided::blocks;
  return s;
}
inline Step recv_reduce_all(Scope scope, Rank roots, Blocks all, Region block) {
  Step s = recv_reduce_all(scope, roots, span_of(all, roots), block);
  s.divided = Divided::blocks;
  return s;
}

// The part of root i in the vector that a step to a group divides.
Region part_of(const Step& s, Rank i);

// The step as this rank's view has it: whole, or as plain sends and receives.
Schedule to_group(View v, Step s);

}  // namespace gccl
