// No exception leaves a C function.
#pragma once

#include "libgccl/api/handles.hpp"
#include "libgccl/runtime/caught.hpp"

namespace gccl {

// What f returns, or what its exception amounts to.
template <class F>
GCCL_Result guarded(F f) noexcept {
  try {
    return f();
  } catch (...) {
    return failed(caught());
  }
}

// For calls on a communicator. It is broken where f throws, as other ranks would wait for what was not carried out.
template <class F>
GCCL_Result guarded(GCCL_Comm comm, F f) noexcept {
  try {
    return f();
  } catch (...) {
    return failed(break_after(comm, caught()));
  }
}

}  // namespace gccl
