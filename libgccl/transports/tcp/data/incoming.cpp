#include "libgccl/transports/tcp/data/incoming.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "libgccl/base/crc32c.hpp"

namespace gccl::tcp {
namespace {

// Indices into GCCL_Transfer::backend.
constexpr int kTaken = 0;      // bytes that have arrived (consumed ones and the carry included)
constexpr int kAnnounced = 1;  // bytes of the frames that have begun

// listen() reads so far ahead. The kernel's buffers alone hold less: a peer that sends more before this rank receives
// waits without listen(), too.
constexpr std::size_t kListenBytes = 16 << 20, kListenPieceBytes = 64 << 10;

enum class Read { some, none, failed };

Read read_from(Stream* s, void* to, std::size_t bytes, std::size_t* got, std::string* problem) {
  for (;;) {
    const ssize_t n = recv(s->fd.get(), to, bytes, MSG_DONTWAIT);
    if (n > 0) {
      s->moved_bytes += std::uint64_t(n);
      s->taken_in += std::uint64_t(n);
      *got = std::size_t(n);
      return Read::some;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      s->waits.empty(s->fd.get(), s->in_frame ? s->incoming.bytes : 0, s->taken_in);
      return Read::none;
    }
    *problem = n == 0 ? kClosed : std::generic_category().message(errno);
    s->ended = true;
    return Read::failed;
  }
}

// Where frames are checked the last but one is answered, at its end.
std::uint64_t until_answer(const Stream& s, std::uint64_t left) {
  return s.incoming.answer && !s.answered && !s.checks && left > Stream::kTailBytes ? left - Stream::kTailBytes : left;
}

// Once for each such frame: the link says it now, and reads on then.
bool answers_now(Stream* s, std::uint64_t left) {
  if (!s->incoming.answer || s->answered || s->checks || left > Stream::kTailBytes) return false;
  return s->answer = s->answered = true;
}

// Now rather than up to 40 ms later, in the hope of something to send along.
void acknowledge(int fd) {
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &yes, sizeof yes);
}

}  // namespace

void Incoming::post(GCCL_Transfer* t) {
  t->backend[kTaken] = t->backend[kAnnounced] = 0;
  queue_.push(t);
}

