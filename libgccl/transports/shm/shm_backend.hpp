// Shared memory between the ranks of a machine.
#pragma once

#include "gccl/backend.h"

namespace gccl {

const GCCL_Backend* shm_backend();

}  // namespace gccl
