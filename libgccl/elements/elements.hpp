// What a call's elements are and how two of them are combined: built in, or the caller's own.
#pragma once

#include <cstdint>
#include <optional>

#include "gccl/gccl.h"
#include "libgccl/base/status.hpp"
#include "libgccl/elements/reduction.hpp"

namespace gccl {

// Codes of user-defined types and operations begin here (gccl.h).
inline constexpr std::int32_t kUserDefined = 1000;
constexpr bool user_defined(std::int32_t code) { return code >= kUserDefined; }

struct Elements {
  std::uint32_t bytes = 1;
  GCCL_Dtype code = GCCL_UINT8;
  Dtype dtype = Dtype::u8;        // where code is built in
  Reduction op = Reduction::sum;  // where function is null
  GCCL_Op_function function = nullptr;
  void* context = nullptr;

  // to[i] = from[i] (+) message[i]; to may be from.
  void combine(void* to, const void* from, const void* message, Count count) const;
};

// The bytes of one element; 0 where the code is not of a built-in type.
std::uint32_t built_in_bytes(GCCL_Dtype code);

// Looks both up; without an op none is needed. Errors name the wrong one and the known ones, and leave *out undefined.
Status elements_of(GCCL_Dtype dtype, std::optional<GCCL_Op> op, Elements* out);

// Types and operations of the caller's own, for the whole process.
Status create_type(std::size_t bytes, GCCL_Dtype* out);
Status free_type(GCCL_Dtype code);
Status create_op(GCCL_Op_function function, void* context, GCCL_Op* out);
Status free_op(GCCL_Op code);

}  // namespace gccl
