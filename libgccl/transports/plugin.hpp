// Transports that are shared libraries of their own (gccl/backend.h).
#pragma once

#include <string>

#include "gccl/backend.h"
#include "libgccl/base/status.hpp"

namespace gccl {

// Loads libgccl_backend_NAME.so from the folders of GCCL_BACKEND_PATH or the library's own; `library` stays loaded
// while the process lives. Errors say which file was refused and why, or where none was found, and which transports
// need none: `built_in`.
Status load_plugin(const std::string& name, const std::string& built_in, const GCCL_Backend** backend, void** library);

}  // namespace gccl
