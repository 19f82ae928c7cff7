#include "libgccl/communicator/self_messages.hpp"

#include <fmt/core.h>

#include <cstring>

namespace gccl {
namespace {

// As transports let a few short messages go before the receiver comes.
constexpr std::size_t kKeptBytes = 8192, kKeptBytesOfAll = 65536;

const std::byte* sent_from(const Work& w) { return w.memory.base[std::size_t(Buffer::input)]; }

Status difference(const Descriptor& from, const Descriptor& to, const Members& members) {
  // User-defined types have one signature, and counts are folded into it.
  if (from.signature() == to.signature() && from.bytes == to.bytes) return {};
  const std::string sizes = fmt::format(" of {} bytes, and {} are due", from.bytes, to.bytes);
  return members.in_context(to,
                            Status::error(fmt::format("the message is {}{}", from.text(), sizes), GCCL_ERR_MISMATCH));
}

}  // namespace

bool SelfMessages::keep(const Work& sent) {
  const std::size_t bytes = sent.what.bytes;
  if (bytes > kKeptBytes || bytes + kept_bytes_ > kKeptBytesOfAll) return false;
  kept_.push_back({sent.what, {sent_from(sent), sent_from(sent) + bytes}});
  kept_bytes_ += bytes;
  return true;
}

Operation* SelfMessages::keep_waiting() noexcept try {
  if (waiting_.empty() || waiting_.front()->work.what.kind != kSendKind || !keep(waiting_.front()->work))
    return nullptr;
  Operation* const op = waiting_.front();
  waiting_.pop_front();
  return op;
} catch (...) {  // memory is short: it waits
  return nullptr;
}

bool SelfMessages::meet(Operation* op, const Members& members, Operation** other, Status* why) {
  *other = nullptr;
  const Work& mine = op->work;
  const bool sends = mine.what.kind == kSendKind;
  const auto receive = [](const Work& to, const std::byte* from) {
    if (to.what.bytes) std::memcpy(to.memory.base[std::size_t(Buffer::output)], from, to.what.bytes);
  };
  if (!sends && !kept_.empty()) {
    *why = difference(kept_.front().what, mine.what, members);
    if (why->ok()) {
      receive(mine, kept_.front().bytes.data());
      kept_bytes_ -= kept_.front().bytes.size();
      kept_.pop_front();
      return true;
    }
  } else if (!waiting_.empty() && waiting_.front()->work.what.kind != mine.what.kind) {
    const Work& its = waiting_.front()->work;
    const Work &from = sends ? mine : its, &to = sends ? its : mine;
    *why = difference(from.what, to.what, members);
    if (why->ok()) {
      receive(to, sent_from(from));
      *other = waiting_.front();
      waiting_.pop_front();
      return true;
    }
  } else if (sends && waiting_.empty() && keep(mine)) {
    return true;
  }
  waiting_.push_back(op);
  return false;
}

}  // namespace gccl
