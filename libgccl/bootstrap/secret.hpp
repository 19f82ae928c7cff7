// The secret that all ranks of a job share.
#pragma once

#include <string>

#include "libgccl/base/status.hpp"

namespace gccl {

// The file's text without the newline at its end. GCCL_ERR_INVALID_ARGUMENT when it cannot be read, is empty or longer
// than 4096 bytes, or when others than its owner can read it, who must be this user or root.
Status read_secret_file(const std::string& path, std::string* secret);

// 32 random bytes as 64 hexadecimal digits.
std::string random_secret();

}  // namespace gccl
