// A pipe: one direction between two ranks of a machine, in shared memory. One writer, one reader, no lock.
//
// Messages travel as cells, each in one cache line, so that a small message costs one line's way from core to core:
//
//   cell k of 32:  | sequence k+1 | kind | signature | 48 bytes |
//     inline_data   the whole message
//     first, more   a piece of the message lies in a chunk of the pipe; a long one comes in several, so that the reader
//                   copies while the writer does
//     address       the message lies in the writer's memory, at this address; the reader fetches it from there
//     common        the whole message lies in one of the chunks that all pipes of the writer have in common: it goes to
//                   several readers, and is written once
//
// The reader says how far it has read in one line of its own, which the writer looks at only when it runs out of cells
// or chunks, or while the reader reads the sender's own buffer.
//
// Cells and chunks take memory from the first message on that needs them: the writer reserves them, then says so in the
// pipe's control, and the reader looks at neither before (reading a hole of a full /dev/shm ends a process by SIGBUS).
// Most pairs of ranks never meet on most channels. Where shared memory is scarce a pipe makes do with less: the
// beginnings of its chunks, or of one, and pieces as long as these (docker gives 64 MB, a quarter of what 32 ranks
// would take).
//
// The peer's program may write at random into what is shared: the reader works out which kind and length the next piece
// has, and takes anything else for a failure of that peer (Reader::piece).
//
// Counts have 64 bits: a pipe carries 2^32 messages within the hour.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "libgccl/transports/shm/shared_memory.hpp"

namespace gccl::shm {

inline constexpr std::uint32_t kCells = 32;
// Fewer than so many cells are read and not acknowledged.
inline constexpr std::uint32_t kCellsUnacknowledged = kCells / 4;
inline constexpr std::uint32_t kInlineBytes = 48;
inline constexpr std::uint32_t kChunks = 8;
static_assert(std::has_single_bit(kChunks));
inline constexpr std::uint32_t kChunkBytes = 32 * 1024;
inline constexpr std::uint32_t kPieceBytes = 8 * 1024;
inline constexpr std::uint32_t kCommons = 8;
inline constexpr std::size_t kLine = 64;

enum class CellKind : std::uint8_t { inline_data, first, more, address, common };

// Processors fetch lines in pairs: neighbours would be taken away from the one who writes them (half the speed).
struct alignas(2 * kLine) Cell {
  std::atomic<std::uint32_t> sequence;  // k+1, modulo 2^32, once cell k is written; last of the cell to be written
  CellKind kind;
  bool ends_chunk;            // first, more: what comes next is not in this chunk
  std::uint16_t piece_bytes;  // in the cell (inline_data) or in the chunk (first, more, common)
  std::uint64_t signature;
  union {
    std::byte data[kInlineBytes];
    struct {
      std::uint64_t message_bytes;  // first, address, common
      std::uint64_t place;          // address: where it is; first, more: in all of the pipe's chunks; common: which
      SharedPlace shared;           // address: the same, for who can map it
    } far;
  };
};
static_assert(sizeof(Cell) == 2 * kLine && offsetof(Cell, data) + kInlineBytes <= kLine);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

struct Pipe {
  alignas(4096) Cell cells[kCells];
  alignas(4096) std::byte chunks[kChunks][kChunkBytes];
};

// How much of a pipe takes memory: nothing, its cells, the beginning of one chunk or of each too, or everything.
enum Reserved : std::uint32_t {
  kReservedNothing,
  kReservedCells,
  kReservedOneBeginning,
  kReservedAllBeginnings,
  kReservedChunks
};
inline constexpr std::uint32_t kBeginningBytes = 4096;

inline constexpr std::uint32_t chunks(std::uint32_t reserved) {
  return reserved < kReservedOneBeginning ? 0 : reserved == kReservedOneBeginning ? 1 : kChunks;
}
// Bytes of each of these that may be touched.
inline constexpr std::uint32_t chunk_bytes(std::uint32_t reserved) {
  return reserved < kReservedOneBeginning ? 0 : reserved < kReservedChunks ? kBeginningBytes : kChunkBytes;
}
// What a message wants. One of more than a cell can do with kReservedOneBeginning.
inline constexpr Reserved wanted(std::uint64_t message_bytes) {
  return message_bytes <= kInlineBytes      ? kReservedCells
         : message_bytes <= kBeginningBytes ? kReservedAllBeginnings
                                            : kReservedChunks;
}
// What a message that is written whole takes of a pipe that has so much, at least what it can do with. It is cut at
// multiples of kBeginningBytes. Divisors that are known: a division takes as long as the rest of a short message.
inline constexpr std::uint32_t parts(std::uint32_t message_bytes, std::uint32_t reserved, std::uint32_t longest) {
  if (message_bytes <= kBeginningBytes) return 1;
  return reserved < kReservedChunks ? (message_bytes - 1) / kBeginningBytes + 1 : (message_bytes - 1) / longest + 1;
}
inline constexpr std::uint32_t chunks_taken(std::uint32_t message_bytes, std::uint32_t reserved) {
  return message_bytes <= kInlineBytes ? 0 : parts(message_bytes, reserved, kChunkBytes);
}
inline constexpr std::uint32_t cells_taken(std::uint32_t message_bytes, std::uint32_t reserved) {
  return parts(message_bytes, reserved, kPieceBytes);
}

// How its reader can read a writer's memory, one bit each: any of it by the system, what shared_memory.hpp allocated
// through a mapping.
inline constexpr std::uint32_t kBySystem = 1, kMapped = 2;

// What is there of each pipe from the start.
struct alignas(2 * kLine) Control {
  std::atomic<std::uint64_t> read;      // cells read; written by the reader
  std::atomic<std::uint32_t> ways;      // kBySystem, kMapped; likewise
  std::atomic<std::uint32_t> reserved;  // Reserved; written by the writer
  std::atomic<std::uint32_t> commons;   // bit i: the writer's common chunk i may be touched; likewise
};

// A writer's, beside its pipes.
struct alignas(4096) CommonChunks {
  std::byte chunks[kCommons][kChunkBytes];
};
struct alignas(4096) Staging {
  std::byte data[1 << 20];
};

// A field of a peer's cell, read once: whatever writes there at random may change it between two looks, so what has
// been checked is what is used.
template <class T>
T read_once(const T& field) {
  return *const_cast<const volatile T*>(&field);
}

// The writer's end. Not shared.
class Writer {
 public:
  Writer() = default;
  Writer(Control* control, Pipe* pipe) : control_(control), pipe_(pipe) {}
  std::uint32_t peer_ways() const { return control_->ways.load(std::memory_order_acquire); }

