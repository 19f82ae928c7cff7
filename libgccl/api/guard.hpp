// No exception leaves a C function, and none is carried out in a child of a process that uses GCCL, those apart that
// are local.
#pragma once

#include <utility>

#include "libgccl/api/handles.hpp"
#include "libgccl/base/caught.hpp"
#include "libgccl/base/process.hpp"

namespace gccl {

// What every call returns in such a child.
[[gnu::cold]] GCCL_Result failed_in_child() noexcept;

// What f returns, or what its exception amounts to. For calls that such a child may make, too.
template <class F>
GCCL_Result guarded_anywhere(F f) noexcept {
  try {
    return f();
  } catch (...) {
    return failed(caught());
  }
}
// For all others.
template <class F>
GCCL_Result guarded(F f) noexcept {
  return in_forked_child() ? failed_in_child() : guarded_anywhere(std::move(f));
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
