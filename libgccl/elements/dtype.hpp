// Data types of the elements that collectives move and reduce.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "libgccl/schedule/types.hpp"

namespace gccl {

// Numbered as ncclDataType_t (nccl.h); the 16-bit integers, which NCCL has not, from 100.
enum class Dtype : std::uint8_t {
  i8 = 0,
  u8 = 1,
  i32 = 2,
  u32 = 3,
  i64 = 4,
  u64 = 5,
  f16 = 6,
  f32 = 7,
  f64 = 8,
  bf16 = 9,
  i16 = 100,
  u16 = 101,
};

// Every type, in the order in which tables list them.
std::span<const Dtype> dtypes();
// Bytes of one element.
unsigned size_of(Dtype);
// "f32", one of dtype_names().
std::string_view name(Dtype);
// Understands the short names (f32) and the long ones (float32); nothing where the name is neither.
std::optional<Dtype> dtype_named(std::string_view name);
// The names users type, in the order of dtypes().
std::span<const std::string_view> dtype_names();

// IEEE 754 binary16 and bfloat16 (binary32's upper half) exist as bit patterns only; arithmetic happens in float. The
// conversions select with masks, not branches, so that loops over them vectorise.

namespace detail {
constexpr std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) {
  const std::uint32_t mask = 0u - std::uint32_t(condition);
  return (yes & mask) | (no & ~mask);
}
}  // namespace detail

// Exact for every value, NaN payloads included.
constexpr float f16_to_float(std::uint16_t h) {
  const std::uint32_t magnitude = h & 0x7fffu, sign = std::uint32_t(h & 0x8000u) << 16;
  // Infinity and NaN keep a full exponent: their bias counts twice.
  const std::uint32_t normal = (magnitude << 13) + (112u << 23) + detail::select(magnitude >= 0x7c00u, 112u << 23, 0u);
  // Subnormals as integers: reading them under binary32's bias would make binary32 subnormals, a hundred times slower.
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(float(std::int32_t(magnitude)) * 0x1p-24f);
  return std::bit_cast<float>(detail::select(magnitude < 0x400u, subnormal, normal) | sign);
}
constexpr float bf16_to_float(std::uint16_t b) { return std::bit_cast<float>(std::uint32_t(b) << 16); }

// Round to nearest, ties to even; too large becomes infinity; a NaN stays a (quiet) NaN with its sign and upper
// payload.
constexpr std::uint16_t float_to_f16(float f) {
  const std::uint32_t all = std::bit_cast<std::uint32_t>(f), u = all & 0x7fffffffu;
  const std::uint32_t normal = ((u + 0xfffu + (u >> 13 & 1u)) >> 13) - (112u << 10);
  // 0.5's unit in the last place is binary16's smallest subnormal: the addition itself rounds.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(u) + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
  const std::uint32_t finite = detail::select(u < 0x38800000u, subnormal, normal);
  const std::uint32_t bounded = detail::select(u >= 0x47800000u, 0x7c00u, finite);
  const std::uint32_t h = detail::select(u > 0x7f800000u, 0x7e00u | (u >> 13 & 0x3ffu), bounded);
  return std::uint16_t(h | (all >> 16 & 0x8000u));
}
constexpr std::uint16_t float_to_bf16(float f) {
  const std::uint32_t u = std::bit_cast<std::uint32_t>(f);
  const std::uint32_t rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
  return std::uint16_t(detail::select((u & 0x7fffffffu) > 0x7f800000u, u >> 16 | 0x40u, rounded));
}

}  // namespace gccl
