#include "libgccl/backends/shm/shm_port.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "libgccl/backends/shm/memory_of_peer.hpp"

namespace gccl::shm {
namespace {

// What a port tells its peers.
struct Address {
  std::uint32_t present;
  std::uint32_t pid;
  std::uint64_t probe;  // the address of probe_value, to try reading memory on
  std::uint64_t probe_value;
  char segment[64];
};
static_assert(sizeof(Address) <= GCCL_BACKEND_ADDRESS_BYTES);

constexpr std::uint64_t kFetchBytes = 128 * 1024;      // at a time when combined on the way: less than a level-2 cache
constexpr std::uint64_t kTurnBytes = 8 * 1024 * 1024;  // read for one transfer before it is the others' turn
// The system reads what another core has just written at half the speed at which programs do.
constexpr std::uint64_t kFreshBytes = 4 * 1024 * 1024;
// Through chunks both sides copy at once, where the sender has nothing else to do; that pays where the system's single
// copy has to go to memory.
constexpr std::uint64_t kCachedBytes = 32 * 1024 * 1024;
constexpr std::uint64_t kPastCaches = 4 * 1024 * 1024;  // messages from here on that need no system call to be copied
constexpr std::uint32_t kPollsBetweenChecks = 20000;

// What peers must find when they read this process's memory.
const std::uint64_t& probe_value() {
  static const std::uint64_t value = process_start(std::uint32_t(::getpid())) * 0x9e3779b97f4a7c15 | 1;
  return value;
}

}  // namespace

Status Port::open(const GCCL_Port_spec& spec, std::unique_ptr<Port>* out, void* address) {
  auto p = std::make_unique<Port>();
  p->rank_ = spec.rank;
  p->channels_ = spec.channels;
  p->place_.assign(spec.size, kNowhere);
  for (Rank r = 0; r < spec.size; ++r) {
    if (spec.node[r] != spec.node[spec.rank]) continue;
    ++p->node_ranks_;
    if (r == spec.rank) continue;
    p->place_[r] = std::uint32_t(p->neighbours_.size());
    p->neighbours_.push_back({.rank = r, .segment = nullptr});
  }
  if (p->neighbours_.empty()) {
    *out = std::move(p);
    return {};
  }
  const Status s = Segment::create(p->node_ranks_ * p->channels_, &p->segment_);
  if (!s.ok()) return s;
  Address a{};
  a.present = 1;
  a.pid = std::uint32_t(::getpid());
  a.probe = reinterpret_cast<std::uint64_t>(&probe_value());
  a.probe_value = probe_value();
  std::snprintf(a.segment, sizeof a.segment, "%s", p->segment_->name().c_str());
  std::memcpy(address, &a, sizeof a);
  *out = std::move(p);
  return {};
}

Status Port::connect(const GCCL_Port_spec& spec, const void* addresses, std::uint8_t* reaches) {
  // Place of a rank among all ranks of its node: the pipe to it, in any writer's segment, has that place.
  std::uint32_t mine = 0, place = 0;
  for (Rank r = 0; r < spec.rank; ++r) mine += spec.node[r] == spec.node[spec.rank];
  const char* setting = std::getenv("GCCL_SHM_LEND");
  const bool lend = !setting || std::strcmp(setting, "0") != 0;
  ends_.resize(neighbours_.size() * channels_ * 2);
  for (std::uint32_t i = 0; i < neighbours_.size(); ++i) {
    Neighbour& n = neighbours_[i];
    if (place == mine) ++place;
    Address a;
    std::memcpy(&a, static_cast<const std::byte*>(addresses) + std::size_t(n.rank) * GCCL_BACKEND_ADDRESS_BYTES,
                sizeof a);
    a.segment[sizeof a.segment - 1] = 0;
    if (!a.present) {
      place_[n.rank] = kNowhere;
      ++place;
      continue;
    }
    const Status s = Segment::open(a.segment, node_ranks_ * channels_, &n.segment);
    if (!s.ok()) return s;
    n.same_process = a.pid == std::uint32_t(::getpid());
    std::uint64_t seen = 0;
    const bool can_fetch =
        lend && (n.same_process || (read_memory_of(a.pid, a.probe, &seen, sizeof seen) && seen == a.probe_value));
    for (std::uint32_t c = 0; c < channels_; ++c) {
      End& out = ends_[(i * channels_ + c) * 2];
      out.peer = n.rank;
      out.index = place * channels_ + c;
      out.writer = Writer(segment_->pipe(out.index));
      End& in = ends_[(i * channels_ + c) * 2 + 1];
      in.peer = n.rank;
      in.receives = true;
      in.index = mine * channels_ + c;
      in.reader = Reader(n.segment->pipe(in.index));
      n.segment->pipe(in.index)->can_fetch.store(can_fetch, std::memory_order_release);
    }
    reaches[n.rank] = 1;
    ++place;
  }
  piece_.reset(static_cast<std::byte*>(::operator new(kFetchBytes, kPieceAlignment)));
  return {};
}

Port::~Port() {
  if (segment_) segment_->header().closed.store(1, std::memory_order_release);
}

void Port::list(End& e) {
  if (e.listed) return;
  e.listed = true;
  active_.push_back(&e);
}

int Port::send(GCCL_Transfer* t) {
  End& e = *end(t->peer, t->channel, false);
  t->next = nullptr;
  t->result = GCCL_SUCCESS;
  t->backend[0] = 0;
  if (e.first) {
    e.last->next = t;
    e.last = t;
    return 0;
  }
  e.first = e.last = t;
  if (advance_send(e, t)) {
    e.first = nullptr;
    if (t->backend[1] == 0) return 1;
    t->next = nullptr;  // lent
    if (e.lent)
      e.lent_last->next = t;
    else
      e.lent = t;
    e.lent_last = t;
  }
  list(e);
  return 0;
}

int Port::receive(GCCL_Transfer* t) {
  End& e = *end(t->peer, t->channel, true);
  t->next = nullptr;
  t->result = GCCL_SUCCESS;
  t->backend[0] = 0;
  t->backend[1] = 0;
  if (e.first) {
    e.last->next = t;
    e.last = t;
    return 0;
  }
  e.first = e.last = t;
  if (t->bytes < kLendBytes && advance_receive(e, t)) {
    e.first = nullptr;
    return 1;
  }
  list(e);
  return 0;
}

namespace {

// Everything of the cell but who it is from.
void write_piece(End& e, Cell* c, const std::byte* from, std::uint32_t bytes, std::uint32_t offset, bool last) {
  copy(e.writer.next_chunk() + offset, from, bytes);
  c->piece_bytes = bytes;
  c->far.place = offset;
  c->ends_chunk = last || offset + bytes == kChunkBytes;
  if (c->ends_chunk) e.writer.use_chunk();
}

}  // namespace

Port::Put Port::put_pieces(End& e, std::uint64_t signature, const std::byte* data, std::uint32_t bytes) {
  if (!chunks(e)) return Put::no_memory;
  if (!e.writer.room(pieces(bytes)) || !e.writer.next_chunk()) return Put::pipe_full;
  for (std::uint32_t at = 0; at < bytes; at += kPieceBytes) {
    Cell* const c = e.writer.next();
    const std::uint32_t piece = std::min(bytes - at, kPieceBytes);
    write_piece(e, c, data + at, piece, at, at + piece == bytes);
    c->kind = at == 0 ? CellKind::first : CellKind::more;
    c->far.message_bytes = bytes;
    c->signature = signature;
    e.writer.publish(c);
  }
  return Put::done;
}

// Whether the peer is to read the message where it is.
bool Port::lends(End& e, const GCCL_Transfer& t, Shared_place* shared) {
  if (t.bytes < kLendBytes || !e.writer.pipe()->can_fetch.load(std::memory_order_acquire)) return false;
  if ((t.hints & GCCL_HINT_FRESH) && t.bytes < kFreshBytes) return false;
  *shared = shared_place(t.data, t.bytes);
  return !(t.hints & GCCL_HINT_ONE_WAY) || t.bytes <= kCachedBytes || shared->number != 0;
}

// True once nothing is left to write. backend[0]: bytes written; backend[1]: cells to be read before the memory is
// free.
bool Port::advance_send(End& e, GCCL_Transfer* t) {
  t->backend[1] = 0;
  do {
    Cell* c = e.writer.next();
    if (!c) return false;
    c->signature = t->signature;
    const auto* from = static_cast<const std::byte*>(t->data) + t->backend[0];
    const std::uint64_t rest = t->bytes - t->backend[0];
    if (t->bytes <= kInlineBytes) {
      c->kind = CellKind::inline_data;
      c->piece_bytes = std::uint32_t(t->bytes);
      if (t->bytes) std::memcpy(c->data, from, t->bytes);
      e.writer.publish(c);
      return true;
    }
    if (Shared_place shared{}; t->backend[0] == 0 && lends(e, *t, &shared)) {
      c->kind = CellKind::address;
      c->piece_bytes = 0;
      c->far.message_bytes = t->bytes;
      c->far.place = reinterpret_cast<std::uint64_t>(t->data);
      c->far.shared = shared;
      e.writer.publish(c);
      t->backend[1] = std::uint64_t(e.writer.written()) | std::uint64_t(1) << 32;
      return true;
    }
    if (!chunks(e)) {
      fail(GCCL_ERR_SYSTEM, rank_, "/dev/shm is full: free it, or mount it larger (docker run --shm-size)");
      return false;
    }
    if (!e.writer.next_chunk()) return false;
    const auto piece = std::uint32_t(std::min<std::uint64_t>(rest, kPieceBytes));
    write_piece(e, c, from, piece, std::uint32_t(t->backend[0] % kChunkBytes), rest == piece);
    c->kind = t->backend[0] == 0 ? CellKind::first : CellKind::more;
    c->far.message_bytes = t->bytes;
    e.writer.publish(c);
    t->backend[0] += piece;
  } while (t->backend[0] < t->bytes);
  return true;
}

namespace {

void deliver(GCCL_Transfer* t, const std::byte* piece, std::uint64_t bytes) {
  if (t->consume) {
    t->consume(t, piece, t->backend[0], bytes);
  } else if (bytes >= 1) {
    std::memcpy(static_cast<std::byte*>(t->data) + t->backend[0], piece, bytes);
  }
  t->backend[0] += bytes;
}

// Notes the difference; true when there is one.
bool differs(GCCL_Transfer* t, std::uint64_t signature, std::uint64_t bytes) {
  if (t->signature == signature && t->bytes == bytes) return false;
  t->signature_found = signature;
  t->bytes_found = bytes;
  t->result = GCCL_ERR_MISMATCH;
  return true;
}

}  // namespace

// True once the transfer is complete. backend[0]: bytes received.
bool Port::advance_receive(End& e, GCCL_Transfer* t) {
  for (;;) {
    const Cell* c = e.reader.peek();
    if (!c) return false;
    switch (c->kind) {
      case CellKind::inline_data:
        if (!differs(t, c->signature, c->piece_bytes)) deliver(t, c->data, c->piece_bytes);
        e.reader.pop_inline();
        return true;
      case CellKind::first:
        if (differs(t, c->signature, c->far.message_bytes)) return true;
        [[fallthrough]];
      case CellKind::more:
        deliver(t, e.reader.chunk() + c->far.place, c->piece_bytes);
        e.reader.pop_piece(c->ends_chunk);
        if (t->backend[0] == t->bytes) return true;
        break;
      case CellKind::address:
        if (differs(t, c->signature, c->far.message_bytes)) return true;
        for (const std::uint64_t turn = t->backend[0] + kTurnBytes; t->backend[0] < t->bytes;)
          if (t->backend[0] >= turn || !fetch(e, t, *c)) return false;
        e.reader.pop_address();
        return true;
    }
  }
}

bool Port::fetch(End& e, GCCL_Transfer* t, const Cell& c) {
  Neighbour& n = neighbour(e);
  // A peer that gives up takes back what it has lent, and says so before: what is read until then is good.
  const auto lent_still = [&] {
    std::atomic_thread_fence(std::memory_order_acquire);
    return n.segment->header().fault_state.load(std::memory_order_relaxed) == 0 || (heard_fault(n), false);
  };
  if (!lent_still()) return false;
  const std::uint64_t rest = t->bytes - t->backend[0];
  const std::uint64_t bytes = std::min(rest, t->consume ? kFetchBytes : kTurnBytes);
  std::byte* const to = static_cast<std::byte*>(t->data) + t->backend[0];
  const std::uint64_t from = c.far.place + t->backend[0];
  const std::uint32_t pid = n.segment->header().owner_pid;
  const std::byte* there = nullptr;
  if (n.same_process) {
    there = reinterpret_cast<const std::byte*>(from);
  } else if (c.far.shared.number != 0) {
    there = n.mapped.at(pid, n.segment->header().owner_start, c.far.shared, t->bytes);
    if (there) there += t->backend[0];
  }
  if (there) {
    if (t->consume && reinterpret_cast<std::uintptr_t>(there) % kLine != 0) {
      std::memcpy(piece_.get(), there, bytes);
      t->consume(t, piece_.get(), t->backend[0], bytes);
    } else if (t->consume) {
      t->consume(t, there, t->backend[0], bytes);
    } else if (t->bytes >= kPastCaches) {
      copy_past_caches(to, there, bytes);
    } else {
      std::memcpy(to, there, bytes);
    }
    if (!lent_still()) return false;
  } else {
    if (!read_memory_of(pid, from, t->consume ? piece_.get() : to, bytes)) {
      const int error = errno;
      if (!lent_still()) return false;
      // A process that is on its way out has no memory any more, but still a number.
      if (error == ESRCH || process_start(pid) != n.segment->header().owner_start) {
        fail(GCCL_ERR_PEER_LOST, e.peer, "its process (" + std::to_string(pid) + ") has died");
      } else {
        fail(GCCL_ERR_SYSTEM, e.peer,
             "cannot read the memory of rank " + std::to_string(e.peer) + ": " + std::strerror(error));
      }
      return false;
    }
    if (!lent_still()) return false;
    if (t->consume) t->consume(t, piece_.get(), t->backend[0], bytes);
  }
  t->backend[0] += bytes;
  return true;
}

// Moves the end's transfers on; false when none is left.
bool Port::advance(End& e, GCCL_Transfer** done, int max, int* count) {
  while (e.lent && *count < max && e.writer.read_up_to(std::uint32_t(e.lent->backend[1]))) {
    done[(*count)++] = e.lent;
    e.lent = e.lent->next;
  }
  while (e.first && *count < max) {
    GCCL_Transfer* const t = e.first;
    if (!(e.receives ? advance_receive(e, t) : advance_send(e, t))) break;
    e.first = t->next;
    if (!e.receives && t->backend[1] != 0) {
      t->next = nullptr;
      if (e.lent)
        e.lent_last->next = t;
      else
        e.lent = t;
      e.lent_last = t;
    } else {
      done[(*count)++] = t;
    }
  }
  return e.first || e.lent;
}

int Port::poll(GCCL_Transfer** done, int max) {
  if (failed_) return -1;
  int count = 0;
  for (std::size_t i = 0; i < active_.size() && count < max;) {
    End& e = *active_[i];
    if (advance(e, done, max, &count)) {
      ++i;
    } else {
      e.listed = false;
      active_[i] = active_.back();
      active_.pop_back();
    }
  }
  if (count > 0) {
    idle_polls_ = 0;
  } else if (!failed_ && (active_.empty() || ++idle_polls_ % kPollsBetweenChecks == 0)) {
    healthy();  // who polls without transfers wants to know nothing else
  }
  return failed_ ? -1 : count;
}

void Port::fail(int result, Rank peer, const std::string& text) {
  if (failed_) return;
  failed_ = true;
  fault_.result = result;
  fault_.peer = peer;
  std::snprintf(fault_.text, sizeof fault_.text, "%s", text.c_str());
}

// True when the neighbour has said why it gave up; then so does this port.
bool Port::heard_fault(Neighbour& n) {
  Header& h = n.segment->header();
  if (h.fault_state.load(std::memory_order_acquire) != 2) return false;
  fault_ = h.fault;
  fault_.text[sizeof fault_.text - 1] = 0;
  failed_ = true;
  return true;
}

bool Port::healthy(const End* waiting) {
  for (Neighbour& n : neighbours_) {
    if (!n.segment || failed_) continue;
    Header& h = n.segment->header();
    if (heard_fault(n)) return false;
    const auto missing = [&n](const End& e) { return e.peer == n.rank && !(e.receives && e.reader.peek()); };
    const auto missed = [&] {
      return (waiting && missing(*waiting)) ||
             std::any_of(active_.begin(), active_.end(), [&](End* e) { return missing(*e); });
    };
    if (!missed()) continue;
    const bool closed = h.closed.load(std::memory_order_acquire) != 0;
    if (!closed && (n.same_process || process_start(h.owner_pid) == h.owner_start)) continue;
    // Who has left may have written all that is due before: only a pipe with nothing in it is a loss.
    if (missed())
      fail(GCCL_ERR_PEER_LOST, n.rank,
           closed ? "it has freed the communicator or ended"
                  : "its process (" + std::to_string(h.owner_pid) + ") has died");
  }
  return !failed_;
}

void Port::cancel(GCCL_Transfer* t) {
  for (End* e : active_) {
    for (GCCL_Transfer** list : {&e->first, &e->lent}) {
      GCCL_Transfer* before = nullptr;
      for (GCCL_Transfer* x = *list; x; before = x, x = x->next) {
        if (x != t) continue;
        (before ? before->next : *list) = x->next;
        GCCL_Transfer*& last = list == &e->first ? e->last : e->lent_last;
        if (last == x) last = before;
        return;
      }
    }
  }
}

void Port::abort(const GCCL_Fault& fault) {
  if (!segment_) return;
  Header& h = segment_->header();
  std::uint32_t none = 0;
  if (!h.fault_state.compare_exchange_strong(none, 1)) return;  // the first one counts
  h.fault = fault;
  h.fault_state.store(2, std::memory_order_release);
}

}  // namespace gccl::shm
