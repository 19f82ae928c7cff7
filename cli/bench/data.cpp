#include "cli/bench/data.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "libgccl/base/splitmix.hpp"
#include "libgccl/schedule/definition.hpp"

namespace gccl::bench {
namespace {

// Elements repeat with this period, so that what a block must hold is worked out once for any length. Prime: blocks and
// parts of the usual sizes never shift by a multiple of it unnoticed.
constexpr Count kPeriod = 1021;

unsigned mix(Rank from, Rank to, Count i, std::uint64_t salt) {
  std::uint64_t h =
      salt * 0x2545f4914f6cdd1du + from * splitmix::kGolden + to * 0xbf58476d1ce4e5b9u + i * 0x94d049bb133111ebu;
  h ^= h >> 31;
  h *= 0xd6e8feb86659fd93u;
  return unsigned(h >> 40);
}

// Element i of the block that `from` sends to `to`. Sums stay below 128 and products below 82 on any number of ranks:
// most ranks then hold the neutral element.
int element(Collective kind, Reduction op, Rank ranks, Rank from, Rank to, Count i, std::uint64_t salt) {
  const unsigned h = mix(from, to, i, salt);
  if (!reduces(kind) || op == Reduction::max || op == Reduction::min) return int(h % 128);
  const Rank holders = op == Reduction::prod ? 4 : 40;
  const Count every = (Count(ranks) + holders - 1) / holders;
  const bool holds = (from + i) % every == 0;
  if (op == Reduction::prod) return holds ? 1 + int(h % 3) : 1;
  return holds ? int(h % 4) : 0;
}

double reduced(Collective kind, Reduction op, Rank ranks, Rank to, Count i, std::uint64_t salt) {
  int r = element(kind, op, ranks, 0, to, i, salt);
  for (Rank from = 1; from < ranks; ++from) {
    const int x = element(kind, op, ranks, from, to, i, salt);
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

}  // namespace

void fill_input(const Call& call, Dtype dtype, Reduction op, Rank ranks, Rank rank, std::byte* at, std::uint64_t salt) {
  each_input(call, ranks, rank, [&](const Piece& p) {
    const std::vector<std::byte> period =
        period_of(dtype, p.count, [&](Count i) { return element(call.kind, op, ranks, p.from, p.block, i, salt); });
    std::byte* to = at + p.begin * size_of(dtype);
    for (std::size_t left = p.count * size_of(dtype); left;) {
      const std::size_t now = std::min(left, period.size());
      std::memcpy(to, period.data(), now);
      to += now;
      left -= now;
    }
  });
}

Count count_wrong(const Call& call, Dtype dtype, Reduction op, Rank ranks, Rank rank, const std::byte* at,
                  std::uint64_t salt) {
  const std::size_t each = size_of(dtype);
  Count wrong = 0;
  each_output(call, ranks, rank, [&](const Piece& p) {
    const std::vector<std::byte> period = period_of(dtype, p.count, [&](Count i) {
      return p.reduced ? reduced(call.kind, op, ranks, p.block, i, salt)
                       : element(call.kind, op, ranks, p.from, p.block, i, salt);
    });
    const std::byte* found = at + p.begin * each;
    for (std::size_t left = p.count * each; left;) {
      const std::size_t now = std::min(left, period.size());
      if (std::memcmp(found, period.data(), now) != 0)
        for (std::size_t i = 0; i < now; i += each) wrong += std::memcmp(found + i, period.data() + i, each) != 0;
      found += now;
      left -= now;
    }
  });
  return wrong;
}

}  // namespace gccl::bench
