// The project's JSON files, as tests go through them.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "tests/support/project.hpp"

namespace gccl::test {

// In order, without those of folders in it.
inline std::vector<std::filesystem::path> json_files(std::string_view folder) {
  std::vector<std::filesystem::path> all;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / folder))
    if (entry.path().extension() == ".json") all.push_back(entry.path());
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace gccl::test
