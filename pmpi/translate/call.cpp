#include "pmpi/translate/call.hpp"

namespace gccl::pmpi {

const void* Call::input(const void* buf, std::size_t count, MPI_Datatype type, const Shape& shape, int* code) {
  if (shape.dense || shape.size == 0 || count == 0) return displaced(buf, 1, shape.true_lb);
  std::byte* const copy = scratch(count * shape.size);
  *code = pack(buf, count, type, shape, copy);
  return copy;
}

void* Call::output(void* buf, std::size_t count, MPI_Datatype type, const Shape& shape) {
  if (shape.dense || shape.size == 0 || count == 0) return displaced(buf, 1, shape.true_lb);
  std::byte* const copy = scratch(count * shape.size);
  unpack_later(copy, buf, count, type, shape);
  return copy;
}

std::byte* Call::scratch(std::size_t bytes) {
  auto& memory = scratch_[scratch_[0] ? 1 : 0];
  memory = std::make_unique_for_overwrite<std::byte[]>(bytes > 0 ? bytes : 1);
  return memory.get();
}

void Call::unpack_later(const std::byte* from, void* to, std::size_t count, MPI_Datatype type, const Shape& shape) {
  if (nonblocking && !shape.one_piece && !predefined(type)) {
    if (types_.empty() || types_.back().like() != type) types_.emplace_back(type);
    type = types_.back().get();
  }
  landings_.push_back({from, to, count, type, shape});
}

bool Call::combine_with(MPI_Op mpi_op, MPI_Datatype type, const Combination& how) {
  combiner_.emplace(mpi_op, type, how.shape, how.way == Combination::Way::packed);
  op = combiner_->handle();
  dtype = opaque_type(how.element_bytes);
  return op >= 0 && dtype >= 0;
}

void Call::fold_later(std::byte* blocks, std::size_t ranks, std::size_t count, void* to, MPI_Op mpi_op,
                      MPI_Datatype type, const Shape& shape) {
  combiner_.emplace(mpi_op, type, shape, !shape.dense);
  fold_blocks_ = blocks;
  fold_ranks_ = ranks;
  fold_count_ = count;
  fold_block_bytes_ = count * shape.size;
  unpack_later(blocks + (ranks - 1) * fold_block_bytes_, to, count, type, shape);
}

int Call::finish() {
  if (fold_blocks_) {
    // MPI_Reduce_local puts the left operand first: from the last rank to rank 0.
    std::byte* const result = fold_blocks_ + (fold_ranks_ - 1) * fold_block_bytes_;
    for (std::size_t r = fold_ranks_ - 1; r-- > 0;)
      combiner_->combine(fold_blocks_ + r * fold_block_bytes_, result, fold_count_);
  }
  for (const Landing& l : landings_)
    if (const int code = unpack(l.from, l.to, l.count, l.type, l.shape); code != MPI_SUCCESS) return code;
  return outcome;
}

GCCL_Result Call::start(GCCL_Comm comm, GCCL_Request* request) {
  const auto places = [](const std::vector<std::size_t>& v) { return v.empty() ? nullptr : v.data(); };
  switch (kind) {
    case Kind::barrier: return GCCL_Ibarrier(comm, request);
    case Kind::broadcast: return GCCL_Ibroadcast(recvbuf, count, dtype, root, comm, request);
    case Kind::gather: return GCCL_Igather(sendbuf, recvbuf, count, dtype, root, comm, request);
    case Kind::scatter: return GCCL_Iscatter(sendbuf, recvbuf, count, dtype, root, comm, request);
    case Kind::allgather: return GCCL_Iallgather(sendbuf, recvbuf, count, dtype, comm, request);
    case Kind::allgatherv:
      return GCCL_Iallgatherv(sendbuf, recvbuf, recv_counts.data(), places(recv_displs), dtype, comm, request);
    case Kind::alltoall: return GCCL_Ialltoall(sendbuf, recvbuf, count, dtype, comm, request);
    case Kind::alltoallv:
      return GCCL_Ialltoallv(sendbuf, places(send_counts), places(send_displs), recvbuf, recv_counts.data(),
                             places(recv_displs), dtype, comm, request);
    case Kind::reduce: return GCCL_Ireduce(sendbuf, recvbuf, count, dtype, op, root, comm, request);
    case Kind::allreduce: return GCCL_Iallreduce(sendbuf, recvbuf, count, dtype, op, comm, request);
    case Kind::reduce_scatter: return GCCL_Ireduce_scatter(sendbuf, recvbuf, count, dtype, op, comm, request);
    case Kind::reduce_scatterv:
      return GCCL_Ireduce_scatterv(sendbuf, recvbuf, recv_counts.data(), dtype, op, comm, request);
  }
  return GCCL_ERR_INTERNAL;
}

}  // namespace gccl::pmpi
