// No exception leaves a C function, and none is carried out in a child of a process that uses GCCL.
#pragma once

#include "libgccl/api/handles.hpp"
#include "libgccl/base/caught.hpp"
#include "libgccl/base/process.hpp"

namespace gccl {

// What every call returns in such a child.
[[gnu::cold]] GCCL_Result failed_in_child() noexcept;

// What f returns, or what its exception amounts to.
template <class F>
GCCL_Result guarded(F f) noexcept {
  if (in_forked_child()) return failed_in_child();
  try {
    return f();
  } catch (...) {
    return failed(caught());
  }
}

// For calls on a communicator. It is broken where f throws, as other ranks would wait for what was not carried out. A
// group learns of every failure.
template <class F>
GCCL_Result guarded(GCCL_Comm comm, F f) noexcept {
  if (in_forked_child()) return failed_in_child();
  GCCL_Result result;
  try {
    result = f();
  } catch (...) {
    break_after(comm, caught());
    result = failed(caught());
  }
  if (result != GCCL_SUCCESS) [[unlikely]]
    note_in_group(result);
  return result;
}

}  // namespace gccl
