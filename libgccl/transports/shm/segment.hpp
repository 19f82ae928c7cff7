// The part of a rank's file that holds the pipes on which the rank writes in one communicator. Pipes are reserved as
// they are used, since most pairs of ranks never meet on most channels. Where there is plenty, communicators of 4, 16
// and 32 ranks of one node take 0.1, 1 and 4 MB after a barrier, 0.2, 3 and 7 MB after an all-reduce of 1000 bytes, and
// 0.5, 15 and 50 MB after each rank has broadcast 1 MB.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <memory>
#include <string>

#include "gccl/backend.h"
#include "libgccl/base/status.hpp"
#include "libgccl/transports/shm/pipe.hpp"
#include "libgccl/transports/shm/rank_file.hpp"

namespace gccl::shm {

// Parts of all shared memory that are left free, as 1 in: by what calls can do without, and by what most messages want.
// The eighth is for what has been promised (Port::take_least).
inline constexpr unsigned kHalf = 2, kEighth = 8;

// Bytes of shared memory. Without a limit all is free.
struct Space {
  std::size_t all = ~std::size_t(0), free = all;

  bool leaves(std::size_t bytes, std::size_t left) const { return free >= left && free - left >= bytes; }
};

// Header and controls are reserved from the start, the pipes themselves when they are first needed.
struct Header {
  std::uint64_t id;  // drawn at random: nobody takes one segment for another
  std::uint64_t bytes;
  std::atomic<std::uint32_t> users;        // processes that have it mapped; the last one gives its memory back
  std::atomic<std::uint32_t> closed;       // the owner will write no more
  std::atomic<std::uint32_t> fault_state;  // 0 none, 1 being written, 2 there
  std::atomic<std::uint32_t> staging;      // so many bytes of it may be touched
  GCCL_Fault fault;
};

class Segment {
 public:
  // Takes room in this rank's file for `pipes` pipes.
  static Status create(const std::shared_ptr<RankFile>& file, std::uint32_t pipes, std::shared_ptr<Segment>* out);
  // Maps a neighbour's. A segment of this very process is shared, not mapped again, so that its atomics have one
  // address each and thread checkers can follow them.
  static Status open(const std::shared_ptr<RankFile>& file, std::uint64_t offset, std::uint64_t id, std::uint32_t pipes,
                     std::shared_ptr<Segment>* out);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  std::uint64_t offset() const { return offset_; }
  std::uint64_t id() const { return id_; }
  Header& header() { return *reinterpret_cast<Header*>(base_); }
  Control* control(std::uint32_t i) {
    assert(i < pipes_);
    return reinterpret_cast<Control*>(base_ + kHeaderBytes) + i;
  }
  Pipe* pipe(std::uint32_t i) {
    assert(i < pipes_);
    return reinterpret_cast<Pipe*>(base_ + pipes_at(pipes_)) + i;
  }
  CommonChunks* common() { return reinterpret_cast<CommonChunks*>(base_ + common_at(pipes_)); }
  // Owner: makes sure that so much of the pipe, or of that common chunk, can be written to; 0, or the error's number.
  // What calls can do without is ENOSPC where less than half of all shared memory would be left: all chunks of a pipe,
  // common chunks beyond those of a schedule, staging. These, and the beginnings of all chunks, leave an eighth.
  int reserve_pipe(std::uint32_t i, Reserved how_much);
  int reserve_common(std::uint32_t i, std::uint32_t bytes, unsigned leaves_one_part_in);
  // What the owner puts there for all its peers to read.
  std::byte* staging() { return reinterpret_cast<Staging*>(base_ + staging_at(pipes_))->data; }
  int reserve_staging(std::size_t bytes);
  // Owner: 0, or the error's number.
  int space(Space* out) const;

  // Whether anybody uses the segment at this place of the file.
  static bool used(int file, std::uint64_t offset);

 private:
  static constexpr std::size_t kHeaderBytes = 4096;
  static std::size_t pipes_at(std::uint32_t pipes);
  static std::size_t common_at(std::uint32_t pipes) { return pipes_at(pipes) + pipes * sizeof(Pipe); }
  static std::size_t staging_at(std::uint32_t pipes) { return common_at(pipes) + sizeof(CommonChunks); }
  static std::size_t bytes_of(std::uint32_t pipes) { return staging_at(pipes) + sizeof(Staging); }
  Segment() = default;
  Status map();
  int leaves_free(std::size_t bytes, unsigned one_part_in) const;
  int reserve_here(std::size_t at, std::size_t bytes);

  std::shared_ptr<RankFile> file_;
  std::uint64_t offset_ = 0, id_ = 0;
  std::uint32_t pipes_ = 0;
  std::byte* base_ = nullptr;
  bool owner_ = false, counted_ = false;
};

// What the system said, and what to do about it.
std::string text_of_error(int error);

}  // namespace gccl::shm
