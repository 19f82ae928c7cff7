// One rank of `gccl run --engine real`: what an application around GCCL would do about failures.
#pragma once

#include "cli/real/program.hpp"

namespace gccl::real {

// Carries out the operations one after the other, over the public C interface, and checks each result. Where a failure
// interrupts it, it revokes; then, as at the end, all agree on the operations that each of them has completed. By the
// policy it then ends, or all shrink, agree once more, and go on with the first operation that not everybody has. The
// same as the program of the simulated ranks (sim/protocol/ranks.hpp). Settings come from the environment, as in any
// program. Never returns: ends when the coordinator says so.
[[noreturn]] void run_rank(const RankProgram& program);

}  // namespace gccl::real
