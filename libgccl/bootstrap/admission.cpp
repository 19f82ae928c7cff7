#include "libgccl/bootstrap/admission.hpp"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <iterator>

#include "gccl/gccl.h"
#include "libgccl/bootstrap/missing.hpp"
#include "libgccl/net/bytes.hpp"

namespace gccl {
namespace {

constexpr std::int64_t kIntroduceMs = 5000;  // one that takes longer is dropped, and asks again
constexpr std::int64_t kTellMs = 5000;
constexpr std::size_t kAskingMax = 64;  // of more the oldest are dropped
constexpr int kLookMs = 20;
constexpr std::size_t kTextMax = 2000;

std::string version_text(std::uint32_t v) { return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100); }

}  // namespace

Admission::Admission(const JoinPlace& place, std::uint32_t version)
    : place_(place), version_(version), log_(fmt::format("admission at {}", place.store())) {}

Status Admission::open(const JoinPlace& place, std::uint32_t version, std::unique_ptr<Admission>* out) {
  std::unique_ptr<Admission> a(new Admission(place, version));
  if (Status s = place.listen(&a->listener_, &a->token_); !s.ok())
    return Status::error(fmt::format("cannot listen for processes that join at {}: {}", place.store(), s.text()),
                         s.code());
  *out = std::move(a);
  return {};
}

Admission::~Admission() {
  if (listener_) place_.leave(token_);
}

Status Admission::collect(Rank most, std::int64_t wait_ms, const Check& check, const GoesOn& goes_on) {
  assert(listener_ && most > 0);
  const Deadline deadline = Deadline::in_ms(std::max(wait_ms, kHearMs));
  Status s;
  while (s.ok() && admitted_.size() < most && !deadline.passed()) {
    s = poll_once(std::min(deadline.poll_ms(), kLookMs), check);
    drop_gone();
    if (s.ok()) s = goes_on();
  }
  place_.leave(token_);
  listener_.reset();
  asking_.clear();
  while (admitted_.size() > most) admitted_.pop_back();  // they ask again
  return s;
}

std::vector<std::vector<std::byte>> Admission::introductions() const {
  std::vector<std::vector<std::byte>> all;
  for (const Applicant& a : admitted_) all.push_back(a.introduction);
  return all;
}

Status Admission::poll_once(int timeout_ms, const Check& check) {
  std::vector<pollfd> polled{{listener_.get(), POLLIN, 0}};
  for (const Applicant& a : asking_) polled.push_back({a.fd.get(), short(a.wants_write ? POLLOUT : POLLIN), 0});
  if (::poll(polled.data(), polled.size(), timeout_ms) < 0 && errno != EINTR && errno != EAGAIN)
    return system_error("poll", errno);
  auto at = polled.begin() + 1;
  for (auto a = asking_.begin(); a != asking_.end(); ++at) {
    if (at->revents != 0)
      a = advance(a, check);
    else if (a->deadline.passed())
      a = asking_.erase(a);
    else
      ++a;
  }
  if (polled[0].revents != 0) accept_some();
  return {};
}

// What cannot be accepted now asks again.
void Admission::accept_some() {
  for (;;) {
    Fd fd;
    SocketAddress peer;
    if (!accept_from(listener_.get(), &fd, &peer).ok() || !fd) return;
    if (asking_.size() >= kAskingMax) asking_.pop_front();
    asking_.push_back({std::move(fd), peer, Handshake::accept(place_.secret()), Deadline::in_ms(kIntroduceMs)});
  }
}

void Admission::refuse(const Applicant& a, const Status& why) {
  log_.refused(a.peer, why.text());
  const auto text = std::string_view(why.text()).substr(0, kTextMax);
  write_join_frame(a.fd.get(), {JoinFrame::Kind::refused, BytesOut().u32(std::uint32_t(why.code())).raw(text).take()},
                   0);
}

