#include "libgccl/elements/dtype.hpp"

#include <array>

namespace gccl {
namespace {

using enum Dtype;

constexpr std::array<Dtype, 12> kTypes = {i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64};
constexpr std::array<std::string_view, 12> kShort = {"i8",  "u8",  "i16", "u16",  "i32", "u32",
                                                     "i64", "u64", "f16", "bf16", "f32", "f64"};
constexpr std::array<std::string_view, 12> kLong = {"int8",  "uint8",  "int16",   "uint16",   "int32",   "uint32",
                                                    "int64", "uint64", "float16", "bfloat16", "float32", "float64"};

}  // namespace

std::span<const Dtype> dtypes() { return kTypes; }
std::span<const std::string_view> dtype_names() { return kShort; }

unsigned size_of(Dtype t) {
  switch (t) {
    case i8:
    case u8: return 1;
    case i16:
    case u16:
    case f16:
    case bf16: return 2;
    case i32:
    case u32:
    case f32: return 4;
    default: return 8;
  }
}

std::string_view name(Dtype t) {
  for (std::size_t i = 0; i < kTypes.size(); ++i)
    if (kTypes[i] == t) return kShort[i];
  return {};
}

std::optional<Dtype> dtype_named(std::string_view name) {
  for (std::size_t i = 0; i < kTypes.size(); ++i)
    if (kShort[i] == name || kLong[i] == name) return kTypes[i];
  return std::nullopt;
}

}  // namespace gccl
