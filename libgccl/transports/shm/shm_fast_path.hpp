// The fast path of shared memory: pipes written and read by the calling thread, without a transfer.
#pragma once

#include "libgccl/transports/fast_path.hpp"

namespace gccl {

// The fast path of an open port of shm_backend(); of no port where the communicator has one rank, which sends nothing.
std::unique_ptr<FastPath> shm_fast_path(void* port);

}  // namespace gccl
