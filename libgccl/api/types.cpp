// Types of elements and reductions of the caller's own.
#include "libgccl/api/guard.hpp"
#include "libgccl/elements/elements.hpp"

using namespace gccl;

extern "C" {

GCCL_Result GCCL_Type_create(size_t bytes, GCCL_Dtype* dtype) {
  return guarded([&] { return failed(dtype ? create_type(bytes, dtype) : invalid("dtype is null")); });
}

GCCL_Result GCCL_Type_free(GCCL_Dtype* dtype) {
  return guarded([&] {
    if (!dtype) return failed(invalid("dtype is null"));
    const Status s = free_type(*dtype);
    if (s.ok()) *dtype = -1;
    return failed(s);
  });
}

GCCL_Result GCCL_Op_create(GCCL_Op_function function, void* context, GCCL_Op* op) {
  return guarded([&] { return failed(op ? create_op(function, context, op) : invalid("op is null")); });
}

GCCL_Result GCCL_Op_free(GCCL_Op* op) {
  return guarded([&] {
    if (!op) return failed(invalid("op is null"));
    const Status s = free_op(*op);
    if (s.ok()) *op = -1;
    return failed(s);
  });
}

}  // extern "C"
