// Limits that several rooms share.
#pragma once

#include <cstdint>

namespace gccl {

// Ranks of a job, of a scenario, of a communicator that a table or a plug-in plans for.
constexpr std::int64_t kRanksMax = 1 << 20;

}  // namespace gccl