// Reads toward the next header. For short messages whatever has arrived, several messages perhaps; for a long one the
// header and, in the same system call, the payload to where it goes, should it be the one that is waited for.
Incoming::Step Incoming::read_ahead(Stream* s, bool first_stream, std::string* problem) {
  const GCCL_Transfer* const t = queue_.front();
  assert(!s->in_frame && s->prepaid == 0 && s->ahead.size() < kFrameHeaderBytes);
  const bool is_short = t && t->bytes + kFrameHeaderBytes <= ReadAhead::kBytes;
  std::span<std::byte> room = s->ahead.room();
  if (!is_short) room = room.first(kFrameHeaderBytes - s->ahead.size());
  std::size_t got = 0;
  if (is_short || !t || t->consume || !first_stream || t->backend[kAnnounced] > 0 || s->ahead.size() > 0) {
    const Read r = read_from(s, room.data(), room.size(), &got, problem);
    if (r != Read::some) return r == Read::none ? Step::wait : Step::failed;
    s->ahead.grew(got);
    return Step::go_on;
  }
  // No more than the first frame: what is behind that would have to be copied.
  const std::uint64_t first = s->mends || s->checks ? s->cut(t->bytes, t->bytes, true) : t->bytes;
  iovec parts[2] = {{room.data(), room.size()}, {t->data, std::min(first, kVisitBytes)}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  ssize_t n;
  do n = recvmsg(s->fd.get(), &message, MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  if (n < 0 && errno == EAGAIN) {
    s->waits.empty(s->fd.get(), 0, s->taken_in);
    return Step::wait;
  }
  if (n <= 0) {
    *problem = n == 0 ? kClosed : std::generic_category().message(errno);
    s->ended = true;
    return Step::failed;
  }
  got = std::size_t(n);
  s->moved_bytes += got;
  s->taken_in += got;
  s->ahead.grew(std::min(got, room.size()));
  if (got <= room.size()) return Step::go_on;
  std::size_t direct = got - room.size();
  Frame frame;
  std::size_t belongs = 0;
  if (!decode(s->ahead.data(), &frame, s->checks) &&
      frame.sequence == std::uint32_t(t->backend[NumberedQueue::kSequence]) && frame.message_bytes == t->bytes &&
      frame.signature == t->signature && frame.offset == 0)
    belongs = std::min(direct, frame.bytes);
  // Whatever else came after the header goes the ordinary way; it is a mismatch or the next frame.
  if (direct > belongs) s->ahead.append({static_cast<const std::byte*>(t->data) + belongs, direct - belongs});
  s->prepaid = belongs;
  return Step::go_on;
}

Incoming::Step Incoming::read_header(Stream* s, bool first_stream, std::string* problem) {
  while (s->ahead.size() < kFrameHeaderBytes) {
    const Step step = read_ahead(s, first_stream, problem);
    if (step != Step::go_on) return step;
  }
  if (const char* wrong = decode(s->ahead.data(), &s->incoming, s->checks)) {
    *problem = std::string("the peer sent ") + wrong;
    s->damaged = wrong == kDamagedHeader;
    return Step::failed;
  }
  s->ahead.drop(kFrameHeaderBytes);
  s->crc = 0;
  s->acknowledged = std::max(s->acknowledged, s->incoming.acknowledged);
  s->in_frame = true;
  s->taken = 0;
  return Step::go_on;
}

namespace {

// What has just been acknowledged counts before the connection's end does: all that the peer wanted may be done. Who
// still waits for something looks again, and finds the end again. A reset is said once only, and counts at once.
bool ends_later(Stream* s, std::uint64_t acknowledged_before, const std::string& problem) {
  if (!s->ended || problem != kClosed || s->acknowledged == acknowledged_before) return false;
  s->ended = false;
  return true;
}

}  // namespace

bool Incoming::hear(Stream* s, std::string* problem) {
  const std::uint64_t before = s->acknowledged;
  while (!s->in_frame) {
    s->announced = false;
    const Step step = read_header(s, false, problem);
    if (step != Step::go_on) return step == Step::wait || ends_later(s, before, *problem);
    s->in_frame = !s->incoming.control;
    if (s->incoming.control) s->checked_in += kFrameHeaderBytes;
  }
  return true;
}

bool Incoming::listen(Stream* s, std::string* problem) {
  const std::uint64_t before = s->acknowledged;
  while (s->ahead.size() < kListenBytes) {
    const std::uint64_t begin = s->taken_in - s->ahead.size();
    s->looked_until = std::max(s->looked_until, begin + (s->in_frame ? s->incoming.bytes - s->taken : 0));
    for (Frame f; s->looked_until + kFrameHeaderBytes <= s->taken_in; s->looked_until += kFrameHeaderBytes + f.bytes) {
      if (const char* wrong = decode(s->ahead.data() + (s->looked_until - begin), &f, s->checks)) {
        *problem = std::string("the peer sent ") + wrong;
        s->damaged = wrong == kDamagedHeader;
        return false;
      }
      s->acknowledged = std::max(s->acknowledged, f.acknowledged);
    }
    const std::span<std::byte> room = s->ahead.more_room(kListenPieceBytes);
    std::size_t got = 0;
    const Read r = read_from(s, room.data(), room.size(), &got, problem);
    if (r != Read::some) return r == Read::none || ends_later(s, before, *problem);
    s->ahead.grew(got);
  }
  return true;
}

// The first look at a frame of a receive that waits. Completes it where the two sides differ.
Incoming::Step Incoming::begin_payload(Stream* s, GCCL_Transfer* t, Completions* done, std::string* problem) {
  const Frame& f = s->incoming;
  if (f.message_bytes != t->bytes || f.signature != t->signature) {
    t->bytes_found = f.message_bytes;
    t->signature_found = f.signature;
    if (queue_.front() == t) carry_.clear();
    queue_.remove(t);
    done->add(t, GCCL_ERR_MISMATCH);
    return Step::go_on;
  }
  if (f.bytes > t->bytes - t->backend[kAnnounced]) {
    *problem = "the peer sent a part of a message twice";
    return Step::failed;
  }
  assert(s->prepaid <= f.bytes);  // read with this header, for this frame
  t->backend[kAnnounced] += f.bytes;
  s->announced = true;
  s->taken = std::exchange(s->prepaid, 0);
  t->backend[kTaken] += s->taken;
  if (s->checks && s->taken > 0) s->crc = crc32c({static_cast<const std::byte*>(t->data) + f.offset, s->taken});
  return Step::go_on;
}

Incoming::Step Incoming::check(Stream* s, std::string* problem) {
  if (!s->checks || s->crc == s->incoming.payload_crc) return Step::go_on;
  *problem = "a message was damaged on its way (wrong checksum)";
  s->damaged = true;
  return Step::failed;
}

void Incoming::go_back(Stream* s) {
  assert(s->checks && s->checked_in <= s->taken_in);
  if (GCCL_Transfer* const t = s->in_frame && s->announced ? queue_.find(s->incoming.sequence) : nullptr) {
    t->backend[kTaken] -= s->taken;
    t->backend[kAnnounced] -= s->incoming.bytes;
  }
  s->ahead.drop(s->ahead.size());
  s->in_frame = s->announced = s->answered = false;
  s->taken = s->prepaid = 0;
  s->taken_in = s->looked_until = s->checked_in;
}

Incoming::Step Incoming::store(Stream* s, GCCL_Transfer* t, std::string* problem) {
  // begin_payload() let no other frame pass: what follows writes nowhere else.
  assert(s->incoming.offset + s->incoming.bytes <= t->bytes && s->taken <= s->incoming.bytes);
  while (s->taken < s->incoming.bytes) {
    std::byte* const to = static_cast<std::byte*>(t->data) + s->incoming.offset + s->taken;
    const std::uint64_t left = s->incoming.bytes - s->taken;
    std::size_t got = std::min<std::uint64_t>(left, s->ahead.size());
    if (got > 0) {
      std::memcpy(to, s->ahead.data(), got);
      s->ahead.drop(got);
    } else {
      if (s->may_read == 0) return Step::wait;
      if (answers_now(s, left)) return Step::wait;
      const Read r = read_from(s, to, std::min(until_answer(*s, left), s->may_read), &got, problem);
      if (r != Read::some) return r == Read::none ? Step::wait : Step::failed;
      s->may_read -= got;
    }
    if (s->checks) s->crc = crc32c({to, got}, s->crc);
    s->taken += got;
    t->backend[kTaken] += got;
  }
  return check(s, problem);
}

// Nothing of a frame goes on before all of it has been checked.
Incoming::Step Incoming::consume_checked(Stream* s, GCCL_Transfer* t, std::string* problem) {
  if (queue_.front() != t || s->incoming.offset + s->taken != t->backend[kTaken]) return Step::wait;
  const std::size_t grain = std::max(t->grain, 1u), carried = carry_.size();
  std::byte* const held = held_.at_least(carried + s->incoming.bytes);
  if (s->taken == 0) std::copy(carry_.begin(), carry_.end(), held);
  while (s->taken < s->incoming.bytes) {
    std::byte* const to = held + carried + s->taken;
    std::size_t got = std::min<std::uint64_t>(s->incoming.bytes - s->taken, s->ahead.size());
    if (got > 0) {
      std::memcpy(to, s->ahead.data(), got);
      s->ahead.drop(got);
    } else {
      if (s->may_read == 0) return Step::wait;
      const Read r = read_from(s, to, std::min(s->incoming.bytes - s->taken, s->may_read), &got, problem);
      if (r != Read::some) return r == Read::none ? Step::wait : Step::failed;
      s->may_read -= got;
    }
    s->crc = crc32c({to, got}, s->crc);
    s->taken += got;
    t->backend[kTaken] += got;
  }
  if (const Step step = check(s, problem); step != Step::go_on) return step;
  const std::size_t all = carried + s->incoming.bytes;
  const std::size_t whole = t->backend[kTaken] == t->bytes ? all : all - all % grain;
  if (whole > 0) t->consume(t, held, t->backend[kTaken] - all, whole);
  carry_.assign(held + whole, held + all);
  return Step::go_on;
}

Incoming::Step Incoming::consume(Stream* s, GCCL_Transfer* t, Staging* staging, std::string* problem) {
  // Pieces come in order: parts that arrived over another stream wait for what lies before them.
  if (queue_.front() != t || s->incoming.offset + s->taken != t->backend[kTaken]) return Step::wait;
  const std::size_t grain = std::max(t->grain, 1u);
  std::byte* const piece = staging->get(t->grain);
  while (s->taken < s->incoming.bytes) {
    std::copy(carry_.begin(), carry_.end(), piece);
    const std::uint64_t left = s->incoming.bytes - s->taken;
    const std::size_t room = staging->bytes() - carry_.size();
    std::size_t got = std::min<std::uint64_t>({left, room, s->ahead.size()});
    if (got > 0) {
      std::memcpy(piece + carry_.size(), s->ahead.data(), got);
      s->ahead.drop(got);
    } else {
      if (s->may_read == 0) return Step::wait;
      if (answers_now(s, left)) return Step::wait;
      const std::uint64_t most = std::min<std::uint64_t>({until_answer(*s, left), room, s->may_read});
      const Read r = read_from(s, piece + carry_.size(), most, &got, problem);
      if (r != Read::some) return r == Read::none ? Step::wait : Step::failed;
      s->may_read -= got;
    }
    s->taken += got;
    t->backend[kTaken] += got;
    const std::size_t held = carry_.size() + got;
    const std::size_t whole = t->backend[kTaken] == t->bytes ? held : held - held % grain;
    if (whole > 0) t->consume(t, piece, t->backend[kTaken] - held, whole);
    carry_.assign(piece + whole, piece + held);
  }
  return Step::go_on;
}

// The payload of a message whose receive is over (a mismatch).
Incoming::Step Incoming::discard(Stream* s, Staging* staging, std::string* problem) {
  while (s->taken < s->incoming.bytes) {
    const std::uint64_t left = s->incoming.bytes - s->taken;
    std::size_t got = std::min<std::uint64_t>(left, s->ahead.size());
    if (got > 0) {
      s->ahead.drop(got);
    } else {
      std::byte* const nowhere = staging->get(1);
      const Read r = read_from(s, nowhere, std::min<std::uint64_t>(left, staging->bytes()), &got, problem);
      if (r != Read::some) return r == Read::none ? Step::wait : Step::failed;
    }
    s->taken += got;
  }
  return Step::go_on;
}

bool Incoming::may_bring(const Stream& s, bool first_stream) const {
  const GCCL_Transfer* const t = queue_.front();
  if (s.ended || (!first_stream && !over_several())) return false;
  if (!s.in_frame) return true;
  const auto later = std::int32_t(s.incoming.sequence - std::uint32_t(t->backend[NumberedQueue::kSequence]));
  if (later > 0) return false;
  return later < 0 || !t->consume || s.incoming.offset + s.taken <= t->backend[kTaken];
}

bool Incoming::cut_off(const Stream& s, bool first_stream) const {
  const GCCL_Transfer* const t = queue_.front();
  if (!s.ended) return false;
  if (first_stream && t->backend[kAnnounced] == 0) return true;
  return s.in_frame && s.incoming.sequence == std::uint32_t(t->backend[NumberedQueue::kSequence]);
}

bool Incoming::advance(Stream* s, bool first_stream, Completions* done, Staging* staging, std::string* problem) {
  for (;;) {
    if (!s->in_frame) {
      s->announced = false;
      const Step step = read_header(s, first_stream, problem);
      if (step != Step::go_on) return step == Step::wait;
    }
    if (s->incoming.control) {
      s->in_frame = false;
      s->checked_in += kFrameHeaderBytes;
      if (queue_.empty()) return true;
      continue;
    }
    Step step;
    GCCL_Transfer* t = queue_.find(s->incoming.sequence);
    if (t && !s->announced) {
      step = begin_payload(s, t, done, problem);
      if (step != Step::go_on) return false;
      if (!s->announced) t = nullptr;
    }
    if (t) {
      step = !t->consume ? store(s, t, problem)
             : s->checks ? consume_checked(s, t, problem)
                         : consume(s, t, staging, problem);
    } else {
      // Its receive is yet to come, or is over.
      if (std::int32_t(s->incoming.sequence - queue_.next_sequence()) >= 0) return true;
      step = discard(s, staging, problem);
    }
    if (step != Step::go_on) return step == Step::wait;
    s->in_frame = false;
    s->checked_in += kFrameHeaderBytes + s->incoming.bytes;
    s->waits.frame_ends(s->incoming.bytes, s->taken_in);
    if (s->incoming.acknowledge) acknowledge(s->fd.get());
    s->answer = s->answer || (s->incoming.answer && !s->answered);
    s->answered = false;
    if (t && t->backend[kTaken] == t->bytes) {
      queue_.remove(t);
      done->add(t, GCCL_SUCCESS);
    }
    if (queue_.empty()) return true;
  }
}

}  // namespace gccl::tcp
