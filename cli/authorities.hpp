// What of the environment decides how calls are planned, as in a program that uses the library.
#pragma once

#include <filesystem>
#include <optional>

#include "libgccl/select/authorities.hpp"

namespace gccl {

// GCCL_ALGORITHM, GCCL_ALGO and GCCL_TUNING_FILE. Variables that GCCL does not have are warned about, as GCCL_Init
// does, once in a process. Throws json::InputError for a value that cannot be right.
Authorities authorities_of_environment();
// The file of GCCL_TUNING_FILE, which no output may replace.
std::optional<std::filesystem::path> tuning_file_of_environment();

}  // namespace gccl
