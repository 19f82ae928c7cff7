// The file in shared memory that holds the pipes on which one rank of a communicator writes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "gccl/backend.h"
#include "libgccl/backends/shm/pipe.hpp"
#include "libgccl/runtime/status.hpp"

namespace gccl::shm {

// Pages that nobody writes to take no memory; those of a pipe's chunks are reserved when the pipe first needs one.
struct Header {
  std::uint64_t magic;
  std::uint64_t bytes;
  std::uint32_t owner_pid;
  std::uint64_t owner_start;               // of the process, from /proc: tells it from a later one with its number
  std::atomic<std::uint32_t> closed;       // the owner will write no more
  std::atomic<std::uint32_t> fault_state;  // 0 none, 1 being written, 2 there
  GCCL_Fault fault;
};

class Segment {
 public:
  // Creates a file under a fresh name for `pipes` pipes.
  static Status create(std::uint32_t pipes, std::shared_ptr<Segment>* out);
  // Opens a peer's. A segment of this very process is shared, not mapped again.
  static Status open(const std::string& name, std::uint32_t pipes, std::shared_ptr<Segment>* out);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  const std::string& name() const { return name_; }
  Header& header() { return *static_cast<Header*>(base_); }
  Pipe* pipe(std::uint32_t i) { return reinterpret_cast<Pipe*>(static_cast<std::byte*>(base_) + kHeaderBytes) + i; }
  // Makes sure that the pipe's chunks can be written to; false when the machine has no room for them.
  bool reserve_chunks(std::uint32_t pipe);
  // The name goes; whoever has the segment open keeps it.
  void unlink();

 private:
  static constexpr std::size_t kHeaderBytes = 4096;
  Segment() = default;

  std::string name_;
  void* base_ = nullptr;
  std::size_t bytes_ = 0;
  int fd_ = -1;  // the owner's, for reserve_chunks
  bool named_ = false;
};

// Identifies a process for as long as the machine runs: 0 when there is none with this number.
std::uint64_t process_start(std::uint32_t pid);

}  // namespace gccl::shm
