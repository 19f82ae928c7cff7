#include <algorithm>
#include <cstring>
#include <memory>

#include "pmpi/translate/prepare.hpp"

namespace gccl::pmpi {
namespace {

bool wrong(int count, MPI_Datatype type) { return count < 0 || is_no_type(type); }
bool wrong(const int* counts, int n, MPI_Datatype type) {
  return is_no_type(type) || !counts || std::any_of(counts, counts + n, [](int c) { return c < 0; });
}
// Types must be committed, too, where Open MPI demands that. It does not where a gather, a scatter or an all-gather
// receives, and where a scatter sends: no rank may leave such a call to MPI because of its own type.
bool wrong_or_uncommitted(int count, MPI_Datatype type) { return wrong(count, type) || !committed(type); }
bool wrong_or_uncommitted(const int* counts, int n, MPI_Datatype type) {
  return wrong(counts, n, type) || !committed(type);
}
bool wrong_or_uncommitted(const int* counts, const MPI_Datatype* types, int n) {
  if (!counts || !types) return true;
  for (int i = 0; i < n; ++i)
    if (wrong_or_uncommitted(counts[i], types[i])) return true;
  return false;
}
bool wrong_root(int root, Member me) { return root < 0 || root >= me.size; }

Reason verdict(int code) { return code == MPI_SUCCESS ? Reason::none : Reason::wrong_argument; }

// The blocks of a v-collective, one for each rank, in either direction.
struct Block {
  void* at;
  std::size_t count;
  MPI_Datatype type;
  Shape shape;

  std::size_t bytes() const { return count * shape.size; }
  bool in_memory() const { return shape.dense || bytes() == 0; }
  std::byte* data() const { return displaced(at, 1, shape.true_lb); }
};

class Blocks {
 public:
  // displs[i] elements of one type behind `buf`.
  Blocks(const void* buf, const int* counts, const int* displs, MPI_Datatype type, int n) {
    const Shape shape = shape_of(type);
    for (int i = 0; i < n; ++i)
      blocks_.push_back({displaced(buf, displs[i], shape.extent), std::size_t(counts[i]), type, shape});
  }
  // displs[i] bytes behind `buf`, each with a type of its own.
  Blocks(const void* buf, const int* counts, const int* displs, const MPI_Datatype* types, int n) {
    for (int i = 0; i < n; ++i)
      blocks_.push_back({displaced(buf, displs[i], 1), std::size_t(counts[i]), types[i], shape_of(types[i])});
  }

  const Block& operator[](int i) const { return blocks_[std::size_t(i)]; }
  bool in_memory() const {
    return std::all_of(blocks_.begin(), blocks_.end(), [](const Block& b) { return b.in_memory(); });
  }
  std::vector<std::size_t> bytes() const {
    std::vector<std::size_t> all;
    for (const Block& b : blocks_) all.push_back(b.bytes());
    return all;
  }
  std::size_t total() const {
    std::size_t sum = 0;
    for (const Block& b : blocks_) sum += b.bytes();
    return sum;
  }
  // For blocks in memory: where the lowest of those that are not empty begins, and how far the others are from there.
  std::byte* base() const {
    std::byte* low = nullptr;
    for (const Block& b : blocks_)
      if (b.bytes() > 0 && (!low || b.data() < low)) low = b.data();
    return low;
  }
  std::vector<std::size_t> distances() const {
    const std::byte* const low = base();
    std::vector<std::size_t> all;
    for (const Block& b : blocks_) all.push_back(b.bytes() > 0 ? std::size_t(b.data() - low) : 0);
    return all;
  }
  int pack_all(std::byte* to) const {
    for (const Block& b : blocks_) {
      if (const int code = pack(b.at, b.count, b.type, b.shape, to); code != MPI_SUCCESS) return code;
      to += b.bytes();
    }
    return MPI_SUCCESS;
  }
  void unpack_all_later(Call* call, const std::byte* from) const {
    for (const Block& b : blocks_) {
      if (b.bytes() > 0) call->unpack_later(from, b.at, b.count, b.type, b.shape);
      from += b.bytes();
    }
  }

