#include "libgccl/bootstrap/applicant.hpp"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <thread>

#include "gccl/gccl.h"
#include "libgccl/bootstrap/exchange_frame.hpp"
#include "libgccl/bootstrap/missing.hpp"
#include "libgccl/bootstrap/wait_for.hpp"
#include "libgccl/net/bytes.hpp"
#include "libgccl/net/handshake.hpp"
#include "libgccl/net/socket.hpp"

namespace gccl {
namespace {

constexpr std::int64_t kAskAgainMs = 100;
constexpr std::int64_t kReachMs = 3000;  // to be connected, over one address or another, and for the handshake
constexpr std::int64_t kOthersMs = 250;  // so long others are waited for once one has answered, and not admitted

}  // namespace

Applicant::Applicant(JoinPlace place, std::uint32_t version, std::vector<std::byte> introduction,
                     std::int64_t timeout_ms)
    : place_(std::move(place)),
      version_(version),
      introduction_(std::move(introduction)),
      timeout_ms_(timeout_ms),
      until_(Deadline::in_ms(std::max<std::int64_t>(timeout_ms, 0))) {}

Status Applicant::ask(Admitted* out) {
  for (;;) {
    std::vector<SocketAddress> addresses;
    JoinPlace::Token token{};
    if (const Status s = place_.find(&addresses, &token); !s.ok()) {
      if (s.code() == GCCL_ERR_INVALID_ARGUMENT) return s;
      last_ = s.text();
    }
    bool final = false;
    if (Status s = ask_at(addresses, token, out, &final); final) return s;
    if (limit().passed())
      return Status::error(fmt::format("no member admitted this process within {} (GCCL_JOIN_TIMEOUT_MS) at {}: the "
                                       "members call GCCL_Comm_grow there; last: {}",
                                       duration_text(timeout_ms_), place_.store(), last_),
                           GCCL_ERR_TIMEOUT);
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(kAskAgainMs, limit().left_ms())));
  }
}

// All at once: one that leads nowhere is silent for longer than members wait, and some mean another machine here.
Status Applicant::ask_at(std::span<const SocketAddress> addresses, const JoinPlace::Token& token, Admitted* out,
                         bool* final) {
  *final = true;
  std::vector<Fd> dialled(addresses.size());
  std::size_t pending = 0;
  bool again_somewhere = false;
  for (std::size_t i = 0; i < addresses.size(); ++i)
    if (const Status s = dial(addresses[i], &dialled[i]); s.ok())
      ++pending;
    else
      last_ = s.text(), again_somewhere = true;
  Deadline deadline = limit().earlier(Deadline::in_ms(kReachMs));
  Status denied;  // maybe by another program
  while (pending > 0 && !deadline.passed()) {
    std::vector<pollfd> polled;
    for (const Fd& fd : dialled) polled.push_back({fd.get(), POLLOUT, 0});  // without a descriptor: passed over
    if (::poll(polled.data(), polled.size(), deadline.poll_ms()) <= 0) continue;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      if (polled[i].revents == 0) continue;
      --pending;
      fd_ = std::move(dialled[i]);
      bool again = false;
      Status s = ask_once(addresses[i], token, out, &again);
      if (s.ok()) return s;
      fd_.reset();
      last_ = s.text();
      if (!again && s.code() != GCCL_ERR_AUTHENTICATION) return s;
      again_somewhere |= again;
      if (!again) denied = std::move(s);
      deadline = deadline.earlier(Deadline::in_ms(kOthersMs));
    }
  }
  if (pending > 0 && denied.ok() && !again_somewhere) last_ = fmt::format("{} does not answer", addresses[0].text());
  *final = !denied.ok() && !again_somewhere && pending == 0;
  return denied;
}

Status Applicant::shake_hands(const SocketAddress& at, const JoinPlace::Token& token, bool* again) {
  *again = true;
  const Deadline deadline = limit().earlier(Deadline::in_ms(kReachMs));
  const Status silent = Status::error(fmt::format("{} does not answer", at.text()), GCCL_ERR_TIMEOUT);
  if (Status s = gccl::dialled(fd_.get(), at); !s.ok()) return s;
  Handshake handshake = Handshake::dial(place_.secret(), JoinHello{version_, token}.encoded());
  for (;;) {
    const Handshake::State state = handshake.advance(fd_.get());
    if (state == Handshake::State::done) return {};
    if (state == Handshake::State::failed) {
      *again = !handshake.unauthenticated();
      const std::string text = fmt::format("{}: {}", at.text(), handshake.error());
      if (*again) return Status::error(text, handshake.failed_here() ? GCCL_ERR_SYSTEM : GCCL_ERR_PEER_LOST);
      return Status::error(
          fmt::format("{}: set the same GCCL_SECRET or GCCL_SECRET_FILE as the job's members have", text),
          GCCL_ERR_AUTHENTICATION);
    }
    if (!wait_for(fd_.get(), state == Handshake::State::wants_read ? POLLIN : POLLOUT, deadline)) return silent;
  }
}

