// The files that a cluster is read from.
#pragma once

#include <filesystem>
#include <vector>

namespace gccl {

// A cluster's file and, one after the other, those that its "parameters", "mpi_parameters" and "base" name, each once.
// What is no regular file or no JSON is listed and not looked into.
std::vector<std::filesystem::path> files_of_cluster(const std::filesystem::path& cluster);

}  // namespace gccl
