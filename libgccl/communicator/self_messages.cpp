#include "libgccl/communicator/self_messages.hpp"

#include <fmt/core.h>

#include <cstring>

namespace gccl {

Operation* SelfMessages::meet(Operation* op, const Members& members, Status* why) {
  const bool sends = op->work.what.kind == kSendKind;
  if (waiting_.empty() || waiting_.front()->work.what.kind == op->work.what.kind) {
    waiting_.push_back(op);
    return nullptr;
  }
  Operation* const other = waiting_.front();
  const Work &from = sends ? op->work : other->work, &to = sends ? other->work : op->work;
  // User-defined types have one signature, and counts are folded into it.
  if (from.what.signature() != to.what.signature() || from.what.bytes != to.what.bytes) {
    waiting_.push_back(op);
    const std::string sizes = fmt::format(" of {} bytes, and {} are due", from.what.bytes, to.what.bytes);
    *why = members.in_context(
        to.what, Status::error(fmt::format("the message is {}{}", from.what.text(), sizes), GCCL_ERR_MISMATCH));
    return nullptr;
  }
  waiting_.pop_front();
  if (from.what.bytes)
    std::memcpy(to.memory.base[std::size_t(Buffer::output)], from.memory.base[std::size_t(Buffer::input)],
                from.what.bytes);
  return other;
}

}  // namespace gccl
