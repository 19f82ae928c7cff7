// A team over a job's communicator.
#pragma once

#include <memory>

#include "cli/bench/team.hpp"
#include "gccl/gccl.h"

namespace gccl::bench {

// As TeamEntry; `kept` outlives the communicator.
Team* meet_team(const GCCL_Config& config, const char* command, std::shared_ptr<void> kept, std::string* error);

}  // namespace gccl::bench
