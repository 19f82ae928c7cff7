// A copy for what is larger than the caches and not needed soon.
#pragma once

#include <cstddef>

namespace gccl {

// Copies with stores that bypass the caches where the processor has them. `to` and `from` do not overlap.
void copy_past_caches(void* to, const void* from, std::size_t bytes);

}  // namespace gccl
