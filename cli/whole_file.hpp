// Output files that are there whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>

namespace gccl {

// Writes beside `file` under a temporary name, then renames. Throws std::runtime_error with one line that names the
// file; then what was there before is untouched.
void write_whole(const std::filesystem::path& file, std::string_view text);

}  // namespace gccl
