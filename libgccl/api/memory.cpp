// Memory that ranks of one machine reach in each other.
#include "libgccl/api/guard.hpp"
#include "libgccl/transports/shared_memory.hpp"

extern "C" {

GCCL_Result GCCL_Mem_alloc(void** ptr, size_t bytes) {
  return gccl::guarded([&] {
    if (!ptr) return gccl::failed(gccl::invalid("ptr is null: expected where to store the address"));
    *ptr = nullptr;
    return gccl::failed(gccl::allocate_shared(bytes, ptr));
  });
}

GCCL_Result GCCL_Mem_free(void* ptr) {
  return gccl::guarded([&] { return ptr ? gccl::failed(gccl::free_shared(ptr)) : GCCL_SUCCESS; });
}

}  // extern "C"
