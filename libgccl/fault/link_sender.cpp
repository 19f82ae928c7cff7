#include "libgccl/fault/link_sender.hpp"

#include <algorithm>
#include <cstdlib>

#include "libgccl/base/crc32c.hpp"

namespace gccl::fault {
namespace {

// As in TCP: fewer may be reordering.
constexpr unsigned kSameMax = 3;
constexpr unsigned kBackoffMax = 16;

}  // namespace

void LinkSender::cut() {
  const Message& m = messages_[cut_message_ - first_message_];
  const std::uint64_t rest = m.bytes.size() - cut_offset_;
  const auto bytes = std::uint32_t(std::min<std::uint64_t>(rest, settings_.frame_bytes_max));
  flight_.push_back({cut_message_, cut_offset_, bytes, false, kNever});
  cut_offset_ += bytes;
  if (bytes == rest) ++cut_message_, cut_offset_ = 0;
}

void LinkSender::emit(Nanos now, std::uint64_t sequence, LinkFrame* f, std::span<const std::byte>* payload) {
  Flight& flight = flight_[sequence - base_];
  const Message& m = messages_[flight.message - first_message_];
  const std::uint64_t skip = sequence == base_ ? skip_ : 0;
  f->kind = LinkFrame::Kind::data;
  f->sequence = sequence;
  f->message_bytes = m.bytes.size();
  f->signature = m.signature;
  f->offset = flight.offset + skip;
  f->bytes = std::uint32_t(flight.bytes - skip);
  f->answer = m.answer && f->ends_message();
  *payload = m.bytes.subspan(f->offset, f->bytes);
  f->checked = settings_.checksums;
  f->payload_crc = f->checked ? crc32c(*payload) : 0;
  if (flight.sent != kNever) flight.repeated = true, ++repeated;
  flight.sent = now;
  if (since_ == kNever) since_ = now;
}

bool LinkSender::next(Nanos now, LinkFrame* frame, std::span<const std::byte>* payload) {
  if (std::exchange(repeat_first_, false) && !flight_.empty()) {
    emit(now, base_, frame, payload);
    return true;
  }
  if (next_ == end()) {
    if (!uncut() || end() >= credit_) {
      if (since_ == kNever && starved()) since_ = now;
      return false;
    }
    cut();
  }
  emit(now, next_++, frame, payload);
  return true;
}

void LinkSender::acknowledged(Nanos now, std::uint64_t sequence, std::uint64_t credit, bool alone) {
  const bool more_credit = credit > credit_;
  credit_ = std::max(credit_, credit);
  if (more_credit && flight_.empty()) since_ = kNever, backoff_ = 0;
  if (sequence < base_ || sequence > end()) return;  // overtaken by a later one; or nothing that was ever sent
  if (sequence == base_) {
    if (!alone || more_credit || settings_.ordered_wire || !rules_.repeats(flight_.size())) return;
    if (++same_ == kSameMax && base_ >= recover_until_) repeat_first_ = true, recover_until_ = end();
    return;
  }
  Nanos sample = -1;
  for (; base_ < sequence; ++base_) {
    const Flight& f = flight_.front();
    if (!f.repeated) sample = now - f.sent;  // Karn: of a repeated frame nobody knows which one was answered
    const Message& m = messages_.front();
    if (f.offset + f.bytes == m.bytes.size()) messages_.pop_front(), ++first_message_;
    flight_.pop_front();
  }
  if (sample >= 0) measure(sample);
  next_ = std::max(next_, base_);
  skip_ = 0;
  same_ = backoff_ = 0;
  since_ = flight_.empty() ? kNever : now;
  repeat_first_ = base_ < recover_until_ && next_ > base_;
}

void LinkSender::go_on_at(Nanos now, std::uint64_t sequence, std::uint64_t taken) {
  acknowledged(now, sequence, credit_, false);
  if (sequence != base_) return;  // said before what has been acknowledged since
  next_ = base_;
  skip_ = !flight_.empty() && taken < flight_.front().bytes ? taken : 0;
  repeat_first_ = false;
  recover_until_ = base_;
}

void LinkSender::restart() {
  messages_.clear();
  flight_.clear();
  first_message_ = cut_message_ = cut_offset_ = base_ = next_ = skip_ = recover_until_ = 0;
  credit_ = settings_.credits;
  repeat_first_ = probe_ = false;
  same_ = backoff_ = 0;
  since_ = kNever;
}

// RFC 6298, section 2.
void LinkSender::measure(Nanos round_trip) {
  if (smoothed_ == 0) {
    smoothed_ = std::max<Nanos>(round_trip, 1);
    variation_ = round_trip / 2;
    return;
  }
  variation_ += (std::abs(smoothed_ - round_trip) - variation_) / 4;
  smoothed_ = std::max<Nanos>(smoothed_ + (round_trip - smoothed_) / 8, 1);
}

Nanos LinkSender::rto() const {
  const Nanos estimate = smoothed_ == 0 ? settings_.rto_first : smoothed_ + 4 * variation_;
  Nanos limit = std::clamp(estimate, settings_.rto_min, settings_.rto_max);
  for (unsigned i = 0; i < backoff_ && limit < settings_.rto_max; ++i) limit *= 2;
  return std::min(limit, settings_.rto_max);
}

Nanos LinkSender::deadline() const { return since_ == kNever || !timed() ? kNever : since_ + rto(); }

void LinkSender::time_passed(Nanos now) {
  if (now < deadline()) return;
  backoff_ = std::min(backoff_ + 1, kBackoffMax);
  since_ = now;
  if (starved()) {
    probe_ = true;
    return;
  }
  // Nothing came back for so long: everything in flight may be lost. What did arrive is acknowledged along with the
  // first one, and then skipped.
  next_ = base_;
  same_ = 0;
  recover_until_ = base_;
}

}  // namespace gccl::fault
