// What the buffers hold before an operation and must hold after it: small whole numbers, whose sums are exact in f32.
#pragma once

#include <algorithm>
#include <array>

#include "bench/peers/peer.hpp"

namespace gccl::bench {

// A sequence of floats that repeats after 61 elements: a prime, so that no block length hides a shift.
class Series {
 public:
  static constexpr std::size_t period = 61;

  // What `rank` puts in; `salt` distinguishes one operation's data from the next one's.
  static Series of_rank(int rank, std::size_t salt) {
    Series s;
    for (std::size_t i = 0; i < period; ++i) s.values_[i] = float((i + 7 * std::size_t(rank) + 13 * salt) % period + 1);
    return s;
  }
  static Series sum_of_ranks(int size, std::size_t salt) {
    Series s;
    for (int r = 0; r < size; ++r)
      for (std::size_t i = 0; i < period; ++i) s.values_[i] += of_rank(r, salt).values_[i];
    return s;
  }

  // Elements first, first+1, ... of the series.
  void fill(float* to, std::size_t count, std::size_t first = 0) const {
    for (std::size_t i = 0, k = first % period; i < count; ++i, k = k + 1 == period ? 0 : k + 1) to[i] = values_[k];
  }
  std::size_t mismatches(const float* found, std::size_t count, std::size_t first = 0) const {
    std::size_t wrong = 0;
    for (std::size_t i = 0, k = first % period; i < count; ++i, k = k + 1 == period ? 0 : k + 1)
      wrong += !(found[i] == values_[k]);
    return wrong;
  }

 private:
  std::array<float, period> values_{};
};

struct Extent {
  std::size_t count;    // of Buffers
  std::size_t in, out;  // floats the operation may touch
};

// `bytes` as nccl-tests counts: the buffer for allreduce, broadcast and pingpong; what each rank receives for
// allgather; what it puts in for reduce_scatter and alltoall. A block has at least one float.
inline Extent extent_of(Kind kind, std::size_t bytes, std::size_t size) {
  const std::size_t floats = std::max<std::size_t>(1, bytes / sizeof(float));
  const std::size_t block = std::max<std::size_t>(1, floats / size);
  switch (kind) {
    case Kind::allreduce: return {floats, floats, floats};
    case Kind::broadcast:
    case Kind::pingpong: return {floats, 0, floats};
    case Kind::allgather: return {block, block, block * size};
    case Kind::reduce_scatter: return {block, block * size, block};
    case Kind::alltoall: return {block, block * size, block * size};
    case Kind::barrier: break;
  }
  return {0, 0, 0};
}

// Sets the input, and poisons what the operation must overwrite.
inline void fill(const Peer& peer, Kind kind, const Extent& extent, const Buffers& buffers, std::size_t salt) {
  Series::of_rank(peer.rank(), salt).fill(buffers.in, extent.in);
  if ((kind == Kind::broadcast || kind == Kind::pingpong) && peer.rank() == 0)
    Series::of_rank(0, salt).fill(buffers.out, extent.out);
  else
    std::fill_n(buffers.out, extent.out, -1.0F);
}

// How many floats of the result are wrong on this rank.
inline std::size_t mismatches(const Peer& peer, Kind kind, const Buffers& buffers, std::size_t salt) {
  const std::size_t count = buffers.count;
  const int size = peer.size(), rank = peer.rank();
  std::size_t wrong = 0;
  switch (kind) {
    case Kind::allreduce: return Series::sum_of_ranks(size, salt).mismatches(buffers.out, count);
    case Kind::reduce_scatter:
      return Series::sum_of_ranks(size, salt)
          .mismatches(peer.reduces_in_place() ? buffers.in : buffers.out, count, std::size_t(rank) * count);
    case Kind::allgather:
      for (int r = 0; r < size; ++r)
        wrong += Series::of_rank(r, salt).mismatches(buffers.out + std::size_t(r) * count, count);
      return wrong;
    case Kind::alltoall:
      for (int r = 0; r < size; ++r)
        wrong +=
            Series::of_rank(r, salt).mismatches(buffers.out + std::size_t(r) * count, count, std::size_t(rank) * count);
      return wrong;
    case Kind::broadcast: return Series::of_rank(0, salt).mismatches(buffers.out, count);
    case Kind::pingpong: return rank < 2 ? Series::of_rank(0, salt).mismatches(buffers.out, count) : 0;
    case Kind::barrier: break;
  }
  return 0;
}

}  // namespace gccl::bench
