#include "libgccl/transports/shm/shm_port.hpp"

#include <fmt/core.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "libgccl/base/copy_past_caches.hpp"
#include "libgccl/transports/shm/memory_of_peer.hpp"

namespace gccl::shm {
namespace {

// What a port tells its peers.
struct Address {
  std::uint32_t present;
  std::uint32_t pid;
  std::uint64_t probe;  // the address of probe_value, to try reading memory on
  std::uint64_t probe_value;
  std::uint64_t offset, id;  // of the segment
  char file[64];
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

// The next piece of a message of which `before` bytes are written: into the chunk that the writer is at, and the cell.
// Its length.
std::uint32_t write_piece(End& e, Cell* c, std::uint64_t signature, const std::byte* message, std::uint64_t before,
                          std::uint64_t message_bytes) {
  const std::uint32_t bytes = piece_bytes(before, message_bytes);
  copy(e.writer.next_chunk() + piece_offset(before), message + before, bytes);
  c->kind = before == 0 ? CellKind::first : CellKind::more;
  c->piece_bytes = std::uint16_t(bytes);
  c->signature = signature;
  c->far.message_bytes = message_bytes;
  c->far.place = piece_offset(before);
  if (ends_chunk(before + bytes, message_bytes)) e.writer.use_chunk();
  e.writer.publish(c);
  return bytes;
}

}  // namespace

Status Port::open(Rank_files& files, const GCCL_Port_spec& spec, std::unique_ptr<Port>* out, void* address) {
  auto p = std::make_unique<Port>();
  p->files_ = &files;
  p->rank_ = spec.rank;
  p->size_ = spec.size;
  p->channels_ = spec.channels;
  p->pid_ = ::getpid();
  p->place_.assign(spec.size, kNowhere);
  for (Rank r = 0; r < spec.size; ++r) {
    if (spec.node[r] != spec.node[spec.rank]) continue;
    ++p->node_ranks_;
    if (r == spec.rank) continue;
    p->place_[r] = std::uint32_t(p->neighbours_.size());
    p->neighbours_.push_back({.rank = r});
  }
  if (p->neighbours_.empty()) {
    *out = std::move(p);
    return {};
  }
  if (::getrandom(&p->probe_value_, sizeof p->probe_value_, 0) != ssize_t(sizeof p->probe_value_))
    return Status::error(fmt::format("no random numbers: {}", std::strerror(errno)), GCCL_ERR_SYSTEM);
  if (const Status s = files.mine(&p->file_); !s.ok()) return s;
  if (const Status s = Segment::create(p->file_, p->node_ranks_ * p->channels_, &p->segment_); !s.ok()) {
    p->connected();  // where another transport serves the ranks, nobody needs the file's name
    return s;
  }
  Address a{};
  a.present = 1;
  a.pid = std::uint32_t(p->pid_);
  a.probe = reinterpret_cast<std::uint64_t>(&p->probe_value_);
  a.probe_value = p->probe_value_;
  a.offset = p->segment_->offset();
  a.id = p->segment_->id();
  std::snprintf(a.file, sizeof a.file, "%s", p->file_->name().c_str());
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
  active_.reserve(ends_.size());  // transfers need no memory
  for (std::uint32_t i = 0; i < neighbours_.size(); ++i) {
    Neighbour& n = neighbours_[i];
    if (place == mine) ++place;
    Address a;
    std::memcpy(&a, static_cast<const std::byte*>(addresses) + std::size_t(n.rank) * GCCL_BACKEND_ADDRESS_BYTES,
                sizeof a);
    a.file[sizeof a.file - 1] = 0;
    if (!a.present) {
      place_[n.rank] = kNowhere;
      ++place;
      continue;
    }
    if (const Status s = files_->of(a.file, &n.file); !s.ok()) return s;
    if (const Status s = Segment::open(n.file, a.offset, a.id, node_ranks_ * channels_, &n.segment); !s.ok()) return s;
    n.pid = a.pid;
    // In another process-id namespace the number is nobody's, or somebody else's.
    std::uint64_t seen = 0;
    n.can_fetch =
        lend && (n.file->mine() || (read_memory_of(a.pid, a.probe, &seen, sizeof seen) && seen == a.probe_value));
    for (std::uint32_t c = 0; c < channels_; ++c) {
      End& out = ends_[(i * channels_ + c) * 2];
      out.peer = n.rank;
      out.index = place * channels_ + c;
      out.writer = Writer(segment_->control(out.index), segment_->pipe(out.index));
      End& in = ends_[(i * channels_ + c) * 2 + 1];
      in.peer = n.rank;
      in.receives = true;
      in.index = mine * channels_ + c;
      in.reader = Reader(n.segment->control(in.index), n.segment->pipe(in.index));
      n.segment->control(in.index)->can_fetch.store(n.can_fetch, std::memory_order_release);
    }
    reaches[n.rank] = 1;
    ++place;
  }
  piece_.reset(static_cast<std::byte*>(::operator new(kFetchBytes, kPieceAlignment)));
  return {};
}

Port::~Port() {
  // A child that the rank forked has a copy of this object, and nothing to say for the rank.
  if (segment_ && ::getpid() == pid_) segment_->header().closed.store(1, std::memory_order_release);
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
    note_lent(e, t);
  }
  list(e);
  return 0;
}

// Its memory is the peer's to read until so many cells are read.
void Port::note_lent(End& e, GCCL_Transfer* t) {
  t->next = nullptr;
  if (e.lent)
    e.lent_last->next = t;
  else
    e.lent = t;
  e.lent_last = t;
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

// So much of the end's pipe can be written to.
bool Port::reserve(End& e, Reserved how_much) {
  if (e.writer.reserved() >= how_much) return true;
  reserve_error_ = segment_->reserve_pipe(e.index, how_much);
  if (reserve_error_ != 0) return false;
  e.writer.opened(how_much);
  return true;
}

std::string Port::text_of_no_memory(const End& e) const {
  return fmt::format("rank {} has no shared memory for messages to rank {}: {}", rank_, e.peer,
                     trouble(reserve_error_));
}

std::string Port::text_of_damage(End& e) const {
  const Cell* const c = e.reader.peek();  // the damage may have changed meanwhile
  return fmt::format(
      "what rank {} wrote into shared memory for rank {} is damaged{}; some code there has written to memory of others",
      e.peer, rank_,
      c ? fmt::format(": a cell of kind {} with {} bytes where none can come", unsigned(c->kind), c->piece_bytes) : "");
}

Port::Put Port::put_into_full(End& e, std::uint64_t signature, const void* data, std::uint32_t bytes) {
  if (e.writer.reserved() != kReservedNothing) return Put::pipe_full;
  return reserve(e, kReservedCells) ? put(e, signature, data, bytes) : Put::no_memory;
}

Port::Put Port::put_pieces(End& e, std::uint64_t signature, const std::byte* data, std::uint32_t bytes) {
  if (!reserve(e, needed(bytes))) return Put::no_memory;
  if (!e.writer.room(pieces(bytes)) || !e.writer.next_chunk()) return Put::pipe_full;
  for (std::uint32_t at = 0; at < bytes; at += kPieceBytes) write_piece(e, e.writer.next(), signature, data, at, bytes);
  return Put::done;
}

// Whether the peer is to read the message where it is.
bool Port::lends(End& e, const GCCL_Transfer& t, Shared_place* shared) {
  if (t.bytes < kLendBytes || !e.writer.peer_can_fetch()) return false;
  if ((t.hints & GCCL_HINT_FRESH) && t.bytes < kFreshBytes) return false;
  *shared = shared_place(t.data, t.bytes);
  return !(t.hints & GCCL_HINT_ONE_WAY) || t.bytes <= kCachedBytes || shared->number != 0;
}

// True once nothing is left to write. backend[0]: bytes written; backend[1]: cells to be read before the memory is
// free.
bool Port::advance_send(End& e, GCCL_Transfer* t) {
  t->backend[1] = 0;
  if (!reserve(e, kReservedCells)) return fail(GCCL_ERR_SYSTEM, rank_, text_of_no_memory(e)), false;
  do {
    Cell* c = e.writer.next();
    if (!c) return false;
    if (t->bytes <= kInlineBytes) {
      c->signature = t->signature;
      c->kind = CellKind::inline_data;
      c->piece_bytes = std::uint16_t(t->bytes);
      if (t->bytes) std::memcpy(c->data, t->data, t->bytes);
      e.writer.publish(c);
      return true;
    }
    if (Shared_place shared{}; t->backend[0] == 0 && lends(e, *t, &shared)) {
      c->signature = t->signature;
      c->kind = CellKind::address;
      c->piece_bytes = 0;
      c->far.message_bytes = t->bytes;
      c->far.place = reinterpret_cast<std::uint64_t>(t->data);
      c->far.shared = shared;
      e.writer.publish(c);
      t->backend[1] = e.writer.written();
      return true;
    }
    if (!reserve(e, needed(t->bytes))) return fail(GCCL_ERR_SYSTEM, rank_, text_of_no_memory(e)), false;
    if (!e.writer.next_chunk()) return false;
    t->backend[0] += write_piece(e, c, t->signature, static_cast<const std::byte*>(t->data), t->backend[0], t->bytes);
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
    const Cell* const c = e.reader.peek();
    if (!c) return false;
    const CellKind kind = read_once(c->kind);
    const bool in_cell = kind == CellKind::inline_data;
    if (t->backend[0] == 0) {
      if (differs(t, c->signature, in_cell ? c->piece_bytes : c->far.message_bytes)) {
        if (in_cell) e.reader.pop_inline();
        return true;
      }
    }
    if (kind == CellKind::address && t->bytes > kInlineBytes && neighbour(e).can_fetch) {
      for (const std::uint64_t turn = t->backend[0] + kTurnBytes; t->backend[0] < t->bytes;)
        if (t->backend[0] >= turn || !fetch(e, t, *c)) return false;
      e.reader.pop_address();
      return true;
    }
    const std::span<const std::byte> piece = e.reader.piece(*c, kind, t->backend[0], t->bytes);
    if (!piece.data()) return fail(GCCL_ERR_SYSTEM, e.peer, text_of_damage(e)), false;
    deliver(t, piece.data(), piece.size());
    if (in_cell) {
      e.reader.pop_inline();
      return true;
    }
    e.reader.pop_piece(t->backend[0], t->bytes);
    if (t->backend[0] == t->bytes) return true;
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
  const std::uint64_t from = read_once(c.far.place) + t->backend[0];
  const std::byte* there = nullptr;
  if (n.file->mine()) {
    there = reinterpret_cast<const std::byte*>(from);
  } else if (const Shared_place place = c.far.shared; place.number != 0) {  // a copy: the peer may change it
    there = n.mapped.at(n.pid, n.file->name(), place, t->bytes);
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
    if (!read_memory_of(n.pid, from, t->consume ? piece_.get() : to, bytes)) {
      const int error = errno;
      if (!lent_still()) return false;
      // A process that is on its way out has no memory any more, but still a number.
      if (error == ESRCH || !n.file->alive()) {
        fail(GCCL_ERR_PEER_LOST, e.peer, fmt::format("its process ({}) has died", n.pid));
      } else {
        fail(GCCL_ERR_SYSTEM, e.peer,
             fmt::format("rank {} cannot read the memory of rank {}: {}", rank_, e.peer, std::strerror(error)));
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
  while (e.lent && *count < max && e.writer.read_up_to(e.lent->backend[1])) {
    done[(*count)++] = e.lent;
    e.lent = e.lent->next;
  }
  while (e.first && *count < max) {
    GCCL_Transfer* const t = e.first;
    if (!(e.receives ? advance_receive(e, t) : advance_send(e, t))) break;
    e.first = t->next;
    if (!e.receives && t->backend[1] != 0) {
      note_lent(e, t);
    } else {
      done[(*count)++] = t;
    }
  }
  return e.first || e.lent;
}

// A port that has failed still hands out what has come: what a peer sent before it gave up may end a call.
int Port::poll(GCCL_Transfer** done, int max) {
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
  return failed_ && count == 0 ? -1 : count;
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
  GCCL_Fault said = h.fault;
  said.text[sizeof said.text - 1] = 0;
  const bool a_fault = said.result == GCCL_ERR_DEVICE || said.result == GCCL_ERR_SYSTEM ||
                       said.result == GCCL_ERR_INTERNAL || said.result == GCCL_ERR_INVALID_ARGUMENT ||
                       said.result == GCCL_ERR_INVALID_USAGE || said.result == GCCL_ERR_REMOTE ||
                       (said.result >= GCCL_ERR_MISMATCH && said.result <= GCCL_ERR_NOT_SUPPORTED);
  if (!a_fault || said.peer >= size_) {
    fail(GCCL_ERR_REMOTE, n.rank, fmt::format("rank {} has given up; its reason is damaged", n.rank));
    return true;
  }
  if (failed_) return true;
  fault_ = said;
  failed_ = true;
  return true;
}

bool Port::healthy(End* waiting) {
  for (Neighbour& n : neighbours_) {
    if (!n.segment || failed_) continue;
    Header& h = n.segment->header();
    if (heard_fault(n)) return false;
    const auto missing = [&n](End& e) {
      if (e.peer != n.rank) return false;
      if (e.receives) return e.reader.peek() == nullptr;
      return e.first || !e.lent || !e.writer.read_up_to(e.lent_last->backend[1]);  // lent, and read by now: not missing
    };
    const auto missed = [&] {
      // Who died while it said why it gave up cannot be read from any more, whatever lies in its pipes.
      return h.fault_state.load(std::memory_order_acquire) != 0 || (waiting && missing(*waiting)) ||
             std::any_of(active_.begin(), active_.end(), [&](End* e) { return missing(*e); });
    };
    if (!missed()) continue;
    const bool closed = h.closed.load(std::memory_order_acquire) != 0;
    if (!closed && n.file->alive()) continue;
    // Who has left may have written all that is due before: only a pipe with nothing in it is a loss.
    if (heard_fault(n)) return false;
    if (missed())
      fail(GCCL_ERR_PEER_LOST, n.rank,
           closed ? "it has freed the communicator or ended" : fmt::format("its process ({}) has died", n.pid));
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
  const bool first = h.fault_state.compare_exchange_strong(none, 1);  // the first one counts
  // What the caller writes from now on into memory that peers still read comes after the 1: fetch() has the other half.
  // Processors other than x86 would let it overtake.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!first) return;
  h.fault = fault;
  h.fault_state.store(2, std::memory_order_release);
}

}  // namespace gccl::shm
