// A file that a setting or an argument names, read as a whole.
#pragma once

#include <cstdint>
#include <string>

#include "libgccl/base/status.hpp"

namespace gccl {

// GCCL_ERR_INVALID_ARGUMENT with the file's name where it is missing, cannot be read, is larger than so many bytes, or
// is no regular file: opening a pipe that nobody writes into waits for ever, a terminal waits for a person, and
// /dev/zero has no end. None of these is waited for.
Status read_regular_file(const std::string& file, std::uint64_t bytes_max, std::string* text);

}  // namespace gccl
