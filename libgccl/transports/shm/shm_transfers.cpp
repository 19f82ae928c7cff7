// How messages move through the pipes of a port.
#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string>

#include "libgccl/base/copy_past_caches.hpp"
#include "libgccl/transports/shm/memory_of_peer.hpp"
#include "libgccl/transports/shm/reserve.hpp"
#include "libgccl/transports/shm/shm_port.hpp"

namespace gccl::shm {
namespace {

constexpr std::uint64_t kTurnBytes = 8 * 1024 * 1024;  // read for one transfer before it is the others' turn
// The system reads what another core has just written at half the speed at which programs do.
constexpr std::uint64_t kFreshBytes = 4 * 1024 * 1024;
// Through a mapping it is as fast as through chunks from 384 KiB on (level-2 caches of 1 MiB), at 2 MiB 3.7 times.
constexpr std::uint64_t kFreshMappedBytes = 512 * 1024;
// Through chunks both sides copy at once, where the sender has nothing else to do; that pays where the system's single
// copy has to go to memory.
constexpr std::uint64_t kCachedBytes = 32 * 1024 * 1024;
constexpr std::uint64_t kPastCaches = 4 * 1024 * 1024;  // messages from here on that need no system call to be copied
constexpr std::uint32_t kPollsBetweenChecks = 20000;

// The next piece of a message of which `before` bytes are written: into the room of the chunk that the writer is at,
// and the cell. Its length.
std::uint32_t write_piece(End& e, Cell* c, std::uint64_t signature, const std::byte* message, std::uint64_t before,
                          std::uint64_t message_bytes) {
  const std::span<std::byte> room = e.writer.room_in_chunk();
  const auto bytes = std::uint32_t(std::min<std::uint64_t>({message_bytes - before, room.size(), kPieceBytes}));
  copy(room.data(), message + before, bytes);
  c->kind = before == 0 ? CellKind::first : CellKind::more;
  c->piece_bytes = std::uint16_t(bytes);
  c->signature = signature;
  c->far.message_bytes = message_bytes;
  c->far.place = e.writer.place_in_chunks();
  c->ends_chunk = e.writer.fill(bytes, before + bytes == message_bytes);
  e.writer.publish(c);
  return bytes;
}

}  // namespace

void Port::list(End& e) {
  if (e.listed) return;
  e.listed = true;
  active_.push_back(&e);
}

int Port::send(GCCL_Transfer* t) {
  assert(t->peer < size_ && t->channel < channels_ && place_[t->peer] != kNowhere);
  End& e = *end(t->peer, t->channel, false);
  t->result = GCCL_SUCCESS;
  t->backend[kMoved] = 0;
  const bool waits = !e.transfers.empty();
  e.transfers.push(t);
  if (waits) return 0;
  if (advance_send(e, t)) {
    e.transfers.pop();
    if (t->backend[kCellsToRead] == 0) return 1;
    e.zero_copy.push(t);
  }
  list(e);
  return 0;
}

int Port::receive(GCCL_Transfer* t) {
  assert(t->peer < size_ && t->channel < channels_ && place_[t->peer] != kNowhere);
  End& e = *end(t->peer, t->channel, true);
  t->result = GCCL_SUCCESS;
  t->backend[kMoved] = 0;
  const bool waits = !e.transfers.empty();
  e.transfers.push(t);
  if (waits) return 0;
  if (t->bytes < kZeroCopyBytes && advance_receive(e, t)) {
    e.transfers.pop();
    return 1;
  }
  list(e);
  return 0;
}

bool Port::reserve(End& e, Reserved how_much) {
  const Reserved before = e.writer.reserved(), least = std::min(how_much, kReservedOneBeginning);
  for (std::uint32_t r = how_much; r > before && r >= least; --r) {
    if (r > least && !refusals_.may_ask(r)) continue;
    reserve_error_ = segment_->reserve_pipe(e.index, Reserved(r));
    if (r > least) refusals_.answered(r, reserve_error_);
    if (reserve_error_ == 0) {
      if (before < kReservedOneBeginning && r >= kReservedOneBeginning) keep_promise(e);
      e.writer.opened(Reserved(r));
      return true;
    }
  }
  return before >= least;
}

bool Port::reserve_common(std::uint32_t i, std::uint32_t bytes, bool can_do_without) {
  if (bytes <= commons_[i].reserved) return true;
  if (can_do_without && !refusals_.may_ask(kReservedChunks)) return false;
  const int error = segment_->reserve_common(i, bytes, can_do_without ? kHalf : kEighth);
  if (can_do_without) refusals_.answered(kReservedChunks, error);
  if (error != 0) return false;
  commons_[i].reserved = bytes;
  commons_[i].readers.reserve(neighbours_.size());
  return true;
}

bool Port::reserve_commons(std::uint32_t messages, std::uint32_t bytes) {
  assert(messages <= kCommons);
  for (std::uint32_t i = 0; i < messages; ++i)
    if (!reserve_common(i, bytes, false)) return false;
  return true;
}

// One that all have read.
std::optional<std::uint32_t> Port::free_common(std::uint32_t bytes) {
  for (std::uint32_t k = 0; k < kCommons; ++k) {
    const std::uint32_t i = (next_common_ + k) % kCommons;
    if (std::ranges::all_of(commons_[i].readers, [](auto& r) { return r.first->writer.read_up_to(r.second); }) &&
        reserve_common(i, bytes, true))
      return i;
  }
  return {};
}

// Throws nothing: the caller's transfer is in the pipe's list.
void Port::fail_for_memory(const End& e) noexcept {
  try {
    fail(GCCL_ERR_SYSTEM, rank_,
         fmt::format("rank {} has no shared memory for messages to rank {}: {}", rank_, e.peer,
                     text_of_error(reserve_error_)));
  } catch (const std::bad_alloc&) {
    fail(GCCL_ERR_SYSTEM, rank_, "out of memory");  // within std::string itself
  }
}

std::string Port::text_of_damage(End& e) const {
  const Cell* const c = e.reader.peek();  // the damage may have changed meanwhile
  return fmt::format(
      "what rank {} wrote into shared memory for rank {} is damaged{}; some code there has written to memory of others",
      e.peer, rank_,
      c ? fmt::format(": a cell of kind {} with {} bytes where none can come", unsigned(c->kind), c->piece_bytes) : "");
}

bool Port::put_into_full(End& e, std::uint64_t signature, const void* data, std::uint32_t bytes) {
  return e.writer.reserved() == kReservedNothing && reserve(e, kReservedCells) && put(e, signature, data, bytes);
}

bool Port::put_pieces(End& e, std::uint64_t signature, const std::byte* data, std::uint32_t bytes) {
  if (!reserve(e, wanted(bytes)) || !e.writer.fits(bytes)) return false;
  for (std::uint32_t at = 0; at < bytes;) at += write_piece(e, e.writer.next(), signature, data, at, bytes);
  return true;
}

bool Port::put_common(std::span<End* const> ends, std::uint64_t signature, const void* data, std::uint32_t bytes) {
  assert(bytes > kInlineBytes && bytes <= kChunkBytes);
  if (!std::ranges::all_of(ends, [](End* e) { return e->writer.next() != nullptr; })) return false;
  const std::optional<std::uint32_t> which = free_common(bytes);
  if (!which) return false;
  Common& common = commons_[*which];
  common.readers.clear();
  copy(segment_->common()->chunks[*which], data, bytes);
  for (End* const e : ends) {
    e->writer.opened_common(*which);
    Cell* const c = e->writer.next();
    c->kind = CellKind::common;
    c->piece_bytes = std::uint16_t(bytes);
    c->signature = signature;
    c->far.message_bytes = bytes;
    c->far.place = *which;
    e->writer.publish(c);
    common.readers.emplace_back(e, e->writer.written());
  }
  next_common_ = (*which + 1) % kCommons;
  return true;
}

// Whether the peer is to read the message where it is.
bool Port::is_zero_copy(End& e, const GCCL_Transfer& t, SharedPlace* shared) {
  if (t.bytes < kZeroCopyBytes) return false;
  if (const auto offset = std::uintptr_t(t.data) - std::uintptr_t(segment_->staging());
      offset < staged_ && t.bytes <= staged_ - offset) {
    *shared = {.number = kStaging, .offset = offset, .freed = 0, .file = -1, .inode = 0};
    return true;
  }
  const std::uint32_t ways = e.writer.peer_ways();
  const bool fresh = t.hints & GCCL_HINT_FRESH;
  if (ways == 0 || (fresh && t.bytes < kFreshMappedBytes)) return false;
  *shared = shared_place(t.data, t.bytes);
  if (shared->number != 0 && (ways & kMapped)) return true;
  if (!(ways & kBySystem) || (fresh && t.bytes < kFreshBytes)) return false;
  return !(t.hints & GCCL_HINT_ONE_WAY) || t.bytes <= kCachedBytes;
}

// True once nothing is left to write.
bool Port::advance_send(End& e, GCCL_Transfer* t) {
  t->backend[kCellsToRead] = 0;
  if (!reserve(e, kReservedCells)) return fail_for_memory(e), false;
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
    if (SharedPlace shared{}; t->backend[kMoved] == 0 && is_zero_copy(e, *t, &shared)) {
      c->signature = t->signature;
      c->kind = CellKind::address;
      c->piece_bytes = 0;
      c->far.message_bytes = t->bytes;
      c->far.place = reinterpret_cast<std::uint64_t>(t->data);
      c->far.shared = shared;
      e.writer.publish(c);
      t->backend[kCellsToRead] = e.writer.written();
      return true;
    }
    if (!reserve(e, wanted(t->bytes))) return fail_for_memory(e), false;
    if (e.writer.room_in_chunk().empty()) return false;
    std::uint64_t& moved = t->backend[kMoved];
    moved += write_piece(e, c, t->signature, static_cast<const std::byte*>(t->data), moved, t->bytes);
  } while (t->backend[kMoved] < t->bytes);
  return true;
}

