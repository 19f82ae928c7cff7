#include "cli/cluster_argument.hpp"

#include "cli/catalogue.hpp"
#include "libgccl/cluster/files.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "libgccl/cluster/shipped.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl {

void add_parameters_option(Command& command, ClusterArgument& a) {
  command
      .add_option("--parameters", a.parameters,
                  "Parameter set instead of the cluster's, or a shipped one's name (gccl list cost-models)")
      ->value("FILE");
}

std::filesystem::path cluster_file_of(const ClusterArgument& a) { return find_shipped("topologies", a.cluster); }

std::filesystem::path parameters_file_of(const ClusterArgument& a) {
  return a.parameters.empty() ? std::filesystem::path() : find_shipped("cost-models", a.parameters);
}

std::shared_ptr<const Cluster> load_cluster(const ClusterArgument& a) {
  const std::filesystem::path file = cluster_file_of(a);
  if (a.parameters.empty()) return load_cluster(file);
  return read_cluster(json::Node::load(file), load_parameters(parameters_file_of(a)));
}

ClusterUnder load_mpi_cluster(const ClusterArgument& a) {
  const json::Node description = json::Node::load(cluster_file_of(a));
  const auto mpi = read_mpi_parameters(description);
  if (!mpi) return {};
  const json::Node value = description.at("mpi_parameters");
  return {read_cluster(description, *mpi), value.is_string() ? parameters_file(value).stem() : "mpi_parameters"};
}

std::vector<std::filesystem::path> files_of_cluster(const ClusterArgument& a) {
  std::vector<std::filesystem::path> all = files_of_cluster(cluster_file_of(a));
  if (!a.parameters.empty())
    for (const auto& file : files_of_cluster(parameters_file_of(a))) all.push_back(file);
  return all;
}

}  // namespace gccl
