// Runs any algorithm of the library over MPI, on real memory.
#pragma once

#include <mpi.h>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/cost/slicing.hpp"
#include "libgccl/schedule/layout.hpp"
#include "libgccl/transports/mpi/mpi_backend.hpp"

namespace gccl {

// A private duplicate of an MPI communicator, and the memory its calls work with (kept between calls). The caller
// initialises and finalises MPI. Blocking; not thread-safe. MPI errors come back as a Status, as far as the MPI library
// lets its errors be returned; after one the communicator is of no further use and every run() repeats the error.
class MpiCommunicator {
 public:
  // Collective over `parent`. Ranks that can share memory (MPI_COMM_TYPE_SHARED) make a node.
  static Status create(MPI_Comm parent, std::unique_ptr<MpiCommunicator>* out);
  // Collective.
  ~MpiCommunicator();
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  Rank size() const { return layout_.ranks(); }
  Rank rank() const { return rank_; }
  View view() const { return layout_.view(rank_); }
  const Layout& layout() const { return layout_; }
  // Replaces the layout found at creation. Requires layout.ranks() == size(), and the same layout on every rank.
  void use_layout(Layout layout);
  // Longer messages travel in pieces of this many bytes, 1 .. 2^31-1; the same on every rank. By default 1 GiB.
  void use_message_bytes_max(std::size_t bytes);

  // Carries out `call`. Collective: every rank passes the same arguments apart from its buffers. Buffers hold
  // input_count() and output_count() elements (see call.hpp), aligned to the element, and are apart from each other;
  // one without elements may be null. `op` matters to reducing collectives only. Returns once this rank's part is
  // complete. Wrong arguments are an error before anything is sent. They leave the communicator as it was.
  Status run(const Algorithm& algorithm, const Call& call, Dtype dtype, Reduction op, const void* input, void* output,
             Slicing slicing = {});

 private:
  MpiCommunicator() = default;
  Status check(const Algorithm&, const Call&, Dtype, const void* input, const void* output, const Slicing&) const;

  MPI_Comm comm_ = MPI_COMM_NULL;
  Rank rank_ = 0;
  int tag_max_ = 0;
  std::size_t message_bytes_max_ = std::size_t(1) << 30;
  Layout layout_;
  std::vector<LaneMemory> memory_;
  Status broken_;
};

}  // namespace gccl
