// What can be sent, what can be reduced, and how: C++ types and functions to GCCL_Dtype and GCCL_Op.
#pragma once

#include "gccl/cpp20.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "gccl/error.hpp"

namespace gccl {
inline namespace api {

// IEEE 754 binary16 and bfloat16 (binary32's upper half), as bit patterns: C++20 has neither.
struct float16 {
  std::uint16_t bits;
  friend bool operator==(float16, float16) = default;
};
struct bfloat16 {
  std::uint16_t bits;
  friend bool operator==(bfloat16, bfloat16) = default;
};

namespace api_detail {

template <class T>
consteval GCCL_Dtype arithmetic_dtype() {
  if constexpr (std::is_same_v<T, float16>) return GCCL_FLOAT16;
  if constexpr (std::is_same_v<T, bfloat16>) return GCCL_BFLOAT16;
  if constexpr (std::is_same_v<T, float>) return GCCL_FLOAT32;
  if constexpr (std::is_same_v<T, double>) return GCCL_FLOAT64;
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    constexpr bool s = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1) return s ? GCCL_INT8 : GCCL_UINT8;
    if constexpr (sizeof(T) == 2) return s ? GCCL_INT16 : GCCL_UINT16;
    if constexpr (sizeof(T) == 4) return s ? GCCL_INT32 : GCCL_UINT32;
    if constexpr (sizeof(T) == 8) return s ? GCCL_INT64 : GCCL_UINT64;
  }
  return -1;
}

}  // namespace api_detail

// The code of a type that GCCL can compute with; -1: none. For a 16-bit float of your own:
//   template <> inline constexpr GCCL_Dtype gccl::dtype_v<__half> = GCCL_FLOAT16;
template <class T>
inline constexpr GCCL_Dtype dtype_v = api_detail::arithmetic_dtype<T>();

// What can be moved: every trivially copyable type of at most 65536 bytes.
template <class T>
concept Element =
    std::is_trivially_copyable_v<T> && !std::is_const_v<T> && !std::is_volatile_v<T> && sizeof(T) <= 65536;
// What ReduceOp can combine.
template <class T>
concept Reducible = Element<T> && dtype_v<T>
>= 0;

// The code to move T with. A type that GCCL does not understand is registered at its first use and stays so; every rank
// of a job must be built with the same size of it.
template <Element T>
GCCL_Dtype dtype_of() {
  if constexpr (dtype_v<T> >= 0) {
    return dtype_v<T>;
  } else if constexpr (sizeof(T) == 1) {
    return GCCL_UINT8;
  } else {
    static const GCCL_Dtype registered = [] {
      GCCL_Dtype d;
      check(GCCL_Type_create(sizeof(T), &d));
      return d;
    }();
    return registered;
  }
}

enum class ReduceOp : GCCL_Op {
  sum = GCCL_SUM,
  prod = GCCL_PROD,
  max = GCCL_MAX,
  min = GCCL_MIN,
  avg = GCCL_AVG,  // the sum, in the elements' own type, divided by the number of ranks; integers truncate
};

// A reduction of the caller's own: combine(a, b) -> T, associative and commutative. It runs in whatever thread makes
// progress; what it throws breaks the communicator (GCCL_ERR_INVALID_USAGE). Must outlive the calls that use it. T
// may have any alignment; one of more than 16 bytes costs copies of the elements.
template <Element T>
class CustomOp {
 public:
  template <class F>
  requires std::is_invocable_r_v<T, F&, const T&, const T&>
  explicit CustomOp(F combine) : function_(new F(std::move(combine)), [](void* f) { delete static_cast<F*>(f); }) {
    check(GCCL_Op_create(&run<F>, function_.get(), &code_));
  }
  CustomOp(CustomOp&& other) noexcept : function_(std::move(other.function_)), code_(std::exchange(other.code_, -1)) {}
  CustomOp& operator=(CustomOp&& other) noexcept {
    std::swap(function_, other.function_);
    std::swap(code_, other.code_);
    return *this;
  }
  ~CustomOp() {
    if (code_ >= 0) GCCL_Op_free(&code_);
  }
  GCCL_Op code() const { return code_; }

 private:
  // An element that T's alignment does not suit (GCCL_Op_function), as a copy where it does.
  struct Copy {
    alignas(T) std::byte bytes[sizeof(T)];
    explicit Copy(const std::byte* from) { std::memcpy(bytes, from, sizeof bytes); }
    const T& value() const { return *std::launder(reinterpret_cast<const T*>(bytes)); }
  };

  template <class F>
  static void run(const void* in, void* inout, std::size_t count, GCCL_Dtype, void* context) {
    F& combine = *static_cast<F*>(context);
    if constexpr (alignof(T) > 16) {
      const std::byte* from = static_cast<const std::byte*>(in);
      std::byte* to = static_cast<std::byte*>(inout);
      for (std::size_t i = 0; i < count; ++i, from += sizeof(T), to += sizeof(T)) {
        const T both = combine(Copy(to).value(), Copy(from).value());
        std::memcpy(to, &both, sizeof both);
      }
    } else {
      const T* from = static_cast<const T*>(in);
      T* to = static_cast<T*>(inout);
      for (std::size_t i = 0; i < count; ++i) to[i] = combine(to[i], from[i]);
    }
  }

  std::unique_ptr<void, void (*)(void*)> function_;
  GCCL_Op code_ = -1;
};

}  // namespace api
}  // namespace gccl
