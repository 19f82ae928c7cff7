#include "libgccl/transports/tcp/data/outgoing.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cassert>

namespace gccl::tcp {
namespace {

// Indices into GCCL_Transfer::backend.
constexpr int kAssigned = 0;   // bytes given to streams
constexpr int kUnwritten = 1;  // bytes that no socket has taken yet

bool complete(const GCCL_Transfer* t) { return t->backend[kUnwritten] == 0 && t->backend[ZeroCopy::kPending] == 0; }

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
  frame.bytes = alone ? rest : std::min(rest, kStripeBytes);
  frame.acknowledge = s->zero_copy.pays(frame.bytes);
  encode(frame, s->header);
  s->sending = t;
  s->header_left = kFrameHeaderBytes;
  s->offset = frame.offset;
  s->left = frame.bytes;
  t->backend[kAssigned] += frame.bytes;
  if (frame.bytes == rest) assigning_ = t->next;
  return true;
}

void Outgoing::finish(GCCL_Transfer* t, Completions* done) {
  assert(t->backend[kAssigned] == t->bytes && assigning_ != t);
  queue_.remove(t);
  done->add(t, GCCL_SUCCESS);
}

bool Outgoing::advance(Streams& streams, Completions* done, int* error) {
  for (std::size_t i = 0; i < streams.size(); ++i) {
    Stream* const s = streams[i].get();
    if (!s) continue;
    while (s->zero_copy.pending() && s->zero_copy.reap(s->fd.get(), [&](GCCL_Transfer* t) {
      if (complete(t)) finish(t, done);
    })) {
    }
    Visit visit;
    while (s->sending || assign(s, i == 0, streams.size() == 1)) {
      const std::uint64_t before = s->left;
      const IoResult written = write_frame(s, &visit, error);
      if (written == IoResult::failed) return false;
      GCCL_Transfer* const t = s->sending;
      t->backend[kUnwritten] -= before - s->left;
      if (written == IoResult::some) break;
      s->sending = nullptr;
      if (complete(t)) finish(t, done);
    }
  }
  return true;
}

bool Outgoing::cancel(Streams& streams, GCCL_Transfer* t) {
  if (assigning_ == t) assigning_ = t->next;
  if (!queue_.remove(t)) return false;
  const bool begun = t->backend[kAssigned] > 0;
  for (auto& s : streams) {
    if (!s || !(s->sending == t || (begun && s->zero_copy.pending()))) continue;
    // The kernel lets go of the user's pages, and the peer does not wait for the rest.
    const linger now{1, 0};
    setsockopt(s->fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    s.reset();
  }
  return true;
}

}  // namespace gccl::tcp
