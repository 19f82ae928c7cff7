// From a configuration to the communicator of all ranks.
#pragma once

#include "libgccl/communicator/communicator.hpp"

namespace gccl {

// Makes this process rank `rank` of the job (negative: as the configuration or the environment says). Collective over
// all ranks.
Status create_world(const GCCL_Config* config, int rank, std::unique_ptr<Communicator>* out);

}  // namespace gccl
