#include "libgccl/fault/link_receiver.hpp"

#include <algorithm>

namespace gccl::fault {

LinkReceiver::Verdict LinkReceiver::judge(const LinkFrame& f) const {
  if (rules_.is_duplicate(f.sequence, arrived_)) return Verdict::duplicate;
  if (f.sequence >= taken_ + settings_.credits) return Verdict::beyond;
  if (!slots_.empty() && slots_[f.sequence % slots_.size()].full) return Verdict::duplicate;
  return f.sequence == arrived_ && arrived_ == taken_ ? Verdict::next : Verdict::early;
}

void LinkReceiver::take(const LinkFrame&) {
  ++arrived_;
  ++taken_;
  // Those behind it may have come before it.
  while (!slots_.empty() && arrived_ < taken_ + settings_.credits && slot(arrived_).full) ++arrived_;
}

void LinkReceiver::keep(const LinkFrame& f, std::span<const std::byte> payload) {
  if (slots_.empty()) slots_.resize(settings_.credits);
  Slot& s = slot(f.sequence);
  s.full = true;
  s.frame = f;
  s.payload.assign(payload.begin(), payload.end());
  while (arrived_ < taken_ + settings_.credits && slot(arrived_).full) ++arrived_;
}

void LinkReceiver::deliver(LinkUser* user) {
  while (taken_ < arrived_) {
    Slot& s = slot(taken_);
    if (!user->deliver(s.frame, s.payload)) return;
    s.full = false;
    ++taken_;
  }
}

void LinkReceiver::restart() {
  arrived_ = taken_ = 0;
  for (Slot& s : slots_) s.full = false;
}

}  // namespace gccl::fault