  // So much of the pipe is reserved now. Before, it looks full.
  void opened(Reserved reserved) {
    if (reserved_ == kReservedNothing) read_ = 0;
    reserved_ = std::max(reserved_, reserved);
    control_->reserved.store(reserved_, std::memory_order_release);
  }
  Reserved reserved() const { return reserved_; }
  // That common chunk is reserved.
  void opened_common(std::uint32_t which) {
    if (!(commons_ >> which & 1)) control_->commons.store(commons_ |= 1u << which, std::memory_order_release);
  }

  // The next cell to fill, or null while the pipe is full. Fill it, then publish().
  Cell* next() {
    if (written_ - read_ == kCells && !refresh_below(kCells)) return nullptr;
    return &pipe_->cells[written_ % kCells];
  }
  // So many cells can be filled.
  bool room(std::uint32_t cells) { return kCells - (written_ - read_) >= cells || refresh_below(kCells - cells + 1); }
  void publish(Cell* cell) { cell->sequence.store(std::uint32_t(++written_), std::memory_order_release); }
  // Where the next piece goes, for the cell that next() gave; empty while the chunk is to be read first.
  std::span<std::byte> room_in_chunk() {
    if (filled_ == 0 && !read_up_to(chunk_read_[chunk_])) return {};
    return {pipe_->chunks[chunk_] + filled_, chunk_bytes(reserved_) - filled_};
  }
  std::uint64_t place_in_chunks() const { return chunk_ * kChunkBytes + filled_; }
  // So much of that room is filled, before publish() of the cell. Whether the chunk ends there.
  bool fill(std::uint32_t bytes, bool ends_message) {
    filled_ += bytes;
    if (!ends_message && filled_ < chunk_bytes(reserved_)) return false;
    chunk_read_[chunk_] = written_ + 1;
    chunk_ = after(chunk_, 1);
    filled_ = 0;
    return true;
  }
  // Whether a message can be written whole. Between messages.
  bool fits(std::uint32_t message_bytes) {
    const std::uint32_t taken = chunks_taken(message_bytes, reserved_);
    if (taken > chunks(reserved_) || !room(cells_taken(message_bytes, reserved_))) return false;
    for (std::uint32_t i = 0; i < taken; ++i)
      if (!read_up_to(chunk_read_[after(chunk_, i)])) return false;
    return true;
  }
  std::uint64_t written() const { return written_; }
  // True once the reader has done with all cells before `count`.
  bool read_up_to(std::uint64_t count) {
    if (read_ >= count) return true;
    read_ = control_->read.load(std::memory_order_acquire);
    return read_ >= count;
  }
  // The same of the count and of the cells, noting nothing.
  bool has_read(std::uint64_t count) const { return control_->read.load(std::memory_order_acquire) >= count; }
  bool full() const {
    return reserved_ != kReservedNothing && !has_read(written_ + 1 - std::min<std::uint64_t>(written_ + 1, kCells));
  }
  // For tests: as though so many times 32 short messages more had been written and read.
  void skip(std::uint64_t rounds) { written_ += rounds * kCells, read_ += rounds * kCells; }

