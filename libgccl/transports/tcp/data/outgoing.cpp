#include "libgccl/transports/tcp/data/outgoing.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <system_error>

#include "libgccl/base/crc32c.hpp"

namespace gccl::tcp {
namespace {

// Indices into GCCL_Transfer::backend.
constexpr int kAssigned = 0;   // bytes given to streams
constexpr int kUnwritten = 1;  // bytes that no socket has taken yet

// So much is copied between two looks at what arrives.
constexpr std::uint64_t kCopyStepBytes = 64 << 10;

bool complete(const GCCL_Transfer* t) { return t->backend[kUnwritten] == 0 && t->backend[ZeroCopy::kPending] == 0; }

// What every header says besides.
void acknowledge(Frame* frame, Stream* s) {
  frame->acknowledged = s->said = s->vouched();
  s->answer = false;
}

}  // namespace

void Outgoing::post(GCCL_Transfer* t) {
  t->backend[kAssigned] = 0;
  t->backend[kUnwritten] = t->bytes;
  t->backend[ZeroCopy::kPending] = 0;
  queue_.push(t);
  if (!assigning_) assigning_ = t;
}

bool Outgoing::assign(Stream* s, bool first_stream, bool alone) {
  GCCL_Transfer* const t = assigning_;
  if (!t || (t->backend[kAssigned] == 0 && !first_stream)) return false;
  Frame frame;
  frame.sequence = std::uint32_t(t->backend[NumberedQueue::kSequence]);
  frame.message_bytes = t->bytes;
  frame.signature = t->signature;
  frame.offset = t->backend[kAssigned];
  const std::uint64_t rest = t->bytes - frame.offset;
  frame.bytes = s->cut(rest, t->bytes, alone);
  frame.acknowledge = s->zero_copy.pays(frame.bytes);
  if (s->mends) {
    acknowledge(&frame, s);
    const std::uint64_t behind = s->cuts_tail(t->bytes, alone) ? Stream::kTailBytes : 0;
    frame.answer = rest - frame.bytes == behind && t->bytes > Stream::kAnswerMin;
  }
  if (s->checks) frame.payload_crc = crc32c({static_cast<const std::byte*>(t->data) + frame.offset, frame.bytes});
  encode(frame, s->header, s->checks);
  s->sending = t;
  s->header_left = kFrameHeaderBytes;
  s->offset = frame.offset;
  s->left = frame.bytes;
  t->backend[kAssigned] += frame.bytes;
  if (frame.bytes == rest) assigning_ = t->next;
  return true;
}

// What the peer waits for, with no message to go along with.
void Outgoing::control(Stream* s) {
  Frame frame;
  frame.control = true;
  acknowledge(&frame, s);
  encode(frame, s->header, s->checks);
  s->header_left = kFrameHeaderBytes;
  s->offset = s->left = 0;
}

void Outgoing::finish(GCCL_Transfer* t, Completions* done) {
  assert(t->backend[kAssigned] == t->bytes && assigning_ != t);
  queue_.remove(t);
  done->add(t, GCCL_SUCCESS);
}

// Neither the kernel needs its memory any more, nor a connection to come.
void Outgoing::released(GCCL_Transfer* t, Completions* done) {
  if (!complete(t)) return;
  --awaiting_;
  finish(t, done);
}

bool Outgoing::write(Streams& streams, Stream* s, bool first_stream, Completions* done, int* error) {
  if (s->deaf && !s->sending && !assigning_) return true;
  Visit visit;
  if (s->sent.behind()) {
    const IoResult written = write_again(s, &visit, error);
    if (written != IoResult::all) return written == IoResult::some;
  }
  const auto owes = [&] {
    if (!s->mends || !s->owes_acknowledgement()) return false;
    control(s);
    return true;
  };
  while (s->header_left > 0 || s->sending || assign(s, first_stream, streams.size() == 1) || owes()) {
    const std::uint64_t before = s->left;
    const IoResult written = write_frame(s, &visit, error);
    GCCL_Transfer* const t = s->sending;
    if (t) t->backend[kUnwritten] -= before - s->left;
    if (written == IoResult::failed) return false;
    if (written == IoResult::some) break;
    s->sending = nullptr;
    if (t) s->messages_end = s->sent.end();
    if (!t || t->backend[kUnwritten] > 0) continue;
    if (complete(t)) {
      finish(t, done);
    } else {
      ++awaiting_;
    }
  }
  return true;
}

bool Outgoing::advance(Streams& streams, Completions* done, std::string* problem) {
  const auto release = [&](GCCL_Transfer* t) { released(t, done); };
  for (std::size_t i = 0; i < streams.size(); ++i) {
    Stream* const s = streams[i].get();
    if (!s || s->state != Stream::State::open) continue;
    if (s->acknowledged > s->sent.begin() && !s->sent.acknowledge(s->acknowledged, release)) {
      *problem = "the peer acknowledged what it was not sent";
      return false;
    }
    while (s->zero_copy.pending() && s->zero_copy.reap(s->fd.get(), release)) {
    }
    int error = 0;
    if (write(streams, s, i == 0, done, &error)) continue;
    *problem = std::generic_category().message(error);
    if (!s->mends) return false;
    // A peer that has left reads no acknowledgements. What it sent before is here, and is lost with the connection.
    if (queue_.empty() && s->unread()) {
      s->deaf = true;
      continue;
    }
    break_off(s, *problem, done);
  }
  return true;
}

// How much of the first one.
std::uint64_t Outgoing::awaited_bytes(const Streams& streams) const {
  std::uint64_t bytes = 0;
  for (const auto& s : streams) bytes += s ? s->sent.referred(queue_.front()) : 0;
  return bytes;
}

void Outgoing::copy_some(Streams& streams, Completions* done) {
  // Pages of a connection that ended may still be on their way to a peer that has not noticed.
  if (!std::ranges::all_of(streams, [](const auto& s) { return !s || s->state == Stream::State::open; })) return;
  const auto whole = [](const GCCL_Transfer* t) { return t->backend[kUnwritten] == 0; };
  for (auto& s : streams)
    if (s && !s->zero_copy.pending() &&
        s->sent.copy_some(kCopyStepBytes, whole, [&](GCCL_Transfer* t) { released(t, done); }))
      return;
}

void Outgoing::break_off(Stream* s, const std::string& problem, Completions* done) {
  s->break_off(problem, [&](GCCL_Transfer* t) { released(t, done); });
}

Stream::Resumed Outgoing::resume(Stream* s, Completions* done, std::string* problem) {
  return s->resume([&](GCCL_Transfer* t) { released(t, done); }, problem);
}

bool Outgoing::cancel(Streams& streams, GCCL_Transfer* t) {
  if (assigning_ == t) assigning_ = t->next;
  if (!queue_.remove(t)) return false;
  const bool begun = t->backend[kAssigned] > 0;
  if (begun && t->backend[kUnwritten] == 0) --awaiting_;
  for (auto& s : streams) {
    if (!s || !(s->sending == t || (begun && (s->zero_copy.pending() || s->sent.referred(t) > 0)))) continue;
    // The kernel lets go of the user's pages, and the peer does not wait for the rest.
    const linger now{1, 0};
    setsockopt(s->fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    s.reset();
  }
  return true;
}

}  // namespace gccl::tcp
