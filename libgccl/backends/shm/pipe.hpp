// A pipe: one direction between two ranks of a machine, in shared memory. One writer, one reader, no lock.
//
// Messages travel as cells, each in one cache line, so that a small message costs one line's way from core to core:
//
//   cell k of 32:  | sequence k+1 | kind | signature | 48 bytes |
//     inline_data   the whole message
//     first, more   a piece of the message lies in the current chunk of the pipe; a long one comes in several, so that
//     the
//                   reader copies while the writer does
//     address       the message lies in the writer's memory, at this address; the reader fetches it from there
//
// The reader tells how far it has read in one line of its own, which the writer looks at only when it runs out of cells
// or chunks, or has lent its memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "libgccl/backends/shm/shared_memory.hpp"

namespace gccl::shm {

inline constexpr std::uint32_t kCells = 32;
inline constexpr std::uint32_t kCellsUntold = kCells / 4;  // below so many the reader has not told of what it has read
inline constexpr std::uint32_t kInlineBytes = 48;
inline constexpr std::uint32_t kChunks = 8;
inline constexpr std::uint32_t kChunkBytes = 32 * 1024;
inline constexpr std::uint32_t kPieceBytes = 8 * 1024;
inline constexpr std::size_t kLine = 64;

enum class CellKind : std::uint32_t { inline_data, first, more, address };

// Processors fetch lines in pairs: neighbours would be taken away from the one who writes them (half the speed).
struct alignas(2 * kLine) Cell {
  std::atomic<std::uint32_t> sequence;  // k+1, modulo 2^32, once cell k is written; last of the cell to be written
  CellKind kind : 8;
  bool ends_chunk : 1;             // first, more: what follows lies in another chunk
  std::uint32_t piece_bytes : 23;  // in the cell (inline_data) or in the chunk (first, more)
  std::uint64_t signature;
  union {
    std::byte data[kInlineBytes];
    struct {
      std::uint64_t message_bytes;  // first, address
      std::uint64_t place;          // address: where it is; first, more: the piece's offset in the chunk
      Shared_place shared;          // address: the same, for who can map it
    } far;
  };
};
static_assert(sizeof(Cell) == 2 * kLine && offsetof(Cell, data) + kInlineBytes <= kLine);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// Cells that a message written by put() takes.
inline constexpr std::uint32_t pieces(std::uint32_t bytes) {
  return bytes <= kInlineBytes ? 1 : (bytes + kPieceBytes - 1) / kPieceBytes;
}

struct Pipe {
  Cell cells[kCells];
  alignas(2 * kLine) std::atomic<std::uint32_t> read;  // cells read; written by the reader
  std::atomic<std::uint32_t> can_fetch;                // 1: the reader can read the writer's memory; likewise
  alignas(4096) std::byte chunks[kChunks][kChunkBytes];
};

// The writer's end. Not shared.
class Writer {
 public:
  Writer() = default;
  explicit Writer(Pipe* pipe) : pipe_(pipe) {}
  Pipe* pipe() const { return pipe_; }

  // The next cell to fill, or null while the pipe is full. Fill it, then publish().
  Cell* next() {
    if (written_ - read_ == kCells && !refresh_below(kCells)) return nullptr;
    return &pipe_->cells[written_ % kCells];
  }
  // So many cells can be filled.
  bool room(std::uint32_t cells) { return kCells - (written_ - read_) >= cells || refresh_below(kCells - cells + 1); }
  void publish(Cell* cell) { cell->sequence.store(++written_, std::memory_order_release); }
  // The chunk to fill for the cell that next() gave, or null while all are in use.
  std::byte* next_chunk() {
    if (chunks_ >= kChunks) {
      const std::uint32_t end = chunk_cell_[chunks_ % kChunks] + 1;  // cells to be read before the chunk is free
      if (std::int32_t(read_ - end) < 0) {
        read_ = pipe_->read.load(std::memory_order_acquire);
        if (std::int32_t(read_ - end) < 0) return nullptr;
      }
    }
    return pipe_->chunks[chunks_ % kChunks];
  }
  // Before publish() of the cell that ends the chunk.
  void use_chunk() {
    chunk_cell_[chunks_ % kChunks] = written_;
    ++chunks_;
    if (chunks_ == 0) chunks_ = kChunks;  // after 2^32: the residue stays right because kChunks divides 2^32
  }
  std::uint32_t written() const { return written_; }
  // True once the reader has done with all cells before `count`.
  bool read_up_to(std::uint32_t count) {
    if (std::int32_t(read_ - count) >= 0) return true;
    read_ = pipe_->read.load(std::memory_order_acquire);
    return std::int32_t(read_ - count) >= 0;
  }

 private:
  bool refresh_below(std::uint32_t limit) {
    read_ = pipe_->read.load(std::memory_order_acquire);
    return written_ - read_ < limit;
  }

  Pipe* pipe_ = nullptr;
  std::uint32_t written_ = 0, read_ = 0;
  std::uint32_t chunks_ = 0;
  std::uint32_t chunk_cell_[kChunks] = {};
};

// The reader's end. Not shared.
class Reader {
 public:
  Reader() = default;
  explicit Reader(Pipe* pipe) : pipe_(pipe) {}

  // The next cell, or null while nothing has come.
  const Cell* peek() const {
    const Cell* cell = &pipe_->cells[read_ % kCells];
    return cell->sequence.load(std::memory_order_acquire) == read_ + 1 ? cell : nullptr;
  }
  // The chunk that the peeked cell's piece lies in.
  const std::byte* chunk() const { return pipe_->chunks[chunks_ % kChunks]; }
  // The peeked cell is done with.
  void pop_inline() {
    // The writer only needs to know before it runs out of cells.
    if (++read_ - told_ >= kCellsUntold) tell();
  }
  void pop_piece(bool ends_chunk) {
    if (!ends_chunk) return pop_inline();
    ++chunks_;
    ++read_;
    tell();
  }
  void pop_address() {
    ++read_;
    tell();
  }

 private:
  void tell() {
    told_ = read_;
    pipe_->read.store(read_, std::memory_order_release);
  }

  Pipe* pipe_ = nullptr;
  std::uint32_t read_ = 0, told_ = 0;
  std::uint32_t chunks_ = 0;
};

}  // namespace gccl::shm