Status Applicant::ask_once(const SocketAddress& at, const JoinPlace::Token& token, Admitted* out, bool* again) {
  reader_ = {};
  verdict_ = Verdict::none;
  if (Status s = shake_hands(at, token, again); !s.ok()) return s;
  if (!write_join_frame(fd_.get(), {JoinFrame::Kind::introduction, introduction_}, kReachMs))
    return Status::error(fmt::format("{} has gone", at.text()), GCCL_ERR_PEER_LOST);
  keep_alive(fd_.get(), 4, 2, 3);  // a member whose machine is gone, or cut off, says nothing
  JoinFrame frame;
  if (Status s = await_admission(token, &frame); !s.ok())
    return Status::error(fmt::format("{}: {}", at.text(), s.text()), s.code());
  BytesIn in(frame.bytes);
  if (frame.kind == JoinFrame::Kind::refused) {
    const int code = int(in.u32());
    *again = false;
    return Status::error(fmt::format("the job at {} refused this process: {}", place_.store(), to_text(in.rest())),
                         is_error(code) ? code : GCCL_ERR_REMOTE);
  }
  out->rank = in.u32();
  out->size = size_ = in.u32();
  out->joined.clear();
  while (in.ok() && !in.rest().empty()) out->joined.push_back(in.u32());
  const bool in_range = std::ranges::all_of(out->joined, [&](Rank r) { return r < size_; });
  if (frame.kind != JoinFrame::Kind::admitted || !in.ok() || !in_range ||
      std::ranges::count(out->joined, out->rank) != 1)
    return Status::error(fmt::format("{}: the answer makes no sense: is it of the same release?", at.text()),
                         GCCL_ERR_REMOTE);
  return {};
}

// Of a member that may be stopped, or cut off, before it has admitted anybody: then another one names its own place, at
// a file store.
Status Applicant::await_admission(const JoinPlace::Token& token, JoinFrame* out) {
  JoinPlace::Token now{};
  if (token == now) return await(out, limit());
  for (;;) {
    if (Status s = await(out, limit().earlier(Deadline::in_ms(kAskAgainMs)));
        s.code() != GCCL_ERR_TIMEOUT || limit().passed())
      return s;
    std::vector<SocketAddress> addresses;
    if (place_.find(&addresses, &now).ok() && !addresses.empty() && now != token)
      return Status::error("another member admits processes by now", GCCL_ERR_PEER_LOST);
  }
}

Status Applicant::await(JoinFrame* out, Deadline deadline) {
  for (;;) {
    const JoinFrameReader::State state = reader_.read(fd_.get(), out);
    if (state == JoinFrameReader::State::complete) return {};
    if (state == JoinFrameReader::State::closed)
      return Status::error("the member that admits others has closed the connection", GCCL_ERR_PEER_LOST);
    if (!wait_for(fd_.get(), POLLIN, deadline))
      return Status::error("the member that admits others is silent", GCCL_ERR_TIMEOUT);
  }
}

Status Applicant::all_gather(std::span<const std::byte> mine, std::vector<std::byte>* all, std::int64_t timeout_ms) {
  if (!fd_) return Status::error("the member that admits others has gone", GCCL_ERR_PEER_LOST);
  JoinFrame frame;
  const Deadline deadline = Deadline::in_ms(timeout_ms).earlier(Deadline::in_ms(INT32_MAX));
  if (!write_join_frame(fd_.get(), {JoinFrame::Kind::data, {mine.begin(), mine.end()}}, deadline.left_ms()))
    return Status::error("the member that admits others has gone", GCCL_ERR_PEER_LOST);
  if (Status s = await(&frame, Deadline::in_ms(deadline.left_ms() + kGraceMs)); !s.ok()) return s;
  if (frame.kind == JoinFrame::Kind::again)
    return Status::error("not all ranks could be connected: the members begin anew", GCCL_ERR_PEER_LOST);
  if (frame.kind != JoinFrame::Kind::data || frame.bytes.size() != mine.size() * size_)
    return Status::error("the members exchange different lengths", GCCL_ERR_MISMATCH);
  *all = std::move(frame.bytes);
  return {};
}

Applicant::Verdict Applicant::verdict() {
  if (verdict_ != Verdict::none) return verdict_;
  JoinFrame frame;
  switch (reader_.read(fd_.get(), &frame)) {
    case JoinFrameReader::State::incomplete: return Verdict::none;
    case JoinFrameReader::State::complete:
      verdict_ = frame.kind == JoinFrame::Kind::member ? Verdict::member : Verdict::again;
      word_ = std::move(frame.bytes);
      break;
    case JoinFrameReader::State::closed: verdict_ = Verdict::gone; break;
  }
  fd_.reset();
  return verdict_;
}

void Applicant::drop(const Status& why) {
  fd_.reset();
  last_ = why.text();
}

}  // namespace gccl
