#include "libgccl/elements/combine_half.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>

// Every processor with these is an x86-64-v3 machine; the rest of the library stays plain x86-64.
#define GCCL_AVX2 __attribute__((target("avx2,f16c")))

namespace gccl {
namespace {

struct F16 {
  GCCL_AVX2 static __m256 load(const std::uint16_t* at) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  }
  GCCL_AVX2 static void store(std::uint16_t* at, __m256 x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
};

struct BF16 {
  GCCL_AVX2 static __m256 load(const std::uint16_t* at) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  }
  // As float_to_bf16.
  GCCL_AVX2 static void store(std::uint16_t* at, __m256 x) {
    const __m256i u = _mm256_castps_si256(x), upper = _mm256_srli_epi32(u, 16);
    const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_srli_epi32(_mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    const __m256i r = _mm256_blendv_epi8(rounded, _mm256_or_si256(upper, _mm256_set1_epi32(0x40)), nan);
    // Packing works within 128-bit halves: gather the two low quarters.
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(r, r), 0b1000);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at), _mm256_castsi256_si128(packed));
  }
};

struct Sum {
  GCCL_AVX2 static __m256 of(__m256 a, __m256 b) { return _mm256_add_ps(a, b); }
};
struct Prod {
  GCCL_AVX2 static __m256 of(__m256 a, __m256 b) { return _mm256_mul_ps(a, b); }
};

// A NaN of either side wins; of equal values the greater integer is the maximum (as in combine.cpp).
template <bool kMax>
struct Extreme {
  GCCL_AVX2 static __m256 of(__m256 a, __m256 b) {
    const __m256 first =
        _mm256_or_ps(_mm256_cmp_ps(a, b, kMax ? _CMP_GT_OQ : _CMP_LT_OQ), _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    const __m256i x = _mm256_castps_si256(a), y = _mm256_castps_si256(b);
    const __m256 tie = _mm256_castsi256_ps(kMax ? _mm256_max_epi32(x, y) : _mm256_min_epi32(x, y));
    return _mm256_blendv_ps(_mm256_blendv_ps(b, a, first), tie, _mm256_cmp_ps(a, b, _CMP_EQ_OQ));
  }
};

template <class H, class F>
GCCL_AVX2 void loop(std::uint16_t* to, const std::uint16_t* from, const std::uint16_t* message, Count count) {
  for (Count i = 0; i < count; i += 8) H::store(to + i, F::of(H::load(from + i), H::load(message + i)));
}

template <class H>
void combine(Reduction op, std::uint16_t* to, const std::uint16_t* from, const std::uint16_t* message, Count count) {
  switch (op) {
    case Reduction::sum:
    case Reduction::avg: return loop<H, Sum>(to, from, message, count);
    case Reduction::prod: return loop<H, Prod>(to, from, message, count);
    case Reduction::max: return loop<H, Extreme<true>>(to, from, message, count);
    case Reduction::min: return loop<H, Extreme<false>>(to, from, message, count);
  }
}

// The compilers' own test knows AVX2 (and whether the system saves its registers), but not all of them F16C.
bool supported() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

}  // namespace

Count combine_half_vectors(Dtype type, Reduction op, std::uint16_t* to, const std::uint16_t* from,
                           const std::uint16_t* message, Count count) {
  static const bool kSupported = supported();
  if (!kSupported) return 0;
  const Count whole = count / 8 * 8;
  type == Dtype::f16 ? combine<F16>(op, to, from, message, whole) : combine<BF16>(op, to, from, message, whole);
  return whole;
}

}  // namespace gccl

#else

namespace gccl {
Count combine_half_vectors(Dtype, Reduction, std::uint16_t*, const std::uint16_t*, const std::uint16_t*, Count) {
  return 0;
}
}  // namespace gccl

#endif
