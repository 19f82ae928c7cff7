// Memory that ranks of one machine reach in each other, for the standard library's containers.
#pragma once

#include "gccl/cpp20.hpp"

#include <cstddef>
#include <limits>
#include <new>

#include "gccl/error.hpp"
#include "gccl/gccl.h"

namespace gccl {
inline namespace api {

// Takes memory from GCCL_Mem_alloc: std::vector<float, gccl::Allocator<float>> gradient(1 << 24). For large containers
// that live long: each takes whole pages, and a system call to come and to go. Throws Error where the machine has not
// as much.
template <class T>
struct Allocator {
  using value_type = T;
  Allocator() = default;
  template <class U>
  Allocator(const Allocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(std::size_t n) {
    if (n > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    void* p = nullptr;
    check(GCCL_Mem_alloc(&p, n > 0 ? n * sizeof(T) : 1));
    return static_cast<T*>(p);
  }
  void deallocate(T* p, std::size_t) { GCCL_Mem_free(p); }
  template <class U>
  friend bool operator==(const Allocator&, const Allocator<U>&) {
    return true;
  }
};

}  // namespace api
}  // namespace gccl
