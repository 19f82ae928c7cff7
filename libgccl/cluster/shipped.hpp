// Files that come with the program may be named rather than located: "cluster": "dgx-h100-superpod-2048",
// "parameters": "nvidia-h100".
#pragma once

#include <filesystem>
#include <vector>

#include "libgccl/json/reader.hpp"

namespace gccl {

struct ShippedFolders {
  std::vector<std::filesystem::path> clusters, parameters;
};

// Said once, before anything is read; by default there are none.
void set_shipped_folders(ShippedFolders folders);

// The file that a value names: relative to the file that holds it, or else, for a name without '/', the shipped one.
// Throws json::InputError with the nearest names and where it looked.
std::filesystem::path cluster_file(const json::Node& name);
std::filesystem::path parameters_file(const json::Node& name);
// The same for a name in a file of this folder; empty when there is no such file.
std::filesystem::path parameters_file(const std::filesystem::path& folder, const std::string& name);

}  // namespace gccl
