#include "libgccl/elements/elements.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

#include "libgccl/base/caught.hpp"
#include "libgccl/base/no_destructor.hpp"
#include "libgccl/elements/combine.hpp"

namespace gccl {
namespace {

struct OwnOp {
  GCCL_Op_function function = nullptr;
  void* context = nullptr;
};

// Freed codes are used again, so that a program that makes one for each call does not grow.
template <class T>
class Codes {
 public:
  std::int32_t add(T value) {
    std::lock_guard lock(mutex_);
    auto place = std::ranges::find_if(values_, [](const auto& v) { return !v; });
    if (place == values_.end()) place = values_.insert(place, std::nullopt);
    *place = value;
    return kUserDefined + std::int32_t(place - values_.begin());
  }
  bool remove(std::int32_t code) {
    std::lock_guard lock(mutex_);
    if (!has(code)) return false;
    values_[std::size_t(code - kUserDefined)].reset();
    return true;
  }
  bool find(std::int32_t code, T* out) {
    std::lock_guard lock(mutex_);
    if (!has(code)) return false;
    *out = *values_[std::size_t(code - kUserDefined)];
    return true;
  }

 private:
  bool has(std::int32_t code) const {
    return user_defined(code) && std::size_t(code - kUserDefined) < values_.size() &&
           values_[std::size_t(code - kUserDefined)];
  }
  std::mutex mutex_;
  std::vector<std::optional<T>> values_;  // none: free to be used again
};

// Statics of the program may free theirs at exit.
Codes<std::uint32_t>& types() {
  static NoDestructor<Codes<std::uint32_t>> all;
  return *all;
}
Codes<OwnOp>& ops() {
  static NoDestructor<Codes<OwnOp>> all;
  return *all;
}

}  // namespace

void Elements::combine(void* to, const void* from, const void* message, Count count) const {
  if (!function) return gccl::combine(dtype, op, to, from, message, count);
  if (to != from) std::memcpy(to, from, count * bytes);
  try {
    function(message, to, count, code, context);
  } catch (...) {
    throw CallersException(fmt::format("a function of GCCL_Op_create threw an exception: {}", caught_text()));
  }
}

std::uint32_t built_in_bytes(GCCL_Dtype code) {
  switch (code) {
    case GCCL_INT8:
    case GCCL_UINT8:
    case GCCL_INT32:
    case GCCL_UINT32:
    case GCCL_INT64:
    case GCCL_UINT64:
    case GCCL_FLOAT16:
    case GCCL_FLOAT32:
    case GCCL_FLOAT64:
    case GCCL_BFLOAT16:
    case GCCL_INT16:
    case GCCL_UINT16: return size_of(Dtype(code));
    default: return 0;
  }
}

Status elements_of(GCCL_Dtype code, std::optional<GCCL_Op> wanted, Elements* out) {
  out->code = code;
  const bool own_type = user_defined(code);
  if (own_type) {
    if (!types().find(code, &out->bytes)) return invalid(fmt::format("dtype {} was never created, or is freed", code));
  } else {
    out->bytes = built_in_bytes(code);
    if (out->bytes == 0)
      return invalid(fmt::format(
          "dtype {} is unknown: expected 0 to 9, 100 or 101 (GCCL_INT8 ... GCCL_UINT16), or one of GCCL_Type_create",
          code));
    out->dtype = Dtype(code);
  }
  out->function = nullptr;
  if (!wanted) return {};
  const GCCL_Op op = *wanted;
  if (user_defined(op)) {
    OwnOp own;
    if (!ops().find(op, &own)) return invalid(fmt::format("op {} was never created, or is freed", op));
    out->function = own.function;
    out->context = own.context;
    return {};
  }
  if (op < GCCL_SUM || op > GCCL_AVG)
    return invalid(
        fmt::format("op {} is unknown: expected 0 to 4 (GCCL_SUM ... GCCL_AVG), or one of GCCL_Op_create", op));
  if (own_type)
    return invalid(
        fmt::format("op {} cannot combine a type of GCCL_Type_create: use one of GCCL_Op_create", name(Reduction(op))));
  out->op = Reduction(op);
  return {};
}

Status create_type(std::size_t bytes, GCCL_Dtype* out) {
  if (bytes < 1 || bytes > 65536) return invalid(fmt::format("a type of {} bytes: expected 1 to 65536", bytes));
  *out = types().add(std::uint32_t(bytes));
  return {};
}

Status free_type(GCCL_Dtype code) {
  return types().remove(code) ? Status() : invalid(fmt::format("dtype {} was never created, or is freed", code));
}

Status create_op(GCCL_Op_function function, void* context, GCCL_Op* out) {
  if (!function) return invalid("function is null");
  *out = ops().add({function, context});
  return {};
}

Status free_op(GCCL_Op code) {
  return ops().remove(code) ? Status() : invalid(fmt::format("op {} was never created, or is freed", code));
}

}  // namespace gccl
