// Shared memory between the ranks of a machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gccl/backend.h"

namespace gccl {

const GCCL_Backend* shm_backend();
// By one of its ports (Transport::moved_bytes).
std::uint64_t shm_moved_bytes(const void* port);
// Transport::staging.
std::byte* shm_staging(void* port, std::size_t bytes);

}  // namespace gccl
