// The project's files, as tests read them.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace gccl::test {

inline const std::filesystem::path kRoot = GCCL_SOURCE_DIR;

inline std::string read_text(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace gccl::test
