// The communication calls: arguments checked and turned into work.
#include "libgccl/api/calls.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "libgccl/api/builder.hpp"
#include "libgccl/base/splitmix.hpp"

namespace gccl {
namespace {

// A small blocking call that repeats the one before: true when it is done, with its result.
inline bool again(CommunicatorCore& c, const CommunicatorCore::Key& key, const void* in, void* out, bool non_blocking,
                  GCCL_Result* result) {
  if (non_blocking || current_group() || out == GCCL_IN_PLACE || c.survival().recovers()) return false;
  Status status;
  if (!c.repeat(key, in, out, &status)) return false;
  if (!status.ok()) notice_failure_of(&c);
  *result = failed(status);
  return true;
}

Count total(const std::size_t* counts, Rank n) { return std::accumulate(counts, counts + n, Count(0)); }

// Where the caller's blocks end: the elements that a buffer must have.
Count furthest(const std::size_t* counts, const std::size_t* places, Rank n) {
  Count end = 0;
  for (Rank r = 0; r < n; ++r)
    if (counts[r]) end = std::max<Count>(end, places[r] + counts[r]);
  return end;
}

const std::size_t* places_or_packed(const std::size_t* places, const std::size_t* counts, Rank n,
                                    std::vector<std::size_t>* packed) {
  if (places) return places;
  packed->resize(n);
  std::exclusive_scan(counts, counts + n, packed->begin(), std::size_t(0));
  return packed->data();
}

// What must be the same on all ranks of lengths that are.
Count checksum(const std::size_t* counts, Rank n) {
  std::uint64_t h = n;
  for (Rank r = 0; r < n; ++r) h = (h ^ counts[r]) * splitmix::kGolden, h ^= h >> 32;
  return h;
}

// Every block is sent from where the one from the same rank is to lie.
bool same_blocks(const Lengths& l, Rank n) {
  for (Rank r = 0; r < n; ++r)
    if (l.send_counts[r] != l.recv_counts[r] || (l.send_counts[r] > 0 && l.send_places[r] != l.recv_places[r]))
      return false;
  return true;
}

// Of blocks in one buffer: what is wrong where one would be overwritten before it is sent; empty: nothing.
std::string overlapping_blocks(const Lengths& l, Rank n) {
  struct Block {
    std::size_t begin, end;
    Rank peer;
    bool sent;
  };
  std::vector<Block> blocks;
  for (Rank r = 0; r < n; ++r) {
    if (l.send_counts[r]) blocks.push_back({l.send_places[r], l.send_places[r] + l.send_counts[r], r, true});
    if (l.recv_counts[r]) blocks.push_back({l.recv_places[r], l.recv_places[r] + l.recv_counts[r], r, false});
  }
  std::ranges::sort(blocks, {}, &Block::begin);
  const Block* last[2] = {};  // of those that are received, and of those that are sent, the one that ends last so far
  for (const Block& b : blocks) {
    if (const Block* const other = last[!b.sent]; other && other->end > b.begin) {
      const Block &to = b.sent ? b : *other, &from = b.sent ? *other : b;
      return fmt::format(
          "sendbuf is recvbuf, and in it the block for rank {} (elements {} to {}) overlaps the one from "
          "rank {} (elements {} to {}): expected blocks apart, or the same counts and displacements on "
          "both sides (in place)",
          to.peer, to.begin, to.end - 1, from.peer, from.begin, from.end - 1);
    }
    if (!last[b.sent] || last[b.sent]->end < b.end) last[b.sent] = &b;
  }
  return {};
}

const Lengths& lengths(const void* table) { return *static_cast<const Lengths*>(table); }

// A collective whose blocks are equal: where its buffers lie and how long they are follows from its definition. The
// rules of in place: schedule/call.hpp. A call in the main path of a program is repeated without a look at its
// arguments where it is like the last one of its kind.
template <Collective kind>
GCCL_Result equal_blocks(const void* sendbuf, void* recvbuf, std::size_t count, GCCL_Dtype dtype,
                         std::optional<GCCL_Op> op, int root, GCCL_Comm comm, GCCL_Request* request,
                         bool non_blocking) {
  constexpr Held input = definition(kind).input, output = definition(kind).output;
  constexpr bool own_of_output = input.extent == Extent::own && output.extent == Extent::every;
  CommunicatorCore* const c = communicator_of(comm);
  if (!c) return GCCL_ERR_INVALID_ARGUMENT;
  bool repeats = !has_root(kind) && sendbuf && recvbuf;
  // Surely not in place: the own block of recvbuf begins within 8 bytes an element.
  if constexpr (own_of_output)
    repeats = repeats && (sendbuf < recvbuf || address(sendbuf) > address(recvbuf, c->rank() * count, 8)) &&
              sendbuf != GCCL_IN_PLACE && !user_defined(dtype);
  const CommunicatorCore::Key key{.kind = std::uint8_t(kind),
                                  .in_place = !own_of_output && (sendbuf == GCCL_IN_PLACE || sendbuf == recvbuf),
                                  .dtype = dtype,
                                  .op = op.value_or(kNoOp),
                                  .root = Rank(root),
                                  .count = count};
  GCCL_Result result;
  if (repeats && again(*c, key, sendbuf, recvbuf, non_blocking, &result)) return result;
  Builder b(*c, kind, count, dtype, op, root);
  const auto elements = [&](Extent e) { return e == Extent::every ? count * b.n() : count; };
  const bool gives = b.has(input), gets = b.has(output);
  if constexpr (input.at_root) {  // scatter: the root's block may stay where it is
    const auto own = gives && sendbuf ? address(sendbuf, b.me() * count, b.element_bytes()) : 0;
    if (gives) b.input(sendbuf, "sendbuf", elements(input.extent));
    if (!gives || !b.in_place(recvbuf, own)) b.output(recvbuf, "recvbuf", elements(output.extent));
  } else {
    const auto own = address(recvbuf, own_of_output && recvbuf ? b.me() * count : 0, b.element_bytes());
    if (!gets || !b.in_place(sendbuf, own)) b.input(sendbuf, "sendbuf", elements(input.extent));
    if (gets) b.output(recvbuf, "recvbuf", elements(output.extent));
  }
  b.counted(counts_blocks(kind) ? count * b.n() : count);
  if (repeats) b.repeatable(key);
  return b.go(request, non_blocking);
}

}  // namespace

GCCL_Result broadcast(void* buf, size_t count, GCCL_Dtype dtype, int root, GCCL_Comm comm, GCCL_Request* request,
                      bool non_blocking) {
  CommunicatorCore* const c = communicator_of(comm);
  if (!c) return GCCL_ERR_INVALID_ARGUMENT;
  const CommunicatorCore::Key key{.kind = std::uint8_t(Collective::broadcast),
                                  .in_place = true,
                                  .dtype = dtype,
                                  .op = kNoOp,
                                  .root = Rank(root),
                                  .count = count};
  GCCL_Result result;
  if (buf && again(*c, key, nullptr, buf, non_blocking, &result)) return result;
  Builder b(*c, Collective::broadcast, count, dtype, {}, root);
  b.work().call.in_place = true;
  b.output(buf, "buf", count);
  b.counted(count);
  b.repeatable(key);
  return b.go(request, non_blocking);
}

GCCL_Result reduce(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Op op, int root,
                   GCCL_Comm comm, GCCL_Request* request, bool non_blocking) {
  return equal_blocks<Collective::reduce>(sendbuf, recvbuf, count, dtype, op, root, comm, request, non_blocking);
}

GCCL_Result allreduce(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Op op, GCCL_Comm comm,
                      GCCL_Request* request, bool non_blocking) {
  return equal_blocks<Collective::allreduce>(sendbuf, recvbuf, count, dtype, op, 0, comm, request, non_blocking);
}

GCCL_Result allgather(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Comm comm,
                      GCCL_Request* request, bool non_blocking) {
  return equal_blocks<Collective::allgather>(sendbuf, recvbuf, count, dtype, {}, 0, comm, request, non_blocking);
}

GCCL_Result alltoall(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Comm comm,
                     GCCL_Request* request, bool non_blocking) {
  return equal_blocks<Collective::alltoall>(sendbuf, recvbuf, count, dtype, {}, 0, comm, request, non_blocking);
}

GCCL_Result scatter(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, int root, GCCL_Comm comm,
                    GCCL_Request* request, bool non_blocking) {
  return equal_blocks<Collective::scatter>(sendbuf, recvbuf, count, dtype, {}, root, comm, request, non_blocking);
}

GCCL_Result gather(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, int root, GCCL_Comm comm,
                   GCCL_Request* request, bool non_blocking) {
  return equal_blocks<Collective::gather>(sendbuf, recvbuf, count, dtype, {}, root, comm, request, non_blocking);
}

GCCL_Result allgatherv(const void* sendbuf, void* recvbuf, const size_t* counts, const size_t* displs, GCCL_Dtype dtype,
                       GCCL_Comm comm, GCCL_Request* request, bool non_blocking) {
  CommunicatorCore* const c = communicator_of(comm);
  if (!c) return GCCL_ERR_INVALID_ARGUMENT;
  Builder b(*c, Collective::allgatherv, 0, dtype, {}, 0);
  if (!b.readable(counts, "counts", non_blocking)) return b.go(request, non_blocking);
  Work& w = b.work();
  w.lengths = std::make_unique<Lengths>();
  w.lengths->me = b.me();
  w.lengths->recv_counts = counts;
  w.lengths->recv_places = places_or_packed(displs, counts, b.n(), &w.lengths->packed_recv);
  b.blocks("counts", counts, displs);
  const Count all = total(counts, b.n());
  w.what.count = checksum(counts, b.n());
  w.call.count = all / b.n();
  w.call.table = w.lengths.get();
  w.call.counts = [](const void* t, Rank from, Rank) { return Count(lengths(t).recv_counts[from]); };
  if (displs) w.call.places = [](const void* t, Rank, Rank peer, bool) { return Count(lengths(t).recv_places[peer]); };
  const auto own = recvbuf ? address(recvbuf, w.lengths->recv_places[b.me()], b.element_bytes()) : 0;
  if (!b.in_place(sendbuf, own)) b.input(sendbuf, "sendbuf", counts[b.me()]);
  b.output(recvbuf, "recvbuf", furthest(counts, w.lengths->recv_places, b.n()));
  b.counted(all);
  return b.go(request, non_blocking);
}

namespace {

// Blocks of `count` elements; of counts[r] in a reduce_scatterv.
GCCL_Result reduce_blocks(Collective kind, const void* sendbuf, void* recvbuf, std::size_t count,
                          const std::size_t* counts, GCCL_Dtype dtype, GCCL_Op op, GCCL_Comm comm,
                          GCCL_Request* request, bool non_blocking) {
  CommunicatorCore* const c = communicator_of(comm);
  if (!c) return GCCL_ERR_INVALID_ARGUMENT;
  Builder b(*c, kind, count, dtype, op, 0);
  Work& w = b.work();
  std::size_t mine = count, before = b.me() * count, all = b.n() * count;
  if (kind == Collective::reduce_scatterv) {
    if (!b.readable(counts, "counts", non_blocking)) return b.go(request, non_blocking);
    w.lengths = std::make_unique<Lengths>();
    w.lengths->recv_counts = counts;
    b.blocks("counts", counts, nullptr);
    w.what.count = checksum(counts, b.n());
    w.call.table = w.lengths.get();
    w.call.counts = [](const void* t, Rank, Rank to) { return Count(lengths(t).recv_counts[to]); };
    mine = counts[b.me()];
    before = total(counts, b.me());
    all = total(counts, b.n());
    w.call.count = all / b.n();
  }
  const auto own = sendbuf && sendbuf != GCCL_IN_PLACE ? address(sendbuf, before, b.element_bytes()) : 0;
  if (sendbuf == GCCL_IN_PLACE) {
    w.call.in_place = true;
    w.to_first_block = true;
    b.output(recvbuf, "recvbuf", all);
  } else if (own && address(recvbuf) == own) {
    w.call.in_place = true;
    b.output(const_cast<void*>(sendbuf), "sendbuf", all);
  } else {
    b.input(sendbuf, "sendbuf", all);
    b.output(recvbuf, "recvbuf", mine);
  }
  b.counted(all);
  return b.go(request, non_blocking);
}

}  // namespace

GCCL_Result reduce_scatter(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Op op,
                           GCCL_Comm comm, GCCL_Request* request, bool non_blocking) {
  return reduce_blocks(Collective::reduce_scatter, sendbuf, recvbuf, count, nullptr, dtype, op, comm, request,
                       non_blocking);
}

GCCL_Result reduce_scatterv(const void* sendbuf, void* recvbuf, const size_t* counts, GCCL_Dtype dtype, GCCL_Op op,
                            GCCL_Comm comm, GCCL_Request* request, bool non_blocking) {
  return reduce_blocks(Collective::reduce_scatterv, sendbuf, recvbuf, 0, counts, dtype, op, comm, request,
                       non_blocking);
}

GCCL_Result alltoallv(const void* sendbuf, const size_t* sendcounts, const size_t* sdispls, void* recvbuf,
                      const size_t* recvcounts, const size_t* rdispls, GCCL_Dtype dtype, GCCL_Comm comm,
                      GCCL_Request* request, bool non_blocking) {
  CommunicatorCore* const c = communicator_of(comm);
  if (!c) return GCCL_ERR_INVALID_ARGUMENT;
  Builder b(*c, Collective::alltoallv, 0, dtype, {}, 0);
  const bool one_buffer = sendbuf && sendbuf == recvbuf;
  const bool named = sendbuf == GCCL_IN_PLACE || (one_buffer && !sendcounts);
  if (!b.readable(recvcounts, "recvcounts", non_blocking) ||
      (!named && !b.readable(sendcounts, "sendcounts", non_blocking)))
    return b.go(request, non_blocking);
  Work& w = b.work();
  w.lengths = std::make_unique<Lengths>();
  Lengths& l = *w.lengths;
  l.me = b.me();
  l.recv_counts = recvcounts;
  l.recv_places = places_or_packed(rdispls, recvcounts, b.n(), &l.packed_recv);
  l.send_counts = named ? recvcounts : sendcounts;
  l.send_places = named ? l.recv_places : places_or_packed(sdispls, sendcounts, b.n(), &l.packed_send);
  const bool in_place = named || (one_buffer && same_blocks(l, b.n()));
  w.call.in_place = in_place;
  w.call.table = &l;
  w.call.counts = [](const void* t, Rank from, Rank to) {
    const Lengths& x = lengths(t);
    return Count(from == x.me ? x.send_counts[to] : x.recv_counts[from]);
  };
  w.call.places = [](const void* t, Rank, Rank peer, bool outgoing) {
    const Lengths& x = lengths(t);
    return Count(outgoing ? x.send_places[peer] : x.recv_places[peer]);
  };
  if (!named) b.blocks("sendcounts", sendcounts, sdispls);
  b.blocks("recvcounts", recvcounts, rdispls);
  if (l.send_counts[b.me()] != recvcounts[b.me()])
    b.fail(fmt::format("rank {} sends itself {} elements and expects {}", b.me(), l.send_counts[b.me()],
                       recvcounts[b.me()]));
  if (one_buffer && !in_place && b.ok())
    if (const std::string wrong = overlapping_blocks(l, b.n()); !wrong.empty()) b.fail(wrong);
  if (!in_place) b.input(sendbuf, "sendbuf", furthest(l.send_counts, l.send_places, b.n()));
  b.output(recvbuf, "recvbuf", furthest(recvcounts, l.recv_places, b.n()));
  b.counted(total(recvcounts, b.n()));
  return b.go(request, non_blocking);
}

GCCL_Result barrier(GCCL_Comm comm, GCCL_Request* request, bool non_blocking) {
  CommunicatorCore* const c = communicator_of(comm);
  if (!c) return GCCL_ERR_INVALID_ARGUMENT;
  const CommunicatorCore::Key key{.kind = std::uint8_t(Collective::barrier),
                                  .in_place = false,
                                  .dtype = GCCL_UINT8,
                                  .op = kNoOp,
                                  .root = Rank(0),
                                  .count = 0};
  GCCL_Result result;
  if (again(*c, key, nullptr, nullptr, non_blocking, &result)) return result;
  Builder b(*c, Collective::barrier, 0, GCCL_UINT8, {}, 0);
  b.repeatable(key);
  return b.go(request, non_blocking);
}

GCCL_Result point_to_point(bool sends, const void* buf, size_t count, GCCL_Dtype dtype, int peer, GCCL_Comm comm,
                           GCCL_Request* request, bool non_blocking) {
  CommunicatorCore* const c = communicator_of(comm);
  if (!c) return GCCL_ERR_INVALID_ARGUMENT;
  if (peer < 0 || Rank(peer) >= c->size()) {
    if (c->survival().refuses()) return failed(c->survival().refused());  // the number that it had
    return failed(
        invalid(fmt::format("{} is {}: expected 0 to {}", sends ? "send: dest" : "recv: source", peer, c->size() - 1)));
  }
  const std::uint32_t element_bytes = built_in_bytes(dtype);
  // Without [[likely]], g++ takes it for rare and clears `what` by a rep stos: a twelfth of the shortest round trip.
  if (!non_blocking && !c->survival().refuses() && element_bytes != 0 && count <= kShortBytesMax && buf &&
      buf != GCCL_IN_PLACE && !current_group()) [[likely]] {
    const Descriptor what{.kind = sends ? kSendKind : kRecvKind,
                          .dtype = dtype,
                          .root = Rank(peer),
                          .count = count,
                          .bytes = count * element_bytes};
    if (c->quick_transfer(what, const_cast<void*>(buf))) return GCCL_SUCCESS;
  }
  Builder b(*c, Collective::sendrecv, count, dtype, {}, peer);
  b.work().what.kind = sends ? kSendKind : kRecvKind;
  if (sends) {
    b.input(buf, "buf", count);
  } else {
    b.output(const_cast<void*>(buf), "buf", count);
  }
  b.counted(count);
  return b.go(request, non_blocking);
}

}  // namespace gccl