 private:
  std::uint32_t after(std::uint32_t chunk, std::uint32_t more) const {
    return (chunk + more) & (chunks(reserved_) - 1);  // a power of two
  }
  bool refresh_below(std::uint64_t limit) {
    if (reserved_ == kReservedNothing) return false;
    read_ = control_->read.load(std::memory_order_acquire);
    return written_ - read_ < limit;
  }

  Control* control_ = nullptr;
  Pipe* pipe_ = nullptr;
  std::uint64_t written_ = 0, read_ = 0ull - kCells;
  std::uint64_t chunk_read_[kChunks] = {};  // cells to be read before each chunk is free
  std::uint32_t chunk_ = 0, filled_ = 0;    // where the next piece goes
  Reserved reserved_ = kReservedNothing;
  std::uint32_t commons_ = 0;  // as in Control
};

// The reader's end. Not shared.
class Reader {
 public:
  Reader() = default;
  Reader(Control* control, const Pipe* pipe, const CommonChunks* common)
      : control_(control), pipe_(pipe), common_(common) {}

  // The next cell, or null while nothing has come.
  const Cell* peek() {
    const Cell* const cell = &cells_[read_ % kCells];
    if (cell->sequence.load(std::memory_order_acquire) == std::uint32_t(read_ + 1)) return cell;
    if (cells_ != kNoCells) return nullptr;
    if (control_->reserved.load(std::memory_order_acquire) == kReservedNothing) return nullptr;
    cells_ = pipe_->cells;
    return peek();
  }
  // The peeked cell's piece, when `received` of the message's `bytes` have come before. `kind` is the cell's, as the
  // caller has read it. Its data is null where the cell cannot be what a Writer wrote here: a peer that writes at
  // random must not make this process read or write beyond the message, nor wait for ever.
  std::span<const std::byte> piece(const Cell& c, CellKind kind, std::uint64_t received, std::uint64_t bytes) {
    const std::uint32_t length = read_once(c.piece_bytes);
    if (kind == CellKind::inline_data)
      return received == 0 && bytes <= kInlineBytes && length == bytes ? std::span<const std::byte>(c.data, bytes)
                                                                       : std::span<const std::byte>();
    const std::uint64_t place = read_once(c.far.place);
    if (kind == CellKind::common) {
      const bool right = received == 0 && bytes > kInlineBytes && bytes <= kChunkBytes && length == bytes &&
                         place < kCommons && (control_->commons.load(std::memory_order_acquire) >> place & 1) != 0;
      return right ? std::span(common_->chunks[as_found(place)], bytes) : std::span<const std::byte>();
    }
    const CellKind due = received == 0 ? CellKind::first : CellKind::more;
    if (kind != due || bytes <= kInlineBytes || received > bytes) return {};
    if (const std::uint64_t left = bytes - received;
        length != left && (length > left || length == 0 || length % kBeginningBytes != 0))
      return {};
    if (!is_reserved(place, length)) {
      reserved_ = control_->reserved.load(std::memory_order_acquire);
      if (!is_reserved(place, length)) return {};
    }
    // By the cell's own word for place and length: a processor that knew them beforehand would look into the chunk
    // ahead of time, and take lines from the writer that it is still writing (a kilobyte took a sixth longer).
    return {pipe_->chunks[0] + as_found(place), as_found(length)};
  }
  // The peeked cell is done with.
  void pop_inline() {
    // The writer only needs to know before it runs out of cells.
    if (++read_ - acknowledged_ >= kCellsUnacknowledged) acknowledge();
  }
  void pop_piece(const Cell& c, CellKind kind) {
    if (kind == CellKind::inline_data || (kind != CellKind::common && !read_once(c.ends_chunk))) return pop_inline();
    pop_address();
  }
  void pop_address() {
    ++read_;
    acknowledge();
  }
  // For tests: as Writer::skip().
  void skip(std::uint64_t rounds) {
    read_ += rounds * kCells;
    acknowledge();
  }

 private:
  // Not replaced by what it has been compared with.
  template <class T>
  static T as_found(T value) {
    asm("" : "+r"(value));
    return value;
  }
  bool is_reserved(std::uint64_t place, std::uint32_t length) const {
    return place / kChunkBytes < chunks(reserved_) && place % kChunkBytes + length <= chunk_bytes(reserved_);
  }
  void acknowledge() {
    acknowledged_ = read_;
    control_->read.store(read_, std::memory_order_release);
  }
  static inline constinit const Cell kNoCells[1] = {};  // looked at until the writer has opened the pipe

  Control* control_ = nullptr;
  const Pipe* pipe_ = nullptr;
  const CommonChunks* common_ = nullptr;
  const Cell* cells_ = kNoCells;
  std::uint64_t read_ = 0, acknowledged_ = 0;
  std::uint32_t reserved_ = kReservedNothing;  // as far as is known
};

}  // namespace gccl::shm
