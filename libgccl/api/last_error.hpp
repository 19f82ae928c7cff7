// The words behind a result: what the last failed call of each thread was about (GCCL_Last_error).
#pragma once

#include <string>

#include "gccl/gccl.h"
#include "libgccl/base/status.hpp"

namespace gccl {

// This thread's text from now on.
void set_last_error(std::string text);

// What a C function returns for a status: its code, with its text as this thread's last error; GCCL_SUCCESS when it is
// ok, and then the last error stays what it was.
GCCL_Result failed(const Status& status) noexcept;

}  // namespace gccl
