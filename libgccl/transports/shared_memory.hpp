// Memory of GCCL_Mem_alloc, which other ranks of the machine read as they read their own.
#pragma once

#include <cstddef>

#include "libgccl/base/status.hpp"

namespace gccl {

// Zeroed, at the beginning of a page. Errors when the machine has not as much.
Status allocate_shared(std::size_t bytes, void** out);
// `data` must be what allocate_shared() gave.
Status free_shared(void* data);

}  // namespace gccl
