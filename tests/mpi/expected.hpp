// What each collective must leave behind, on real data types, by its definition and the plainest arithmetic there is:
// every rank's contribution is a function of (rank, element), so any rank can work out any result alone.
#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/base/splitmix.hpp"
#include "libgccl/elements/reduction.hpp"
#include "libgccl/schedule/definition.hpp"

namespace gccl::test {

using Bytes = std::vector<unsigned char>;

// The nearest binary float with `mantissa` stored bits, ties to even; |x| is small, so neither end of the range
// matters.
inline std::uint16_t nearest_bits(double x, int mantissa, int bias) {
  if (x == 0) return 0;
  int exponent = 0;
  double m = std::nearbyint(std::ldexp(std::frexp(std::fabs(x), &exponent), mantissa + 1));
  if (m == std::ldexp(1.0, mantissa + 1)) {
    m /= 2;
    ++exponent;
  }
  const unsigned bits = (unsigned(exponent - 1 + bias) << mantissa) + (unsigned(m) - (1u << mantissa));
  return std::uint16_t(bits | (x < 0 ? 0x8000u : 0u));
}

template <class T>
void append(Bytes& out, T x) {
  const std::size_t at = out.size();
  out.resize(at + sizeof x);
  std::memcpy(out.data() + at, &x, sizeof x);
}

// The reduction of small whole numbers in type T (wrapping for integers).
template <class T>
T folded(Reduction op, const std::vector<int>& xs) {
  T r = T(xs[0]);
  for (std::size_t i = 1; i < xs.size(); ++i) {
    const T x = T(xs[i]);
    if (op == Reduction::max) r = r > x ? r : x;
    if (op == Reduction::min) r = r < x ? r : x;
    if constexpr (std::is_integral_v<T>) {
      if (op == Reduction::sum || op == Reduction::avg) r = T(std::uint64_t(r) + std::uint64_t(x));
      if (op == Reduction::prod) r = T(std::uint64_t(r) * std::uint64_t(x));
    } else {
      if (op == Reduction::sum || op == Reduction::avg) r += x;
      if (op == Reduction::prod) r *= x;
    }
  }
  if (op == Reduction::avg) {
    if constexpr (std::is_unsigned_v<T>) r = T(r / std::uint64_t(xs.size()));
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) r = T(std::int64_t(r) / std::int64_t(xs.size()));
    if constexpr (std::is_floating_point_v<T>) r /= T(xs.size());
  }
  return r;
}
template <class T>
void fold(Bytes& out, Reduction op, const std::vector<int>& xs) {
  append(out, folded<T>(op, xs));
}

inline void fold(Bytes& out, Dtype type, Reduction op, const std::vector<int>& xs) {
  const auto half = [&](int mantissa, int bias) { append(out, nearest_bits(folded<double>(op, xs), mantissa, bias)); };
  switch (type) {
    case Dtype::i8: return fold<std::int8_t>(out, op, xs);
    case Dtype::u8: return fold<std::uint8_t>(out, op, xs);
    case Dtype::i16: return fold<std::int16_t>(out, op, xs);
    case Dtype::u16: return fold<std::uint16_t>(out, op, xs);
    case Dtype::i32: return fold<std::int32_t>(out, op, xs);
    case Dtype::u32: return fold<std::uint32_t>(out, op, xs);
    case Dtype::i64: return fold<std::int64_t>(out, op, xs);
    case Dtype::u64: return fold<std::uint64_t>(out, op, xs);
    case Dtype::f16: return half(10, 15);
    case Dtype::bf16: return half(7, 127);
    case Dtype::f32: return fold<float>(out, op, xs);
    case Dtype::f64: return fold<double>(out, op, xs);
  }
}

// Of up to 2^16 ranks and 2^32 elements, different triples are different seeds.
inline std::uint64_t hash_of(Rank a, Rank b, Count c) {
  return splitmix::hash(std::uint64_t(a) << 48 ^ std::uint64_t(b) << 32 ^ c);
}

// Element i of rank r's input, of which block `to` goes to rank `to` where the collective has such blocks. Small enough
// for every sum and product of up to 16 ranks to be exact in every type.
inline int element(const Call& c, Reduction op, Rank r, Rank to, Count i) {
  const std::uint64_t h = hash_of(r, to, i);
  if (!reduces(c.kind)) return int(h % 251) - 125;
  if (op == Reduction::prod) return h % 8 == 0 ? 2 : h % 2 ? 1 : -1;
  if (op == Reduction::sum || op == Reduction::avg) return int(h % 15) - 7;
  return int(h % 201) - 100;
}

// Rank r's input, as it lies in memory.
inline Bytes input_bytes(const Call& c, Dtype type, Reduction op, Rank n, Rank r) {
  Bytes out;
  std::vector<int> x(1);
  each_input(c, n, r, [&](const Piece& p) {
    for (Count i = 0; i < p.count; ++i) {
      x[0] = element(c, op, p.from, p.block, i);
      fold(out, type, Reduction::sum, x);
    }
  });
  return out;
}

// Rank r's result, as it must lie in memory.
inline Bytes expected_bytes(const Call& c, Dtype type, Reduction op, Rank n, Rank r) {
  Bytes out;
  std::vector<int> xs;
  each_output(c, n, r, [&](const Piece& p) {
    for (Count i = 0; i < p.count; ++i) {
      xs.clear();
      for (Rank source = p.reduced ? 0 : p.from; source < (p.reduced ? n : p.from + 1); ++source)
        xs.push_back(element(c, op, source, p.block, i));
      fold(out, type, p.reduced ? op : Reduction::sum, xs);
    }
  });
  return out;
}

}  // namespace gccl::test
