// The Backend over MPI point-to-point messages: tag = lane, so that lanes match independently of each other.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <vector>

#include "libgccl/base/status.hpp"
#include "libgccl/elements/reduction.hpp"
#include "libgccl/schedule/lane.hpp"

namespace gccl {

// Bytes that grow and never shrink; contents are lost when they grow.
class GrowingBytes {
 public:
  std::byte* at_least(std::size_t bytes) {
    if (bytes > size_) {
      bytes_.reset();  // first, so that old and new never exist at once
      size_ = 0;
      bytes_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      size_ = bytes;
    }
    return bytes_.get();
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_ = 0;
};

// A lane's own memory: scratch, and a landing place for each message of its window. Nothing is shared between lanes: a
// lane that waits can never hold what another one needs.
struct LaneMemory {
  GrowingBytes scratch;
  std::array<GrowingBytes, kWindowMax> staging;
};

// Serves the lanes of one collective call on one rank. Lane::id() indexes `memory`. A message of more than
// message_bytes_max travels as several, in order: MPI counts are ints. All ranks must use the same bound.
// Not thread-safe. After a failure nothing more is started.
class MpiBackend {
 public:
  struct Buffers {
    const void* input;
    void* output;
    std::vector<std::byte*> scratch;  // per lane
  };

  // `memory` and `buffers` must live until every request is complete, or for good after a failure.
  MpiBackend(MPI_Comm comm, Dtype dtype, Reduction op, Buffers buffers, std::vector<LaneMemory>& memory,
             std::size_t message_bytes_max);

  bool start(Lane<MpiBackend>& lane, Token token, const Step& step);
  bool combine(Lane<MpiBackend>& lane, Token token, const Step& step);

  // Waits until at least one request is complete and tells the lanes. Requires in_flight().
  void progress();
  bool in_flight() const { return !requests_.empty(); }
  const Status& status() const { return status_; }
  // Lets go of everything in flight, after a failure. MPI may still touch the memory of messages under way.
  void abandon();

 private:
  struct Flight {
    Lane<MpiBackend>* lane;
    Token token;
    int receive_bytes;  // -1 for a send
  };

  std::byte* address(std::uint32_t lane, const Region& r) const;
  void post(Lane<MpiBackend>& lane, Token token, const Step& step, std::byte* at);
  bool failed(int code, const char* call);

  MPI_Comm comm_;
  Dtype dtype_;
  Reduction op_;
  unsigned element_bytes_;
  std::size_t message_bytes_max_;
  Buffers buffers_;
  std::vector<LaneMemory>& memory_;
  Status status_;

  // In step with each other; in the order in which they were posted.
  std::vector<MPI_Request> requests_;
  std::vector<Flight> flights_;
  std::vector<std::array<std::uint32_t, kWindowMax>>
      rest_;  // per lane and place: requests of the step not yet complete

  // progress()'s own, kept to spare allocations.
  std::vector<int> done_;
  std::vector<MPI_Status> statuses_;
  std::vector<Flight> finished_;
};

}  // namespace gccl
