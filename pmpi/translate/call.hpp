// One collective call in GCCL's terms.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "pmpi/translate/combiner.hpp"

namespace gccl::pmpi {

// Says which GCCL function to call on which memory, and what to do when it is complete: unpack, or combine in the order
// of the ranks. Filled in by the prepare functions; stays where it is until then.
class Call {
 public:
  enum class Kind : std::uint8_t {
    barrier,
    broadcast,
    gather,
    scatter,
    allgather,
    allgatherv,
    alltoall,
    alltoallv,
    reduce,
    allreduce,
    reduce_scatter,
    reduce_scatterv
  };
  Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Begins it. *request may be complete already.
  GCCL_Result start(GCCL_Comm comm, GCCL_Request* request);
  // What is left once GCCL's part is complete. Returns an MPI error code.
  int finish();
  // MPI's functions or the program's own run while GCCL combines: only threads of the program may make progress then.
  bool combines_outside() const { return combiner_ && !fold_blocks_; }

  // Complete, it has shown that other ranks have made the same call as their call of that number.
  bool hears_others() const {
    return kind == Kind::barrier ||
           (count > 0 && (kind == Kind::allreduce || kind == Kind::allgather || kind == Kind::alltoall));
  }

  // GCCL writes where the input is: once begun, the call cannot be carried out anew.
  bool in_place() const { return sendbuf == GCCL_IN_PLACE; }

  // ---- For the prepare functions. ----

  bool nonblocking = false;  // GCCL's progress must need no function of MPI's or the program's
  Kind kind = Kind::barrier;
  const void* sendbuf = nullptr;
  void* recvbuf = nullptr;
  std::size_t count = 0;
  GCCL_Dtype dtype = GCCL_UINT8;
  GCCL_Op op = GCCL_SUM;
  int root = 0;
  int outcome = MPI_SUCCESS;  // of finish(), where nothing else goes wrong
  std::vector<std::size_t> send_counts, send_displs, recv_counts, recv_displs;  // empty displacements: side by side

  // `count` elements at `buf` as bytes side by side: where they are, or a packed copy. Null with *code set when MPI
  // cannot pack them.
  const void* input(const void* buf, std::size_t count, MPI_Datatype type, const Shape& shape, int* code);
  // Where GCCL may write `count` elements for `buf`: there, or in memory that finish() unpacks from.
  void* output(void* buf, std::size_t count, MPI_Datatype type, const Shape& shape);
  // Memory of this call's own.
  std::byte* scratch(std::size_t bytes);
  // finish() unpacks `count` elements to `to`. The program may free the type of a non-blocking call before.
  void unpack_later(const std::byte* from, void* to, std::size_t count, MPI_Datatype type, const Shape& shape);
  // GCCL combines with `op` on `type`. False when it has no handles left.
  bool combine_with(MPI_Op op, MPI_Datatype type, const Combination& how);
  // finish() combines `ranks` blocks of `count` packed elements at `blocks`, in that order, and unpacks to `to`.
  void fold_later(std::byte* blocks, std::size_t ranks, std::size_t count, void* to, MPI_Op op, MPI_Datatype type,
                  const Shape& shape);

 private:
  struct Landing {
    const std::byte* from;
    void* to;
    std::size_t count;
    MPI_Datatype type;
    Shape shape;
  };
  std::vector<Landing> landings_;
  std::vector<OwnType> types_;  // of landings
  std::unique_ptr<std::byte[]> scratch_[2];
  std::optional<Combiner> combiner_;
  std::byte* fold_blocks_ = nullptr;
  std::size_t fold_ranks_ = 0, fold_count_ = 0, fold_block_bytes_ = 0;
};

}  // namespace gccl::pmpi
