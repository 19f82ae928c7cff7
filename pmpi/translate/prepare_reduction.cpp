#include <algorithm>
#include <numeric>

#include "pmpi/translate/prepare.hpp"

namespace gccl::pmpi {
namespace {

using Way = Combination::Way;

// All ranks' inputs of an operation that does not commute, on every rank that needs them. A constant: the ranks must
// agree.
constexpr std::size_t kInOrderBytesMax = std::size_t(64) << 20;

// One reduction's arguments, and what its elements are for GCCL.
struct Reduction {
  Call* call;
  const void* sendbuf;
  void* recvbuf;
  MPI_Datatype type;
  MPI_Op op;
  Combination how;
  int code = MPI_SUCCESS;

  // Fills in `how`.
  Reason plan() {
    const Reason why = combination(op, type, &how);
    if (why != Reason::none || !call->nonblocking || how.way == Way::arithmetic) return why;
    return Reason::operation_not_ours;
  }

  bool in_place() const { return sendbuf == MPI_IN_PLACE; }
  const void* source() const { return in_place() ? recvbuf : sendbuf; }

  const Shape& shape() const { return how.shape; }
  // Sets the call's type and operation; in GCCL's elements, `count` of MPI's are the result.
  std::size_t elements(std::size_t count) {
    if (how.way != Way::arithmetic) return count;
    call->dtype = how.dtype;
    call->op = how.op;
    return count * how.parts;
  }
  const void* input(std::size_t count) {
    if (in_place() && shape().dense) return GCCL_IN_PLACE;
    return call->input(source(), count, type, shape(), &code);
  }
  void* output(std::size_t count) { return call->output(recvbuf, count, type, shape()); }
  // For a result shorter than the input: in place, what lies behind it stays as it was, as in MPI libraries.
  const void* longer_input(std::size_t count) { return call->input(source(), count, type, shape(), &code); }
  void* shorter_output(std::size_t count) {
    if (!in_place() || !shape().dense) return output(count);
    std::byte* const result = call->scratch(count * shape().size);
    call->unpack_later(result, recvbuf, count, type, shape());
    return result;
  }
  Reason verdict() const { return code == MPI_SUCCESS ? Reason::none : Reason::wrong_argument; }
};

// Nothing to combine, but a call like any other.
Reason nothing(Call* call, Call::Kind kind, int root) {
  call->kind = kind;
  call->root = root;
  return Reason::none;
}

bool wrong(MPI_Datatype type, MPI_Op op, const void* recvbuf) {
  return is_no_type(type) || op == MPI_OP_NULL || op == MPI_Op() || recvbuf == MPI_IN_PLACE || !committed(type);
}

// MPI libraries refuse one buffer as both. Both may be MPI_BOTTOM.
bool same(const void* sendbuf, const void* recvbuf) { return sendbuf == recvbuf && sendbuf != MPI_BOTTOM; }

bool fits_in_order(Member me, std::size_t bytes) { return bytes <= kInOrderBytesMax / std::size_t(me.size); }

}  // namespace

Reason prepare_allreduce(Member me, Call* call, const void* sendbuf, void* recvbuf, int count, MPI_Datatype type,
                         MPI_Op op) {
  // Of one element Open MPI takes it.
  if (count < 0 || wrong(type, op, recvbuf) || (count > 1 && same(sendbuf, recvbuf))) return Reason::wrong_argument;
  Reduction r{call, sendbuf, recvbuf, type, op, {}};
  if (const Reason why = r.plan(); why != Reason::none) return why;
  const auto n = std::size_t(count);
  const std::size_t bytes = n * r.how.shape.size;
  if (bytes == 0) return nothing(call, Call::Kind::allreduce, 0);
  if (r.how.way == Way::in_order) {
    if (!fits_in_order(me, bytes)) return Reason::order_too_large;
    std::byte* const all = call->scratch(bytes * std::size_t(me.size));
    call->kind = Call::Kind::allgather;
    call->count = bytes;
    call->sendbuf = call->input(r.source(), n, type, r.shape(), &r.code);
    call->recvbuf = all;
    call->fold_later(all, std::size_t(me.size), n, recvbuf, op, type, r.how.shape);
    return r.verdict();
  }
  if (r.how.way != Way::arithmetic && !call->combine_with(op, type, r.how)) return Reason::operation;
  call->kind = Call::Kind::allreduce;
  call->count = r.elements(n);
  call->sendbuf = r.input(n);
  call->recvbuf = r.output(n);
  return r.verdict();
}

Reason prepare_reduce(Member me, Call* call, const void* sendbuf, void* recvbuf, int count, MPI_Datatype type,
                      MPI_Op op, int root) {
  const bool at_root = me.rank == root;
  if (root < 0 || root >= me.size || count < 0 || wrong(type, op, at_root ? recvbuf : nullptr) ||
      (!at_root && sendbuf == MPI_IN_PLACE) || (at_root && count > 0 && same(sendbuf, recvbuf)))
    return Reason::wrong_argument;
  Reduction r{call, sendbuf, recvbuf, type, op, {}};
  if (const Reason why = r.plan(); why != Reason::none) return why;
  const auto n = std::size_t(count);
  const std::size_t bytes = n * r.how.shape.size;
  if (bytes == 0) return nothing(call, Call::Kind::reduce, root);
  call->root = root;
  if (r.how.way == Way::in_order) {
    if (!fits_in_order(me, bytes)) return Reason::order_too_large;
    call->kind = Call::Kind::gather;
    call->count = bytes;
    call->sendbuf = call->input(r.source(), n, type, r.shape(), &r.code);
    if (at_root) {
      std::byte* const all = call->scratch(bytes * std::size_t(me.size));
      call->recvbuf = all;
      call->fold_later(all, std::size_t(me.size), n, recvbuf, op, type, r.how.shape);
    }
    return r.verdict();
  }
  if (r.how.way != Way::arithmetic && !call->combine_with(op, type, r.how)) return Reason::operation;
  call->kind = Call::Kind::reduce;
  call->count = r.elements(n);
  call->sendbuf = r.input(n);
  if (at_root) call->recvbuf = r.output(n);
  return r.verdict();
}

namespace {

// Blocks of counts[i] elements for rank i; all of one length where `uniform`.
Reason prepare_scattered(Member me, Reduction r, std::vector<std::size_t> counts, bool uniform) {
  Call* const call = r.call;
  if (const Reason why = r.plan(); why != Reason::none) return why;
  const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t(0));
  const std::size_t mine = counts[std::size_t(me.rank)], size = r.how.shape.size;
  if (total * size == 0) return nothing(call, Call::Kind::reduce_scatter, 0);
  if (r.how.way == Way::in_order) {
    if (!fits_in_order(me, total * size)) return Reason::order_too_large;
    const std::byte* const in =
        static_cast<const std::byte*>(call->input(r.source(), total, r.type, r.shape(), &r.code));
    std::byte* const all = call->scratch(mine * size * std::size_t(me.size));
    call->kind = Call::Kind::alltoallv;
    call->sendbuf = in;
    call->recvbuf = all;
    for (const std::size_t c : counts) call->send_counts.push_back(c * size);
    call->recv_counts.assign(std::size_t(me.size), mine * size);
    if (mine > 0) call->fold_later(all, std::size_t(me.size), mine, r.recvbuf, r.op, r.type, r.how.shape);
    return r.verdict();
  }
  if (r.how.way != Way::arithmetic && !call->combine_with(r.op, r.type, r.how)) return Reason::operation;
  for (std::size_t& c : counts) c = r.elements(c);
  call->kind = uniform ? Call::Kind::reduce_scatter : Call::Kind::reduce_scatterv;
  call->count = counts[0];
  call->sendbuf = r.longer_input(total);
  call->recvbuf = r.shorter_output(mine);
  if (!uniform) call->recv_counts = std::move(counts);
  return r.verdict();
}

}  // namespace

Reason prepare_reduce_scatter_block(Member me, Call* call, const void* sendbuf, void* recvbuf, int recvcount,
                                    MPI_Datatype type, MPI_Op op) {
  if (recvcount < 0 || wrong(type, op, recvbuf)) return Reason::wrong_argument;
  return prepare_scattered(me, {call, sendbuf, recvbuf, type, op, {}},
                           std::vector<std::size_t>(std::size_t(me.size), std::size_t(recvcount)), true);
}

Reason prepare_reduce_scatter(Member me, Call* call, const void* sendbuf, void* recvbuf, const int* recvcounts,
                              MPI_Datatype type, MPI_Op op) {
  if (!recvcounts || wrong(type, op, recvbuf) ||
      std::any_of(recvcounts, recvcounts + me.size, [](int c) { return c < 0; }))
    return Reason::wrong_argument;
  return prepare_scattered(me, {call, sendbuf, recvbuf, type, op, {}},
                           std::vector<std::size_t>(recvcounts, recvcounts + me.size), false);
}

}  // namespace gccl::pmpi
