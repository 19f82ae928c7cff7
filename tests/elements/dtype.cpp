// Data types, conversions and reductions against computations that share nothing with them.
#include "libgccl/elements/dtype.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "libgccl/elements/combine.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace gccl {
namespace {

// A small binary float's value from its definition.
double decode(std::uint16_t bits, int mantissa, int exponents) {
  const int bias = (1 << (exponents - 1)) - 1, e = bits >> mantissa & ((1 << exponents) - 1);
  const int m = bits & ((1 << mantissa) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (e == (1 << exponents) - 1) return m ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  return e ? sign * std::ldexp(1 + std::ldexp(m, -mantissa), e - bias) : sign * std::ldexp(m, 1 - bias - mantissa);
}
double decode_f16(std::uint16_t b) { return decode(b, 10, 5); }
double decode_bf16(std::uint16_t b) { return decode(b, 7, 8); }

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

// Every rounding there is: each pair of neighbours, the point midway, and the floats around it.
template <class Decode, class Encode>
unsigned misrounded(Decode decode, Encode encode, std::uint16_t infinity) {
  unsigned wrong = 0;
  for (std::uint32_t low = 0; low < infinity; ++low) {
    const std::uint16_t high = std::uint16_t(low + 1);
    // Rounding to infinity happens as if one more value followed the largest.
    const double a = decode(std::uint16_t(low));
    const double b = high == infinity ? a + (a - decode(std::uint16_t(low - 1))) : decode(high);
    const float mid = float(a + (b - a) / 2);
    const std::uint16_t even = low % 2 ? high : std::uint16_t(low);
    for (const std::uint16_t sign : {0, 0x8000}) {
      const float s = sign ? -1.0f : 1.0f;
      wrong += encode(s * float(a)) != std::uint16_t(low | sign);
      wrong += encode(s * mid) != std::uint16_t(even | sign);
      wrong += encode(s * std::nextafter(mid, 0.0f)) != std::uint16_t(low | sign);
      wrong += encode(s * std::nextafter(mid, std::numeric_limits<float>::infinity())) != std::uint16_t(high | sign);
    }
  }
  return wrong;
}

TEST_CASE("every f16 and bf16 converts to the float of its value") {
  unsigned wrong = 0;
  for (std::uint32_t b = 0; b < 65536; ++b) {
    wrong += !same(f16_to_float(std::uint16_t(b)), decode_f16(std::uint16_t(b)));
    wrong += !same(bf16_to_float(std::uint16_t(b)), decode_bf16(std::uint16_t(b)));
  }
  CHECK(wrong == 0);
}

TEST_CASE("a float rounds to the nearest f16 and bf16, ties to even") {
  CHECK(misrounded(decode_f16, float_to_f16, 0x7c00) == 0);
  CHECK(misrounded(decode_bf16, float_to_bf16, 0x7f80) == 0);
  CHECK(float_to_f16(1e9f) == 0x7c00);
  CHECK(float_to_f16(-std::numeric_limits<float>::infinity()) == 0xfc00);
  CHECK(float_to_f16(1e-30f) == 0);
  CHECK(float_to_f16(-1e-40f) == 0x8000);
}

TEST_CASE("a NaN stays a NaN, whatever its payload") {
  for (std::uint32_t payload : {1u, 0x1fffu, 0x2000u, 0x400000u, 0x7fffffu})
    for (std::uint32_t sign : {0u, 0x80000000u}) {
      const float nan = std::bit_cast<float>(0x7f800000u | payload | sign);
      CHECK(std::isnan(decode_f16(float_to_f16(nan))));
      CHECK(std::isnan(decode_bf16(float_to_bf16(nan))));
      CHECK((float_to_f16(nan) & 0x8000) == sign >> 16);
      CHECK((float_to_bf16(nan) & 0x8000) == sign >> 16);
    }
}

TEST_CASE("types and operations have NCCL's numbers, their sizes and both kinds of names") {
  struct {
    Dtype type;
    int number;
    unsigned size;
    const char *name, *long_name;
  } const rows[] = {{Dtype::i8, 0, 1, "i8", "int8"},      {Dtype::u8, 1, 1, "u8", "uint8"},
                    {Dtype::i32, 2, 4, "i32", "int32"},   {Dtype::u32, 3, 4, "u32", "uint32"},
                    {Dtype::i64, 4, 8, "i64", "int64"},   {Dtype::u64, 5, 8, "u64", "uint64"},
                    {Dtype::f16, 6, 2, "f16", "float16"}, {Dtype::f32, 7, 4, "f32", "float32"},
                    {Dtype::f64, 8, 8, "f64", "float64"}, {Dtype::bf16, 9, 2, "bf16", "bfloat16"},
                    {Dtype::i16, 100, 2, "i16", "int16"}, {Dtype::u16, 101, 2, "u16", "uint16"}};
  CHECK(dtypes().size() == std::size(rows));
  CHECK(dtype_names().size() == std::size(rows));
  for (const auto& row : rows) {
    CHECK(int(row.type) == row.number);
    CHECK(size_of(row.type) == row.size);
    CHECK(name(row.type) == row.name);
    CHECK(dtype_named(row.name) == row.type);
    CHECK(dtype_named(row.long_name) == row.type);
  }
  CHECK_FALSE(dtype_named("f33"));
  CHECK_FALSE(dtype_named(""));
  const char* const operations[] = {"sum", "prod", "max", "min", "avg"};
  for (int i = 0; i < 5; ++i) {
    CHECK(name(Reduction(i)) == operations[i]);
    CHECK(reduction_named(operations[i]) == Reduction(i));
  }
  CHECK_FALSE(reduction_named("mean"));
}

// One element by the book, in 128-bit integers.
template <class T>
T integer(Reduction op, T a, T b) {
  const __int128 x = a, y = b;
  switch (op) {
    case Reduction::prod: return T(static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(y));
    case Reduction::max: return x > y ? a : b;
    case Reduction::min: return x < y ? a : b;
    default: return T(x + y);
  }
}

// One element by the book, in double, not yet rounded.
double real(Reduction op, double a, double b) {
  const bool is_nan = std::isnan(a) || std::isnan(b);
  switch (op) {
    case Reduction::prod: return a * b;
    case Reduction::max:
      return is_nan             ? std::nan("")
             : a == 0 && b == 0 ? (std::signbit(a) && std::signbit(b) ? -0.0 : 0.0)
             : a > b            ? a
                                : b;
    case Reduction::min:
      return is_nan             ? std::nan("")
             : a == 0 && b == 0 ? (std::signbit(a) || std::signbit(b) ? -0.0 : 0.0)
             : a < b            ? a
                                : b;
    default: return a + b;
  }
}

constexpr Reduction kOperations[] = {Reduction::sum, Reduction::prod, Reduction::max, Reduction::min, Reduction::avg};

// Random bit patterns, with every kind of special value well represented.
template <class T>
std::vector<T> patterns(std::size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<T> out(n);
  for (T& x : out) {
    std::uint64_t bits = random();
    const std::uint64_t sign = std::uint64_t(1) << (8 * sizeof(T) - 1);
    if (bits % 11 == 0) bits = 0;
    if (bits % 11 == 1) bits = sign;
    if (bits % 11 == 2) bits = ~std::uint64_t(0);
    if (bits % 11 == 3) bits = sign - 1;
    std::memcpy(&x, &bits, sizeof(T));
  }
  return out;
}

// Out of place and in place, for lengths around the vector widths; equal(got, a, b) judges an element.
template <class T, class Equal>
unsigned wrong_elements(Dtype type, Reduction op, Equal equal) {
  unsigned wrong = 0;
  for (std::size_t n : {0, 1, 7, 8, 31, 33, 1000}) {
    const std::vector<T> a = patterns<T>(n, 1 + unsigned(n)), b = patterns<T>(n, 99 + unsigned(n));
    std::vector<T> apart(n + 1), at = a;
    T guard = patterns<T>(1, 7)[0];
    apart[n] = guard;
    combine(type, op, apart.data(), a.data(), b.data(), n);
    combine(type, op, at.data(), at.data(), b.data(), n);
    for (std::size_t i = 0; i < n; ++i) wrong += !equal(apart[i], a[i], b[i]) + !equal(at[i], a[i], b[i]);
    wrong += std::memcmp(&apart[n], &guard, sizeof guard) != 0;
  }
  return wrong;
}

template <class T>
void check_integers(Dtype type) {
  for (Reduction op : kOperations)
    CHECK_MESSAGE(wrong_elements<T>(type, op, [&](T got, T a, T b) { return got == integer<T>(op, a, b); }) == 0,
                  name(type), " ", name(op));
}

TEST_CASE("integers combine as in unbounded arithmetic, then wrap") {
  check_integers<std::int8_t>(Dtype::i8);
  check_integers<std::uint8_t>(Dtype::u8);
  check_integers<std::int16_t>(Dtype::i16);
  check_integers<std::uint16_t>(Dtype::u16);
  check_integers<std::int32_t>(Dtype::i32);
  check_integers<std::uint32_t>(Dtype::u32);
  check_integers<std::int64_t>(Dtype::i64);
  check_integers<std::uint64_t>(Dtype::u64);
}

TEST_CASE("floats combine with one rounding; max and min keep NaN and order the zeros") {
  for (Reduction op : kOperations) {
    CHECK(wrong_elements<float>(Dtype::f32, op,
                                [&](float got, float a, float b) { return same(got, float(real(op, a, b))); }) == 0);
    // The sum and the product of two doubles, rounded once, are what the machine gives.
    CHECK(wrong_elements<double>(Dtype::f64, op,
                                 [&](double got, double a, double b) { return same(got, real(op, a, b)); }) == 0);
    // A float holds more than twice their digits, so rounding twice is rounding once.
    CHECK(wrong_elements<std::uint16_t>(Dtype::f16, op, [&](std::uint16_t got, std::uint16_t a, std::uint16_t b) {
            const double exact = real(op, decode_f16(a), decode_f16(b));
            return same(decode_f16(got), decode_f16(float_to_f16(float(exact))));
          }) == 0);
    CHECK(wrong_elements<std::uint16_t>(Dtype::bf16, op, [&](std::uint16_t got, std::uint16_t a, std::uint16_t b) {
            const double exact = real(op, decode_bf16(a), decode_bf16(b));
            return same(decode_bf16(got), decode_bf16(float_to_bf16(float(exact))));
          }) == 0);
  }
}

#if defined(__x86_64__)
// What a program that is built with -ffast-math lets the processor do: take subnormals for zero.
class SubnormalsAreZero {
 public:
  SubnormalsAreZero() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
  ~SubnormalsAreZero() { _mm_setcsr(before_); }

 private:
  const unsigned before_;
};

// Bits: an unsigned integer of the type's size.
template <class Bits>
unsigned mixed_extremes(Dtype type) {
  constexpr Bits kSign = Bits(Bits(1) << (8 * sizeof(Bits) - 1));
  const Bits numbers[] = {0, 3, 4, 5, kSign, Bits(kSign | 3), Bits(kSign | 5)};
  unsigned wrong = 0;
  for (const Reduction op : {Reduction::max, Reduction::min})
    for (const Bits a : numbers)
      for (const Bits b : numbers) {
        const std::vector<Bits> as(19, a), bs(19, b);  // vectors, and a rest
        std::vector<Bits> ab(19), ba(19);
        {
          const SubnormalsAreZero mode;
          combine(type, op, ab.data(), as.data(), bs.data(), 19);
          combine(type, op, ba.data(), bs.data(), as.data(), 19);
        }
        for (const Bits got : ab) wrong += got != a && got != b;
        wrong += ab != ba;
      }
  return wrong;
}

TEST_CASE("max and min of subnormals are one of the two where the processor takes them for zero") {
  CHECK(mixed_extremes<std::uint32_t>(Dtype::f32) == 0);
  CHECK(mixed_extremes<std::uint64_t>(Dtype::f64) == 0);
  CHECK(mixed_extremes<std::uint16_t>(Dtype::f16) == 0);
  CHECK(mixed_extremes<std::uint16_t>(Dtype::bf16) == 0);
}
#endif

TEST_CASE("the sides of an operation may be swapped without changing a bit") {
  for (Reduction op : kOperations) {
    const std::vector<float> a = patterns<float>(999, 5), b = patterns<float>(999, 6);
    std::vector<float> ab(999), ba(999);
    combine(Dtype::f32, op, ab.data(), a.data(), b.data(), 999);
    combine(Dtype::f32, op, ba.data(), b.data(), a.data(), 999);
    unsigned wrong = 0;
    for (std::size_t i = 0; i < 999; ++i) wrong += !same(ab[i], ba[i]);
    CHECK(wrong == 0);
  }
}

TEST_CASE("avg divides once: integers toward zero, floats to the nearest") {
  std::int8_t i8[] = {-7, 7, -128, 127};
  divide(Dtype::i8, i8, 4, 3);
  CHECK(i8[0] == -2);
  CHECK(i8[1] == 2);
  CHECK(i8[2] == -42);
  CHECK(i8[3] == 42);
  std::int8_t many[] = {-128, 127};
  divide(Dtype::i8, many, 2, 300);  // more ranks than the type can count
  CHECK(many[0] == 0);
  CHECK(many[1] == 0);
  std::uint64_t u64[] = {~std::uint64_t(0)};
  divide(Dtype::u64, u64, 1, 2);
  CHECK(u64[0] == ~std::uint64_t(0) / 2);
  std::int64_t i64[] = {std::numeric_limits<std::int64_t>::min()};
  divide(Dtype::i64, i64, 1, 4294967295u);
  CHECK(i64[0] == -2147483648);
  float f32[] = {1.0f, -10.0f};
  divide(Dtype::f32, f32, 2, 3);
  CHECK(f32[0] == float(1.0 / 3));
  CHECK(f32[1] == float(-10.0 / 3));
  std::uint16_t f16[] = {float_to_f16(1.0f)}, bf16[] = {float_to_bf16(5.0f)};
  divide(Dtype::f16, f16, 1, 3);
  divide(Dtype::bf16, bf16, 1, 3);
  CHECK(f16[0] == 0x3555);
  CHECK(bf16[0] == 0x3fd5);
}

}  // namespace
}  // namespace gccl
