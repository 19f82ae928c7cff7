// What of the environment decides how calls are planned, as in a program that uses the library.
#pragma once

#include "libgccl/select/authorities.hpp"

namespace gccl {

// GCCL_ALGORITHM, GCCL_ALGO and GCCL_TUNING_FILE. Variables that GCCL does not have are warned about, as GCCL_Init
// does, once in a process. Throws json::InputError for a value that cannot be right.
Authorities authorities_of_environment();

}  // namespace gccl
