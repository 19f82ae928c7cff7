// Small files that are written whole and read whole.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "libgccl/base/status.hpp"

namespace gccl {

// The file appears, or is replaced, in one moment; only its owner can read it. One writer for each draft, which by
// default is the path with "~" behind it.
Status write_store_file(const std::string& path, std::span<const std::byte> bytes, std::string draft = "");

// *found is false when there is no file. A file that is longer than bytes_max, is no regular file or belongs to another
// user is GCCL_ERR_SYSTEM.
Status read_store_file(const std::string& path, std::size_t bytes_max, std::vector<std::byte>* bytes, bool* found);

// Not being there is no error.
void remove_store_file(const std::string& path);

}  // namespace gccl
