#include "cli/bench/data.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

namespace gccl::bench {
namespace {

// Elements repeat with this period, so that what a block must hold is worked out once for any length. Prime: blocks and
// parts of the usual sizes never shift by a multiple of it unnoticed.
constexpr Count kPeriod = 1021;

unsigned mix(Rank from, Rank to, Count i) {
  std::uint64_t h = from * 0x9e3779b97f4a7c15u + to * 0xbf58476d1ce4e5b9u + i * 0x94d049bb133111ebu;
  h ^= h >> 31;
  h *= 0xd6e8feb86659fd93u;
  return unsigned(h >> 40);
}

// Element i of the block that `from` sends to `to`. Sums stay below 128 and products below 82 on any number of ranks:
// most ranks then hold the neutral element.
int element(Collective kind, Reduction op, Rank ranks, Rank from, Rank to, Count i) {
  const unsigned h = mix(from, to, i);
  if (!reduces(kind) || op == Reduction::max || op == Reduction::min) return int(h % 128);
  const Rank holders = op == Reduction::prod ? 4 : 40;
  const Count every = (Count(ranks) + holders - 1) / holders;
  const bool holds = (from + i) % every == 0;
  if (op == Reduction::prod) return holds ? 1 + int(h % 3) : 1;
  return holds ? int(h % 4) : 0;
}

double reduced(Collective kind, Reduction op, Rank ranks, Rank to, Count i) {
  int r = element(kind, op, ranks, 0, to, i);
  for (Rank from = 1; from < ranks; ++from) {
    const int x = element(kind, op, ranks, from, to, i);
    switch (op) {
      case Reduction::prod: r *= x; break;
      case Reduction::max: r = std::max(r, x); break;
      case Reduction::min: r = std::min(r, x); break;
      default: r += x;
    }
  }
  return op == Reduction::avg ? double(r) / ranks : r;
}

template <class T>
void put(std::byte* at, T x) {
  std::memcpy(at, &x, sizeof x);
}

// Whole parts for integers, the nearest value for floats.
void encode(std::byte* at, Dtype dtype, double x) {
  switch (dtype) {
    case Dtype::i8: return put(at, std::int8_t(x));
    case Dtype::u8: return put(at, std::uint8_t(x));
    case Dtype::i16: return put(at, std::int16_t(x));
    case Dtype::u16: return put(at, std::uint16_t(x));
    case Dtype::i32: return put(at, std::int32_t(x));
    case Dtype::u32: return put(at, std::uint32_t(x));
    case Dtype::i64: return put(at, std::int64_t(x));
    case Dtype::u64: return put(at, std::uint64_t(x));
    case Dtype::f16: return put(at, float_to_f16(float(x)));
    case Dtype::bf16: return put(at, float_to_bf16(float(x)));
    case Dtype::f32: return put(at, float(x));
    case Dtype::f64: return put(at, x);
  }
}

// One period of a block, or all of a shorter one.
std::vector<std::byte> period_of(Dtype dtype, Count count, const std::function<double(Count)>& value) {
  const std::size_t each = size_of(dtype);
  std::vector<std::byte> period(std::min(count, kPeriod) * each);
  for (Count i = 0; i * each < period.size(); ++i) encode(period.data() + i * each, dtype, value(i));
  return period;
}

// Called for each block of the rank's input or output, in memory order: its length and its repeating content.
using BlockFn = std::function<void(Count count, const std::vector<std::byte>& period)>;

void input_blocks(const Call& c, Dtype dtype, Reduction op, Rank n, Rank r, const BlockFn& f) {
  const auto block = [&](Rank to, Count count) {
    f(count, period_of(dtype, count, [&](Count i) { return element(c.kind, op, n, r, to, i); }));
  };
  switch (c.kind) {
    case Collective::reduce_scatter:
    case Collective::reduce_scatterv:
    case Collective::scatter:
    case Collective::alltoall:
    case Collective::alltoallv:
      if (c.kind == Collective::scatter && r != c.root) return;
      for (Rank to = 0; to < n; ++to) block(to, c.between(r, to));
      return;
    case Collective::broadcast:
      if (r == c.root) block(0, c.count);
      return;
    case Collective::barrier: return;
    case Collective::allgatherv: return block(0, c.between(r, r));
    default: block(0, c.count);
  }
}

void output_blocks(const Call& c, Dtype dtype, Reduction op, Rank n, Rank r, const BlockFn& f) {
  const auto block = [&](Rank from, Rank to, Count count) {
    f(count, period_of(dtype, count, [&](Count i) { return element(c.kind, op, n, from, to, i); }));
  };
  const auto sum = [&](Rank to) {
    const Count count = c.between(r, to);
    f(count, period_of(dtype, count, [&](Count i) { return reduced(c.kind, op, n, to, i); }));
  };
  switch (c.kind) {
    case Collective::allreduce: return sum(0);
    case Collective::reduce_scatter:
    case Collective::reduce_scatterv: return sum(r);
    case Collective::reduce:
      if (r == c.root) sum(0);
      return;
    case Collective::broadcast: return block(c.root, 0, c.count);
    case Collective::scatter: return block(c.root, r, c.count);
    case Collective::sendrecv: return block((r + n - 1) % n, 0, c.count);
    case Collective::allgather:
    case Collective::gather:
      for (Rank from = 0; from < n && (c.kind == Collective::allgather || r == c.root); ++from) block(from, 0, c.count);
      return;
    case Collective::allgatherv:
      for (Rank from = 0; from < n; ++from) block(from, 0, c.between(from, r));
      return;
    case Collective::alltoall:
    case Collective::alltoallv:
      for (Rank from = 0; from < n; ++from) block(from, r, c.between(from, r));
      return;
    case Collective::barrier: return;
  }
}

}  // namespace

void fill_input(const Call& call, Dtype dtype, Reduction op, Rank ranks, Rank rank, std::byte* at) {
  input_blocks(call, dtype, op, ranks, rank, [&](Count count, const std::vector<std::byte>& period) {
    for (std::size_t left = count * size_of(dtype); left;) {
      const std::size_t now = std::min(left, period.size());
      std::memcpy(at, period.data(), now);
      at += now;
      left -= now;
    }
  });
}

Count count_wrong(const Call& call, Dtype dtype, Reduction op, Rank ranks, Rank rank, const std::byte* at) {
  const std::size_t each = size_of(dtype);
  Count wrong = 0;
  output_blocks(call, dtype, op, ranks, rank, [&](Count count, const std::vector<std::byte>& period) {
    for (std::size_t left = count * each; left;) {
      const std::size_t now = std::min(left, period.size());
      if (std::memcmp(at, period.data(), now) != 0)
        for (std::size_t i = 0; i < now; i += each) wrong += std::memcmp(at + i, period.data() + i, each) != 0;
      at += now;
      left -= now;
    }
  });
  return wrong;
}

}  // namespace gccl::bench
