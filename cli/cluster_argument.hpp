// The cluster that a command is about: CLUSTER, and --parameters in place of its own.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "libgccl/cluster/cluster.hpp"

namespace gccl {

struct ClusterArgument {
  std::string cluster, parameters;
};

void add_parameters_option(Command& command, ClusterArgument& a);

// These throw json::InputError.
std::filesystem::path cluster_file_of(const ClusterArgument& a);
std::filesystem::path parameters_file_of(const ClusterArgument& a);  // empty where none is stated
std::shared_ptr<const Cluster> load_cluster(const ClusterArgument& a);
struct ClusterUnder {
  std::shared_ptr<const Cluster> cluster;
  std::string parameters;  // the name of its set, where that is not its own
};
// The same under its mpi_parameters; no cluster where it has none.
ClusterUnder load_mpi_cluster(const ClusterArgument& a);
// All files that are read for it.
std::vector<std::filesystem::path> files_of_cluster(const ClusterArgument& a);

}  // namespace gccl
