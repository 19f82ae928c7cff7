// What the buffers hold before an operation and must hold after it: small whole numbers, whose sums are exact in f32.
// Which rank's elements lie where is the collective's definition (definition.hpp), headers alone: nothing of GCCL is
// linked into another library's program.
#pragma once

#include <algorithm>
#include <array>
#include <iterator>

#include "bench/peers/peer.hpp"
#include "libgccl/schedule/definition.hpp"

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

// What an operation is in the library's words (definition.hpp). pingpong is a broadcast from rank 0 that rank 1 alone
// answers.
inline Call call_of(Kind kind, std::size_t count) {
  constexpr Collective kCollectives[] = {Collective::allreduce, Collective::allgather, Collective::reduce_scatter,
                                         Collective::broadcast, Collective::alltoall,  Collective::barrier,
                                         Collective::broadcast};
  static_assert(std::size(kCollectives) == kind_names.size());
  return {.kind = kCollectives[std::size_t(kind)], .count = count};
}
// Whether `out` is the only buffer.
inline bool one_buffer(Kind kind) { return kind == Kind::broadcast || kind == Kind::pingpong; }

struct Sizes {
  std::size_t count;    // of Buffers
  std::size_t in, out;  // floats the operation may touch, on any rank
};

// `bytes` as nccl-tests counts: the bigger buffer of a rank. A block has at least one float.
inline Sizes sizes_of(Kind kind, std::size_t bytes, std::size_t ranks) {
  const std::size_t floats = std::max<std::size_t>(1, bytes / sizeof(float));
  const bool blocks = counts_blocks(call_of(kind, 0).kind);
  Sizes sizes{blocks ? std::max<std::size_t>(1, floats / ranks) : floats, 0, 0};
  const Call call = call_of(kind, sizes.count);
  const auto reach = [](std::size_t* end) {
    return [end](const Piece& p) { *end = std::max<std::size_t>(*end, p.begin + p.count); };
  };
  if (!one_buffer(kind)) each_input(call, Rank(ranks), 0, reach(&sizes.in));
  each_output(call, Rank(ranks), 0, reach(&sizes.out));
  return sizes;
}

// Sets the input, and poisons what the operation must overwrite.
inline void fill(const Peer& peer, Kind kind, const Sizes& sizes, const Buffers& buffers, std::size_t salt) {
  std::fill_n(buffers.out, sizes.out, -1.0F);
  float* const given = one_buffer(kind) ? buffers.out : buffers.in;
  each_input(call_of(kind, buffers.count), Rank(peer.size()), Rank(peer.rank()), [&](const Piece& p) {
    Series::of_rank(int(p.from), salt).fill(given + p.begin, p.count, p.block * buffers.count);
  });
}

// How many floats of the result are wrong on this rank.
inline std::size_t mismatches(const Peer& peer, Kind kind, const Buffers& buffers, std::size_t salt) {
  if (kind == Kind::pingpong && peer.rank() > 1) return 0;
  const float* const got = kind == Kind::reduce_scatter && peer.reduces_in_place() ? buffers.in : buffers.out;
  std::size_t wrong = 0;
  each_output(call_of(kind, buffers.count), Rank(peer.size()), Rank(peer.rank()), [&](const Piece& p) {
    const Series due = p.reduced ? Series::sum_of_ranks(peer.size(), salt) : Series::of_rank(int(p.from), salt);
    wrong += due.mismatches(got + p.begin, p.count, p.block * buffers.count);
  });
  return wrong;
}

}  // namespace gccl::bench