Admission::Applicants::iterator Admission::advance(Applicants::iterator a, const Check& check) {
  if (!a->shaken) {
    const Handshake::State state = a->handshake.advance(a->fd.get());
    a->wants_write = state == Handshake::State::wants_write;
    if (state == Handshake::State::failed) {
      log_.refused(a->peer, a->handshake.error());
      return asking_.erase(a);
    }
    if (state != Handshake::State::done) return std::next(a);
    a->shaken = true;
    JoinHello hello;
    if (!JoinHello::parse(a->handshake.hello(), &hello)) {
      log_.refused(a->peer, "it does not want to join");
      return asking_.erase(a);
    }
    if (hello.version != version_) {
      refuse(*a, Status::error(fmt::format("this process runs GCCL {}, the members run {}: all need the same",
                                           version_text(hello.version), version_text(version_)),
                               GCCL_ERR_INVALID_USAGE));
      return asking_.erase(a);
    }
    if (hello.token != token_) return asking_.erase(a);  // it has read of an earlier place, and will look again
  }
  JoinFrame frame;
  const JoinFrameReader::State state = a->reader.read(a->fd.get(), &frame);
  if (state == JoinFrameReader::State::incomplete) return std::next(a);
  if (state == JoinFrameReader::State::closed || frame.kind != JoinFrame::Kind::introduction) return asking_.erase(a);
  if (const Status s = check(frame.bytes); !s.ok()) {
    if (s.code() != GCCL_IN_PROGRESS) refuse(*a, s);
    return asking_.erase(a);
  }
  a->introduction = std::move(frame.bytes);
  const auto next = std::next(a);
  admitted_.splice(admitted_.end(), asking_, a);
  return next;
}

// Those that have ended while others are waited for. They have nothing to say yet.
void Admission::drop_gone() {
  for (auto a = admitted_.begin(); a != admitted_.end();) {
    JoinFrame frame;
    a = a->reader.read(a->fd.get(), &frame) == JoinFrameReader::State::incomplete ? std::next(a) : admitted_.erase(a);
  }
}

Status Admission::gone(const std::string& what) {
  lost_ = true;
  return Status::error(fmt::format("a process that joins {}", what), GCCL_ERR_PEER_LOST);
}

Status Admission::admit(std::span<const Rank> ranks, Rank size) {
  assert(ranks.size() == admitted_.size());
  auto rank = ranks.begin();
  for (Applicant& a : admitted_) {
    BytesOut out;
    out.u32(*rank++).u32(size);
    for (const Rank r : ranks) out.u32(r);
    if (!write_join_frame(a.fd.get(), {JoinFrame::Kind::admitted, out.take()}, kTellMs))
      return gone(fmt::format("({}) has gone", a.peer.host()));
  }
  return {};
}

Status Admission::gather(std::size_t bytes, std::int64_t timeout_ms, const GoesOn& goes_on,
                         std::vector<std::byte>* all) {
  const Deadline deadline = Deadline::in_ms(timeout_ms);
  std::vector<std::optional<JoinFrame>> said(admitted_.size());
  for (;;) {
    std::vector<pollfd> polled;
    std::size_t i = 0;
    for (Applicant& a : admitted_) {
      if (!said[i]) {
        JoinFrame frame;
        const JoinFrameReader::State state = a.reader.read(a.fd.get(), &frame);
        const bool sound = frame.kind == JoinFrame::Kind::data && frame.bytes.size() == bytes;
        if (state == JoinFrameReader::State::closed || (state == JoinFrameReader::State::complete && !sound))
          return gone(fmt::format("({}) has gone", a.peer.host()));
        if (state == JoinFrameReader::State::complete)
          said[i] = std::move(frame);
        else
          polled.push_back({a.fd.get(), POLLIN, 0});
      }
      ++i;
    }
    if (polled.empty()) break;
    if (deadline.passed())
      return gone(fmt::format("says nothing for {}: it is stopped, or cut off", duration_text(timeout_ms)));
    if (Status s = goes_on(); !s.ok()) return s;
    ::poll(polled.data(), polled.size(), std::min(deadline.poll_ms(), kLookMs));
  }
  all->clear();
  for (const auto& frame : said) all->insert(all->end(), frame->bytes.begin(), frame->bytes.end());
  return {};
}

Status Admission::answer(std::span<const std::byte> all) {
  for (Applicant& a : admitted_)
    if (!write_join_frame(a.fd.get(), {JoinFrame::Kind::data, {all.begin(), all.end()}}, kTellMs))
      return gone(fmt::format("({}) has gone, or takes nothing for {}", a.peer.host(), duration_text(kTellMs)));
  return {};
}

Status Admission::all_there() {
  for (Applicant& a : admitted_) {
    JoinFrame frame;
    if (a.reader.read(a.fd.get(), &frame) != JoinFrameReader::State::incomplete)
      return gone(fmt::format("({}) has gone", a.peer.host()));
  }
  return {};
}

void Admission::end(const JoinFrame& frame) {
  for (Applicant& a : admitted_) write_join_frame(a.fd.get(), frame, 0);
  admitted_.clear();
}

}  // namespace gccl