 private:
  std::vector<Block> blocks_;
};

// Sets sendbuf, send_counts and send_displs. Returns an MPI error code.
int send_blocks(Call* call, const Blocks& from) {
  call->send_counts = from.bytes();
  if (from.in_memory()) {
    call->sendbuf = from.base();
    call->send_displs = from.distances();
    return MPI_SUCCESS;
  }
  std::byte* const copy = call->scratch(from.total());
  call->sendbuf = copy;
  return from.pack_all(copy);
}

// Sets recvbuf, recv_counts and recv_displs.
void receive_blocks(Call* call, const Blocks& to) {
  call->recv_counts = to.bytes();
  if (to.in_memory()) {
    call->recvbuf = to.base();
    call->recv_displs = to.distances();
  } else {
    std::byte* const copy = call->scratch(to.total());
    to.unpack_all_later(call, copy);
    call->recvbuf = copy;
  }
}

// Everybody to everybody, in blocks; no `from`: in place.
Reason exchange(Call* call, const Blocks* from, const Blocks& to) {
  int code = MPI_SUCCESS;
  call->kind = Call::Kind::alltoallv;
  if (!from && to.in_memory()) {
    call->sendbuf = GCCL_IN_PLACE;
  } else {
    code = send_blocks(call, from ? *from : to);
  }
  receive_blocks(call, to);
  return verdict(code);
}

// Where this rank's own two lengths differ, what it sends to itself is as much as there is at `from` and room for at
// `to`, as in Open MPI; what is behind it stays. To `all`: the data of `to` after that. Returns an MPI error code.
int lay_over(const Block& from, const Block& to, std::byte* all) {
  if (const int code = pack(to.at, to.count, to.type, to.shape, all); code != MPI_SUCCESS) return code;
  const std::size_t bytes = std::min(from.bytes(), to.bytes());
  if (from.in_memory()) {
    if (bytes > 0) std::memcpy(all, from.data(), bytes);
    return MPI_SUCCESS;
  }
  const auto packed = std::make_unique_for_overwrite<std::byte[]>(from.bytes());
  const int code = pack(from.at, from.count, from.type, from.shape, packed.get());
  std::memcpy(all, packed.get(), bytes);
  return code;
}

// Sets sendbuf to this rank's own part, which goes to `to` here and to others as long as that: no more is read than it
// has. Returns an MPI error code.
int send_own(Call* call, const Block& from, const Block& to) {
  int code = MPI_SUCCESS;
  if (from.bytes() == to.bytes()) {
    call->sendbuf = call->input(from.at, from.count, from.type, from.shape, &code);
    return code;
  }
  if (from.bytes() > to.bytes()) call->outcome = MPI_ERR_TRUNCATE;
  std::byte* const all = call->scratch(to.bytes());
  call->sendbuf = all;
  return lay_over(from, to, all);
}

// Open MPI refuses an all-to-all of a rank that sends itself another length than it expects, before it communicates.
bool lengths_differ(int sendcount, MPI_Datatype sendtype, int recvcount, MPI_Datatype recvtype) {
  return std::size_t(sendcount) * shape_of(sendtype).size != std::size_t(recvcount) * shape_of(recvtype).size;
}

}  // namespace

Reason prepare_barrier(Member, Call* call) {
  call->kind = Call::Kind::barrier;
  return Reason::none;
}

Reason prepare_bcast(Member me, Call* call, void* buf, int count, MPI_Datatype type, int root) {
  if (wrong_or_uncommitted(count, type) || wrong_root(root, me) || buf == MPI_IN_PLACE) return Reason::wrong_argument;
  const Shape shape = shape_of(type);
  const auto n = std::size_t(count);
  int code = MPI_SUCCESS;
  call->kind = Call::Kind::broadcast;
  call->root = root;
  call->count = n * shape.size;
  call->recvbuf =
      me.rank == root ? const_cast<void*>(call->input(buf, n, type, shape, &code)) : call->output(buf, n, type, shape);
  return verdict(code);
}

Reason prepare_gather(Member me, Call* call, const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                      int recvcount, MPI_Datatype recvtype, int root) {
  if (wrong_root(root, me)) return Reason::wrong_argument;
  const bool at_root = me.rank == root, in_place = sendbuf == MPI_IN_PLACE;
  if (in_place && !at_root) return Reason::wrong_argument;
  if (at_root && (wrong(recvcount, recvtype) || recvbuf == MPI_IN_PLACE)) return Reason::wrong_argument;
  if (!in_place && wrong_or_uncommitted(sendcount, sendtype)) return Reason::wrong_argument;
  int code = MPI_SUCCESS;
  call->kind = Call::Kind::gather;
  call->root = root;
  if (!at_root) {
    const Shape shape = shape_of(sendtype);
    call->count = std::size_t(sendcount) * shape.size;
    call->sendbuf = call->input(sendbuf, std::size_t(sendcount), sendtype, shape, &code);
  } else {
    const Shape shape = shape_of(recvtype);
    const auto n = std::size_t(recvcount);
    const Block mine{displaced(recvbuf, std::int64_t(n) * root, shape.extent), n, recvtype, shape};
    call->count = n * shape.size;
    if (!in_place)
      code = send_own(call, {const_cast<void*>(sendbuf), std::size_t(sendcount), sendtype, shape_of(sendtype)}, mine);
    else
      call->sendbuf = shape.dense || call->count == 0 ? GCCL_IN_PLACE : call->input(mine.at, n, recvtype, shape, &code);
    call->recvbuf = call->output(recvbuf, n * std::size_t(me.size), recvtype, shape);
  }
  return verdict(code);
}

Reason prepare_scatter(Member me, Call* call, const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                       int recvcount, MPI_Datatype recvtype, int root) {
  if (wrong_root(root, me)) return Reason::wrong_argument;
  const bool at_root = me.rank == root, in_place = recvbuf == MPI_IN_PLACE;
  if (in_place && !at_root) return Reason::wrong_argument;
  if (at_root && (wrong(sendcount, sendtype) || sendbuf == MPI_IN_PLACE)) return Reason::wrong_argument;
  if (!in_place && wrong(recvcount, recvtype)) return Reason::wrong_argument;
  int code = MPI_SUCCESS;
  call->kind = Call::Kind::scatter;
  call->root = root;
  call->recvbuf = GCCL_IN_PLACE;
  if (at_root) {
    const Shape shape = shape_of(sendtype);
    const auto n = std::size_t(sendcount);
    call->count = n * shape.size;
    call->sendbuf = call->input(sendbuf, n * std::size_t(me.size), sendtype, shape, &code);
    if (in_place) return verdict(code);
    const Block from{displaced(sendbuf, std::int64_t(n) * root, shape.extent), n, sendtype, shape};
    const Block to{recvbuf, std::size_t(recvcount), recvtype, shape_of(recvtype)};
    if (from.bytes() != to.bytes()) {
      if (from.bytes() > to.bytes()) call->outcome = MPI_ERR_TRUNCATE;
      const auto all = std::make_unique_for_overwrite<std::byte[]>(to.bytes());
      if (code == MPI_SUCCESS) code = lay_over(from, to, all.get());
      if (code == MPI_SUCCESS) code = unpack(all.get(), to.at, to.count, to.type, to.shape);
      return verdict(code);
    }
  }
  if (!in_place) {
    const Shape shape = shape_of(recvtype);
    call->count = std::size_t(recvcount) * shape.size;
    call->recvbuf = call->output(recvbuf, std::size_t(recvcount), recvtype, shape);
  }
  return verdict(code);
}

Reason prepare_allgather(Member me, Call* call, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                         void* recvbuf, int recvcount, MPI_Datatype recvtype) {
  const bool in_place = sendbuf == MPI_IN_PLACE;
  if (wrong(recvcount, recvtype) || recvbuf == MPI_IN_PLACE || (!in_place && wrong_or_uncommitted(sendcount, sendtype)))
    return Reason::wrong_argument;
  int code = MPI_SUCCESS;
  const Shape shape = shape_of(recvtype);
  const auto n = std::size_t(recvcount);
  call->kind = Call::Kind::allgather;
  call->count = n * shape.size;
  const Block mine{displaced(recvbuf, std::int64_t(n) * me.rank, shape.extent), n, recvtype, shape};
  if (!in_place) {
    code = send_own(call, {const_cast<void*>(sendbuf), std::size_t(sendcount), sendtype, shape_of(sendtype)}, mine);
  } else if (shape.dense || call->count == 0) {
    call->sendbuf = GCCL_IN_PLACE;
  } else {
    call->sendbuf = call->input(mine.at, n, recvtype, shape, &code);
  }
  call->recvbuf = call->output(recvbuf, n * std::size_t(me.size), recvtype, shape);
  return verdict(code);
}

Reason prepare_allgatherv(Member me, Call* call, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                          void* recvbuf, const int* recvcounts, const int* displs, MPI_Datatype recvtype) {
  const bool in_place = sendbuf == MPI_IN_PLACE;
  if (!displs || wrong(recvcounts, me.size, recvtype) || recvbuf == MPI_IN_PLACE ||
      (!in_place && wrong_or_uncommitted(sendcount, sendtype)))
    return Reason::wrong_argument;
  int code = MPI_SUCCESS;
  const Blocks to(recvbuf, recvcounts, displs, recvtype, me.size);
  call->kind = Call::Kind::allgatherv;
  const Block& mine = to[me.rank];
  if (!in_place) {
    code = send_own(call, {const_cast<void*>(sendbuf), std::size_t(sendcount), sendtype, shape_of(sendtype)}, mine);
  } else if (to.in_memory()) {
    call->sendbuf = GCCL_IN_PLACE;
  } else {
    call->sendbuf = call->input(mine.at, mine.count, recvtype, mine.shape, &code);
  }
  receive_blocks(call, to);
  return verdict(code);
}

Reason prepare_alltoall(Member me, Call* call, const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                        int recvcount, MPI_Datatype recvtype) {
  const bool in_place = sendbuf == MPI_IN_PLACE;
  if (wrong_or_uncommitted(recvcount, recvtype) || recvbuf == MPI_IN_PLACE ||
      (!in_place &&
       (wrong_or_uncommitted(sendcount, sendtype) || lengths_differ(sendcount, sendtype, recvcount, recvtype))))
    return Reason::wrong_argument;
  int code = MPI_SUCCESS;
  const Shape shape = shape_of(recvtype);
  const auto n = std::size_t(recvcount), all = std::size_t(me.size);
  call->kind = Call::Kind::alltoall;
  call->count = n * shape.size;
  if (!in_place) {
    call->sendbuf = call->input(sendbuf, std::size_t(sendcount) * all, sendtype, shape_of(sendtype), &code);
  } else if (shape.dense || call->count == 0) {
    call->sendbuf = GCCL_IN_PLACE;
  } else {
    call->sendbuf = call->input(recvbuf, n * all, recvtype, shape, &code);
  }
  call->recvbuf = call->output(recvbuf, n * all, recvtype, shape);
  return verdict(code);
}

Reason prepare_alltoallv(Member me, Call* call, const void* sendbuf, const int* sendcounts, const int* sdispls,
                         MPI_Datatype sendtype, void* recvbuf, const int* recvcounts, const int* rdispls,
                         MPI_Datatype recvtype) {
  const bool in_place = sendbuf == MPI_IN_PLACE;
  if (!rdispls || wrong_or_uncommitted(recvcounts, me.size, recvtype) || recvbuf == MPI_IN_PLACE ||
      (!in_place && (!sdispls || wrong_or_uncommitted(sendcounts, me.size, sendtype) ||
                     lengths_differ(sendcounts[me.rank], sendtype, recvcounts[me.rank], recvtype))))
    return Reason::wrong_argument;
  const Blocks to(recvbuf, recvcounts, rdispls, recvtype, me.size);
  if (in_place) return exchange(call, nullptr, to);
  const Blocks from(sendbuf, sendcounts, sdispls, sendtype, me.size);
  return exchange(call, &from, to);
}

Reason prepare_alltoallw(Member me, Call* call, const void* sendbuf, const int* sendcounts, const int* sdispls,
                         const MPI_Datatype* sendtypes, void* recvbuf, const int* recvcounts, const int* rdispls,
                         const MPI_Datatype* recvtypes) {
  const bool in_place = sendbuf == MPI_IN_PLACE;
  if (!rdispls || recvbuf == MPI_IN_PLACE || wrong_or_uncommitted(recvcounts, recvtypes, me.size) ||
      (!in_place && (!sdispls || wrong_or_uncommitted(sendcounts, sendtypes, me.size) ||
                     lengths_differ(sendcounts[me.rank], sendtypes[me.rank], recvcounts[me.rank], recvtypes[me.rank]))))
    return Reason::wrong_argument;
  const Blocks to(recvbuf, recvcounts, rdispls, recvtypes, me.size);
  if (in_place) return exchange(call, nullptr, to);
  const Blocks from(sendbuf, sendcounts, sdispls, sendtypes, me.size);
  return exchange(call, &from, to);
}

}  // namespace gccl::pmpi
