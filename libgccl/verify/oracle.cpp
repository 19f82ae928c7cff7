#include "libgccl/verify/oracle.hpp"

#include <algorithm>
#include <cassert>

namespace gccl {

using enum Collective;

Oracle::Oracle(const Call& call, Rank ranks, std::uint64_t seed)
    : call_(call), ranks_(ranks), seed_(splitmix::hash(seed)) {
  if (call.kind != allreduce && call.kind != reduce) return;
  sums_.assign(call.count, 0);
  for (Rank r = 0; r < ranks; ++r) {
    const Element b = base(r, 0);
    for (Count k = 0; k < call.count; ++k) sums_[k] += at(b, k);
  }
}

// What `from` contributes to the block of rank `to`.
void Oracle::fill(std::span<Element> block, Rank from, Rank to) const {
  const Element b = base(from, to);
  for (Count k = 0; k < block.size(); ++k) block[k] = at(b, k);
}

// Every block of rank r's input (outgoing) or output at its place.
void Oracle::blocks(std::span<Element> out, Rank r, bool outgoing) const {
  Count end = 0;
  for (Rank p = 0; p < ranks_; ++p) {
    const Rank from = outgoing ? r : p, to = outgoing ? p : r;
    const Count count = call_.between(from, to);
    if (count == 0) continue;
    const Count begin = call_.places ? call_.places(call_.table, r, p, outgoing && !call_.in_place) : end;
    // A gathered block is its owner's whole input, whoever gets it.
    const bool gathered = call_.kind == allgather || call_.kind == allgatherv || call_.kind == gather;
    fill(out.subspan(begin, count), from, gathered ? 0 : to);
    end = begin + count;
  }
}

void Oracle::input(Rank r, std::span<Element> out) const {
  assert(out.size() == input_of(call_, ranks_, r).count);
  switch (call_.kind) {
    case allreduce:
    case reduce:
    case allgather:
    case allgatherv:
    case gather:
    case sendrecv: fill(out, r, 0); break;
    case broadcast:
      if (r == call_.root) fill(out, r, 0);
      break;
    case scatter:
      if (r == call_.root) blocks(out, r, true);
      break;
    case reduce_scatter:
    case reduce_scatterv:
    case alltoall:
    case alltoallv: blocks(out, r, true); break;
    case barrier: break;
  }
}

void Oracle::output(Rank r, std::span<Element> out) const {
  assert(out.size() == output_of(call_, ranks_, r).count);
  switch (call_.kind) {
    case reduce:
      if (r != call_.root) break;
      [[fallthrough]];
    case allreduce: std::copy(sums_.begin(), sums_.end(), out.begin()); break;
    case reduce_scatter:
    case reduce_scatterv:
      std::fill(out.begin(), out.end(), 0);
      for (Rank p = 0; p < ranks_; ++p) {
        const Element b = base(p, r);
        for (Count k = 0; k < out.size(); ++k) out[k] += at(b, k);
      }
      break;
    case broadcast: fill(out, call_.root, 0); break;
    case scatter: fill(out, call_.root, r); break;
    case gather:
      if (r != call_.root) break;
      [[fallthrough]];
    case allgather:
    case allgatherv:
    case alltoall:
    case alltoallv: blocks(out, r, false); break;
    case sendrecv: fill(out, r ? r - 1 : ranks_ - 1, 0); break;
    case barrier: break;
  }
}

}  // namespace gccl