namespace {

void deliver(GCCL_Transfer* t, const std::byte* piece, std::uint64_t bytes) {
  if (t->consume) {
    t->consume(t, piece, t->backend[kMoved], bytes);
  } else if (bytes >= 1) {
    std::memcpy(static_cast<std::byte*>(t->data) + t->backend[kMoved], piece, bytes);
  }
  t->backend[kMoved] += bytes;
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

// True once the transfer is complete.
bool Port::advance_receive(End& e, GCCL_Transfer* t) {
  for (;;) {
    const Cell* const c = e.reader.peek();
    if (!c) return false;
    const CellKind kind = read_once(c->kind);
    const bool in_cell = kind == CellKind::inline_data;
    if (t->backend[kMoved] == 0) {
      if (differs(t, c->signature, in_cell ? c->piece_bytes : c->far.message_bytes)) {
        if (in_cell) e.reader.pop_inline();
        return true;
      }
    }
    if (kind == CellKind::address && t->bytes > kInlineBytes &&
        (neighbour(e).ways != 0 || read_once(c->far.shared.number) == kStaging)) {
      for (const std::uint64_t turn = t->backend[kMoved] + kTurnBytes; t->backend[kMoved] < t->bytes;)
        if (t->backend[kMoved] >= turn || !fetch(e, t, *c)) return false;
      e.reader.pop_address();
      return true;
    }
    const std::span<const std::byte> piece = e.reader.piece(*c, kind, t->backend[kMoved], t->bytes);
    if (!piece.data()) return fail(GCCL_ERR_SYSTEM, e.peer, text_of_damage(e)), false;
    deliver(t, piece.data(), piece.size());
    e.reader.pop_piece(*c, kind);
    if (in_cell || t->backend[kMoved] == t->bytes) return true;
  }
}

// Takes the next bytes of a message that lies in its sender's memory. False once the port or the peer has failed, or
// where they are to be had later.
bool Port::fetch(End& e, GCCL_Transfer* t, const Cell& c) {
  Neighbour& n = neighbour(e);
  if (!readable(n)) return false;
  const std::uint64_t before = t->backend[kMoved];
  const std::uint64_t bytes = std::min(t->bytes - before, t->consume ? kFetchBytes : kTurnBytes);
  if (const std::byte* const message = address_here(n, c, t->bytes)) {
    read_mapped(t, message + before, bytes);
    if (!readable(n)) return false;
  } else if (const std::uint64_t number = read_once(c.far.shared.number);
             number == kStaging || (number == 0 && !(n.ways & kBySystem))) {
    fail(GCCL_ERR_SYSTEM, e.peer, text_of_damage(e));
    return false;
  } else if (!(n.ways & kBySystem)) {
    fail_for_mapping(n, errno);
    return false;
  } else if (!read_by_system(e, t, read_once(c.far.place) + before, bytes)) {
    return false;
  }
  t->backend[kMoved] += bytes;
  return true;
}

void Port::fail_for_mapping(Neighbour& n, int error) {
  if (!readable(n)) return;
  if (!n.file->alive()) {
    fail(GCCL_ERR_PEER_LOST, n.rank, fmt::format("its process ({}) has died", n.pid));
  } else {
    fail(GCCL_ERR_SYSTEM, n.rank,
         fmt::format("rank {} cannot map the memory of rank {}: {}", rank_, n.rank,
                     error ? text_of_mapping(error) : "another file is there"));
  }
}

// A peer that aborts takes its buffers back, and says so before it does: what was read before a true answer is good.
// After a false one the port has failed as well, where the peer has given its reason already.
bool Port::readable(Neighbour& n) {
  std::atomic_thread_fence(std::memory_order_acquire);
  if (n.segment->header().fault_state.load(std::memory_order_relaxed) == 0) return true;
  fail_if_aborted(n);
  return false;
}

// Where a message in its sender's memory is in this process's; null where only the system can read it.
const std::byte* Port::address_here(Neighbour& n, const Cell& c, std::uint64_t message_bytes) {
  const SharedPlace place = c.far.shared;  // a copy: the peer may change it
  if (place.number == kStaging) {
    const std::uint64_t there =
        std::min<std::uint64_t>(n.segment->header().staging.load(std::memory_order_acquire), sizeof(Staging));
    const bool inside = place.offset <= there && message_bytes <= there - place.offset;
    return inside ? n.segment->staging() + place.offset : nullptr;
  }
  return n.mapped.at(n.pid, n.file->name(), place, message_bytes);
}

// The transfer's next bytes, from memory that this process can read.
void Port::read_mapped(GCCL_Transfer* t, const std::byte* from, std::uint64_t bytes) {
  const std::uint64_t before = t->backend[kMoved];
  if (t->consume && reinterpret_cast<std::uintptr_t>(from) % kLine != 0) {
    std::memcpy(piece_.get(), from, bytes);
    t->consume(t, piece_.get(), before, bytes);
  } else if (t->consume) {
    t->consume(t, from, before, bytes);
  } else if (t->bytes >= kPastCaches) {
    copy_past_caches(static_cast<std::byte*>(t->data) + before, from, bytes);
  } else {
    std::memcpy(static_cast<std::byte*>(t->data) + before, from, bytes);
  }
}

// The transfer's next bytes, from this address in the peer's process. False once the port or the peer has failed, or
// where they are to be had later; then nothing has been consumed.
bool Port::read_by_system(End& e, GCCL_Transfer* t, std::uint64_t from, std::uint64_t bytes) {
  Neighbour& n = neighbour(e);
  const std::uint64_t before = t->backend[kMoved];
  std::byte* const to = t->consume ? piece_.get() : static_cast<std::byte*>(t->data) + before;
  const bool read = read_memory_of(n.pid, from, to, bytes);
  const int error = errno;
  if (!readable(n)) return false;
  if (!read) {
    // A process that is on its way out has no memory any more, but still a number.
    if (error == ESRCH || !n.file->alive()) {
      fail(GCCL_ERR_PEER_LOST, e.peer, fmt::format("its process ({}) has died", n.pid));
    } else if (error != EAGAIN) {  // else its file says when it has
      const bool bad = error == EFAULT;
      fail(GCCL_ERR_SYSTEM, e.peer,
           fmt::format("rank {} cannot read the memory of rank {}{}: {}{}; where the system forbids it set "
                       "GCCL_SHM_ZERO_COPY=0",
                       rank_, e.peer, bad ? " or write to its own buffer" : "", std::strerror(error),
                       bad ? ", as of memory that was freed" : ""));
    }
    return false;
  }
  if (t->consume) t->consume(t, to, before, bytes);
  return true;
}

// Moves the end's transfers on; false when none is left.
bool Port::advance(End& e, GCCL_Transfer** done, int max, int* count) {
  while (!e.zero_copy.empty() && *count < max && e.writer.read_up_to(e.zero_copy.front()->backend[kCellsToRead]))
    done[(*count)++] = e.zero_copy.pop();
  while (!e.transfers.empty() && *count < max) {
    GCCL_Transfer* const t = e.transfers.front();
    const std::uint64_t before = t->backend[kMoved];
    const bool over = e.receives ? advance_receive(e, t) : advance_send(e, t);
    moved_bytes_ += t->backend[kMoved] - before;
    if (!over) break;
    e.transfers.pop();
    if (!e.receives && t->backend[kCellsToRead] != 0) {
      e.zero_copy.push(t);
    } else {
      done[(*count)++] = t;
    }
  }
  return !e.transfers.empty() || !e.zero_copy.empty();
}

// A port that has failed still hands out what has come: what a peer sent before it gave up may end a call.
int Port::poll(GCCL_Transfer** done, int max) {
  if (max == 0 && !active_.empty()) {  // the next poll that finds nothing looks after the peers
    idle_polls_ = kPollsBetweenChecks - 1;
    return 0;
  }
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
    healthy();  // a caller that polls without transfers wants to know nothing else
  }
  return failed_ && count == 0 ? -1 : count;
}

void Port::cancel(GCCL_Transfer* t) {
  for (End* e : active_)
    if (e->transfers.remove(t) || e->zero_copy.remove(t)) return;
}

}  // namespace gccl::shm
