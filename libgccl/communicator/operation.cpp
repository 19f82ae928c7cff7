#include "libgccl/communicator/operation.hpp"

#include <fmt/core.h>

#include <cassert>
#include <cstring>

#include "libgccl/elements/combine.hpp"

namespace gccl {

Work Work::without_lengths() const {
  assert(!lengths);
  Work w;
  w.what = what;
  w.elements = elements;
  w.call = call;
  w.memory = memory;
  w.algorithm = algorithm;
  w.slicing = slicing;
  w.to_first_block = to_first_block;
  return w;
}

void Work::conclude(const Members& members) {
  std::byte* const out = memory.base[std::size_t(Buffer::output)];
  const Region result = reduces(call.kind) ? output_of(call, members.size(), members.rank) : Region{};
  if (what.op == GCCL_AVG && result.count > 0)
    divide(elements.dtype, out + result.offset() * elements.bytes, result.count, members.size());
  if (to_first_block && result.count > 0)
    std::memmove(out, out + result.offset() * elements.bytes, result.count * elements.bytes);
}

std::string Operation::text() const {
  if (!checked) return work.what.text();
  return fmt::format("{} (GCCL_CHECK {} it)", checked->text(), comparison->ends_call() ? "after" : "before");
}

std::uint64_t Operation::moved() const {
  if (replaying) return replay.next;
  return flow ? flow->traffic().messages_sent + flow->traffic().messages_received : 0;
}

std::string Operation::awaited(Rank* peer, bool* receives) const {
  bool ignored = false;
  if (!receives) receives = &ignored;
  *receives = true;
  if (work.what.point_to_point()) {
    *peer = work.what.root;
    *receives = work.what.kind != kSendKind;
    return work.what.kind == kSendKind ? "it to take the message" : "its message";
  }
  if (replaying) {
    const Program::Awaited a = replay.awaited();
    *peer = a.peer;
    return fmt::format("{} of {} bytes ({}, step {} of {})", a.receives ? "its message" : "it to take a message",
                       a.bytes, plan->algorithm->name, replay.next + 1, a.steps);
  }
  std::string text = "a message";
  if (!flow || !flow->awaited(plan->algorithm->name, peer, &text, receives)) *receives = false;
  return text;
}

Status Operation::flow_failure(const Members& members) const {
  const Status& s = flow->status();
  return s.code() == GCCL_ERR_MISMATCH ? calls_differ(members, work.what, flow->difference())
                                       : members.in_context(text(), s);
}

}  // namespace gccl
