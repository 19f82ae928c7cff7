// Measurements of this machine, made now: `gccl launch -n RANKS -- gccl bench` in processes of its own.
#pragma once

#include <string>

#include "libgccl/schedule/types.hpp"

namespace gccl {

// What gccl bench says as JSON of these collectives ("all", or names with commas between them), each as communicators
// of this job choose it, from 8 B to 16 MiB. Throws std::runtime_error where the job fails; its messages are on
// standard error by then.
std::string measure_live(Rank ranks, const std::string& collectives);

}  // namespace gccl
