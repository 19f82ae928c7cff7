#include "libgccl/elements/combine.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <type_traits>

#include "libgccl/elements/combine_half.hpp"

namespace gccl {
namespace {

struct F16 {};
struct BF16 {};

// How an element lies in memory (plain numbers only: loops over structs do not vectorise) and in which type it is
// computed. Narrow integers go through 32 unsigned bits: as ints they would overflow.
template <class T>
struct Element {
  using Memory = T;
  using Unsigned = std::make_unsigned_t<T>;
  using Wide = std::conditional_t<sizeof(T) < 4, std::uint32_t, Unsigned>;
  static Wide load(T x) { return Wide(Unsigned(x)); }
  static T store(Wide x) { return T(Unsigned(x)); }
};
template <>
struct Element<float> {
  using Memory = float;
  static float load(float x) { return x; }
  static float store(float x) { return x; }
};
template <>
struct Element<double> {
  using Memory = double;
  static double load(double x) { return x; }
  static double store(double x) { return x; }
};
template <>
struct Element<F16> {
  using Memory = std::uint16_t;
  static float load(Memory x) { return f16_to_float(x); }
  static Memory store(float x) { return float_to_f16(x); }
};
template <>
struct Element<BF16> {
  using Memory = std::uint16_t;
  static float load(Memory x) { return bf16_to_float(x); }
  static Memory store(float x) { return float_to_bf16(x); }
};

template <class T>
using Memory = typename Element<T>::Memory;

struct Sum {
  template <class T>
  static Memory<T> of(Memory<T> a, Memory<T> b) {
    return Element<T>::store(Element<T>::load(a) + Element<T>::load(b));
  }
};
struct Prod {
  template <class T>
  static Memory<T> of(Memory<T> a, Memory<T> b) {
    return Element<T>::store(Element<T>::load(a) * Element<T>::load(b));
  }
};

// Of equal floats the greater integer is the maximum: of zeros +0. Where a program lets the processor take subnormals
// for zero (-ffast-math), they are equal, too, and one of the two is kept.
template <bool kMax, class F>
F extreme(F a, F b) {
  using Bits = std::conditional_t<sizeof(F) == 4, std::int32_t, std::int64_t>;
  const Bits x = std::bit_cast<Bits>(a), y = std::bit_cast<Bits>(b);
  const Bits unequal = ((kMax ? a > b : a < b) | (a != a)) ? x : y;
  return std::bit_cast<F>(a == b ? (kMax ? std::max(x, y) : std::min(x, y)) : unequal);
}

template <bool kMax>
struct Extreme {
  template <class T>
  static Memory<T> of(Memory<T> a, Memory<T> b) {
    if constexpr (std::is_integral_v<T>) {
      return (kMax ? a > b : a < b) ? a : b;
    } else {
      return Element<T>::store(extreme<kMax>(Element<T>::load(a), Element<T>::load(b)));
    }
  }
};

// The same loop for each set of vector instructions; the compiler widens it. `kTarget` distinguishes the copies.
enum class Target { baseline, avx2, avx512 };

#define GCCL_LOOP(target, attribute)                                                                              \
  template <Target kTarget, class T, class F>                                                                     \
  requires(kTarget == target) attribute void loop(void* to, const void* from, const void* message, Count count) { \
    Memory<T>* __restrict t = static_cast<Memory<T>*>(to);                                                        \
    const Memory<T>* __restrict m = static_cast<const Memory<T>*>(message);                                       \
    if (to == from) {                                                                                             \
      for (Count i = 0; i < count; ++i) t[i] = F::template of<T>(t[i], m[i]);                                     \
    } else {                                                                                                      \
      const Memory<T>* __restrict f = static_cast<const Memory<T>*>(from);                                        \
      for (Count i = 0; i < count; ++i) t[i] = F::template of<T>(f[i], m[i]);                                     \
    }                                                                                                             \
  }
GCCL_LOOP(Target::baseline, )
#if defined(__x86_64__)
GCCL_LOOP(Target::avx2, __attribute__((target("avx2"))))
GCCL_LOOP(Target::avx512, __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))))
#endif
#undef GCCL_LOOP

Target best_target() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return Target::avx512;
  if (__builtin_cpu_supports("avx2")) return Target::avx2;
#endif
  return Target::baseline;
}
const Target kBest = best_target();

template <class T, class F>
void loop(void* to, const void* from, const void* message, Count count) {
#if defined(__x86_64__)
  if (kBest == Target::avx512) return loop<Target::avx512, T, F>(to, from, message, count);
  if (kBest == Target::avx2) return loop<Target::avx2, T, F>(to, from, message, count);
#endif
  loop<Target::baseline, T, F>(to, from, message, count);
}

template <class T>
void divide_all(void* at, Count count, Rank by) {
  Memory<T>* x = static_cast<Memory<T>*>(at);
  for (Count i = 0; i < count; ++i) {
    if constexpr (std::is_integral_v<T>) {
      x[i] = T(x[i] / std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>(by));
    } else {
      const auto wide = Element<T>::load(x[i]);
      x[i] = Element<T>::store(wide / decltype(wide)(by));
    }
  }
}

// Calls f with a null pointer to the element's type.
template <class F>
void with_type(Dtype t, F f) {
  switch (t) {
    case Dtype::i8: return f(static_cast<std::int8_t*>(nullptr));
    case Dtype::u8: return f(static_cast<std::uint8_t*>(nullptr));
    case Dtype::i16: return f(static_cast<std::int16_t*>(nullptr));
    case Dtype::u16: return f(static_cast<std::uint16_t*>(nullptr));
    case Dtype::i32: return f(static_cast<std::int32_t*>(nullptr));
    case Dtype::u32: return f(static_cast<std::uint32_t*>(nullptr));
    case Dtype::i64: return f(static_cast<std::int64_t*>(nullptr));
    case Dtype::u64: return f(static_cast<std::uint64_t*>(nullptr));
    case Dtype::f16: return f(static_cast<F16*>(nullptr));
    case Dtype::bf16: return f(static_cast<BF16*>(nullptr));
    case Dtype::f32: return f(static_cast<float*>(nullptr));
    case Dtype::f64: return f(static_cast<double*>(nullptr));
  }
  assert(!"a Dtype outside the enumeration");
}

void combine_each(Dtype type, Reduction op, void* to, const void* from, const void* message, Count count) {
  with_type(type, [=]<class T>(T*) {
    switch (op) {
      case Reduction::sum:
      case Reduction::avg: return loop<T, Sum>(to, from, message, count);
      case Reduction::prod: return loop<T, Prod>(to, from, message, count);
      case Reduction::max: return loop<T, Extreme<true>>(to, from, message, count);
      case Reduction::min: return loop<T, Extreme<false>>(to, from, message, count);
    }
  });
}

}  // namespace

void combine(Dtype type, Reduction op, void* to, const void* from, const void* message, Count count) {
  if (type == Dtype::f16 || type == Dtype::bf16) {
    auto* const t = static_cast<std::uint16_t*>(to);
    auto* const f = static_cast<const std::uint16_t*>(from);
    auto* const m = static_cast<const std::uint16_t*>(message);
    const Count done = combine_half_vectors(type, op, t, f, m, count);
    return combine_each(type, op, t + done, f + done, m + done, count - done);
  }
  combine_each(type, op, to, from, message, count);
}

void divide(Dtype type, void* at, Count count, Rank by) {
  assert(by > 0);
  with_type(type, [=]<class T>(T*) { divide_all<T>(at, count, by); });
}

}  // namespace gccl
