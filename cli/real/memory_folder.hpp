// A place for files that nobody else comes by.
#pragma once

#include <string>

#include "libgccl/net/socket.hpp"

namespace gccl::real {

// A folder in memory without a name: it is gone, with all that is in it, when the last process has ended that has it
// open, however that ends. Needs the right to mount. Throws std::runtime_error.
Fd memory_folder();

// In this process, and in those that it forks.
std::string path_of(const Fd& folder);

}  // namespace gccl::real
