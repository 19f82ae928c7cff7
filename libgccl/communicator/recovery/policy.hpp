// What a communicator does by itself when ranks of it fail.
#pragma once

#include "gccl/gccl.h"

namespace gccl {

// As GCCL_ON_FAILURE has it.
constexpr const char* policy_name(GCCL_Failure_policy p) {
  switch (p) {
    case GCCL_SHRINK: return "shrink";
    case GCCL_SPARE: return "spare";
    case GCCL_REJOIN: return "rejoin";
    default: return "fail";
  }
}

// Processes that join take the places of ranks that have failed.
constexpr bool replaces(GCCL_Failure_policy p) { return p == GCCL_SPARE || p == GCCL_REJOIN; }

}  // namespace gccl
