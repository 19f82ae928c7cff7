#include "libgccl/fault/link.hpp"

#include <algorithm>
#include <cassert>

namespace gccl::fault {

const LinkRules& Link::standard_rules() {
  static const LinkRules rules;
  return rules;
}

Link::Link(const LinkSettings& settings, LinkUser* user, Nanos now, std::uint32_t epoch, const LinkRules& rules)
    : settings_(settings),
      rules_(rules),
      user_(user),
      sender_(settings_, rules_),
      receiver_(settings_, rules_),
      epoch_(epoch),
      connected_(!settings.ordered_wire),
      last_sent_(now),
      last_heard_(now) {
  assert(settings.credits > 0 && settings.frame_bytes_max > 0 && settings.frame_bytes_max <= kLinkPayloadBytesMax);
  if (!connected_) broken_since_ = now;
}

// ---- What arrives ----

bool Link::received(Nanos now, std::span<const std::byte> bytes) {
  LinkFrame f;
  if (bytes.size() < kLinkHeaderBytes || decode(bytes.data(), &f) != nullptr ||
      f.bytes != bytes.size() - kLinkHeaderBytes || !intact(f, bytes.subspan(kLinkHeaderBytes))) {
    ++counters_.damaged;
    return false;
  }
  if (lost_) return true;
  const auto payload = bytes.subspan(kLinkHeaderBytes);
  const auto verdict = admit(now, f);
  if (verdict == LinkReceiver::Verdict::next && user_->deliver(f, payload)) {
    taken(now, f);
  } else if (verdict == LinkReceiver::Verdict::next || verdict == LinkReceiver::Verdict::early) {
    receiver_.keep(f, payload);
    arrived(now, f);
  }
  return true;
}

Link::Verdict Link::begin(Nanos now, const LinkFrame& f) {
  return admit(now, f) == LinkReceiver::Verdict::next ? Verdict::take : Verdict::skip;
}

std::optional<LinkReceiver::Verdict> Link::admit(Nanos now, const LinkFrame& f) {
  last_heard_ = now;
  if (!rules_.is_current(f.epoch, epoch_)) {
    ++counters_.foreign;
    return {};
  }
  ++counters_.received;
  heard(now, f);
  if (f.kind != LinkFrame::Kind::data) return {};
  const LinkReceiver::Verdict verdict = receiver_.judge(f);
  if (verdict == LinkReceiver::Verdict::duplicate) ++receiver_.duplicates;
  // Its sender finds out sooner what is missing, or what is not.
  if (verdict != LinkReceiver::Verdict::next) control_due_ = true;
  return verdict;
}

// What every header says, whatever it is for.
void Link::heard(Nanos now, const LinkFrame& f) {
  sender_.acknowledged(now, f.acknowledged, f.credit, f.kind == LinkFrame::Kind::control);
  // Over other wires it may be an old one, and frames are repeated without it.
  if (f.kind == LinkFrame::Kind::resume && settings_.ordered_wire && (awaiting_resume_ || f.answer)) {
    sender_.go_on_at(now, f.acknowledged, f.offset);
    awaiting_resume_ = false;
  }
  if (f.answer && f.kind == LinkFrame::Kind::control) control_due_ = true;
}

void Link::taken(Nanos now, const LinkFrame& f) {
  receiver_.take(f);
  partial_ = 0;
  arrived(now, f);
  receiver_.deliver(user_);
}

void Link::arrived(Nanos now, const LinkFrame& f) {
  // Nor does a sender wait for credit.
  const std::uint64_t most = std::min(settings_.acknowledge_frames, (settings_.credits + 1) / 2);
  if (++unacknowledged_ >= most || f.answer) control_due_ = true;
  acknowledge_at_ = std::min(acknowledge_at_, now + settings_.acknowledge_after);
}

void Link::take_more(Nanos) {
  receiver_.deliver(user_);
  // A sender without credit waits for this alone.
  const std::uint64_t room = receiver_.credit() - credit_said_;
  if (room >= (settings_.credits + 1) / 2) control_due_ = true;
}

// ---- The wire ----

void Link::connected(Nanos now, std::uint64_t partial) {
  if (counters_.sent > 0) ++counters_.reconnects;
  connected_ = true;
  broken_since_ = kNever;
  last_heard_ = last_sent_ = now;
  resume_due_ = true;
  partial_ += partial;
  // Nothing that might be lost: then there is nothing to wait for.
  awaiting_resume_ = sender_.in_flight();
}

void Link::broken(Nanos now) {
  if (!std::exchange(connected_, false)) return;
  broken_since_ = now;
  resume_due_ = false;
}

void Link::enter_epoch(Nanos now, std::uint32_t epoch) {
  assert(epoch > epoch_);
  epoch_ = epoch;
  sender_.restart();
  receiver_.restart();
  awaiting_resume_ = control_due_ = answer_wanted_ = false;
  partial_ = unacknowledged_ = credit_said_ = 0;
  acknowledge_at_ = kNever;
  resume_due_ = connected_;
  epoch_begins_ = true;
  last_heard_ = now;
}

// ---- What is to be sent ----

void Link::fill(LinkFrame* f) {
  f->epoch = epoch_;
  f->acknowledged = receiver_.acknowledgement();
  f->credit = credit_said_ = receiver_.credit();
  unacknowledged_ = 0;
  acknowledge_at_ = kNever;
}

bool Link::next(Nanos now, Outgoing* out) {
  if (!connected_ || lost_) return false;
  LinkFrame f;
  out->payload = {};
  if (std::exchange(resume_due_, false)) {
    f.kind = LinkFrame::Kind::resume;
    f.offset = partial_;
    f.answer = std::exchange(epoch_begins_, false);
  } else if (!awaiting_resume_ && sender_.next(now, &f, &out->payload)) {
    control_due_ = false;
  } else if (control_due_) {
    f.kind = LinkFrame::Kind::control;
    f.answer = std::exchange(answer_wanted_, false);
    control_due_ = false;
  } else {
    return false;
  }
  fill(&f);
  encode(f, out->header);
  last_sent_ = now;
  ++counters_.sent;
  return true;
}

Nanos Link::lost_at() const {
  if (settings_.lost_after == 0) return kNever;
  if (!connected_) return broken_since_ + settings_.lost_after;
  return settings_.keep_alive > 0 ? last_heard_ + settings_.lost_after : kNever;
}

Nanos Link::deadline() const {
  if (lost_) return kNever;
  Nanos at = lost_at();
  if (!connected_) return at;
  if (settings_.keep_alive > 0 && !control_due_) at = std::min(at, last_sent_ + settings_.keep_alive);
  at = std::min(at, acknowledge_at_);
  return awaiting_resume_ ? at : std::min(at, sender_.deadline());
}

void Link::time_passed(Nanos now) {
  if (lost_) return;
  if (now >= lost_at()) {
    lost_ = true;
    return;
  }
  if (!connected_) return;
  sender_.time_passed(now);
  if (sender_.take_probe()) control_due_ = answer_wanted_ = true;
  if (now >= acknowledge_at_) control_due_ = true, acknowledge_at_ = kNever;
  if (settings_.keep_alive > 0 && now >= last_sent_ + settings_.keep_alive) control_due_ = true;
}

Link::Counters Link::counters() const {
  Counters c = counters_;
  c.repeated = sender_.repeated;
  c.duplicates = receiver_.duplicates;
  return c;
}

}  // namespace gccl::fault
