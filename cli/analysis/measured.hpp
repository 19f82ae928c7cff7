// What `gccl validate` and `gccl fit` share: the measurements, the cluster and its parameters.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/cluster_argument.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "sim/measured/predict/predict.hpp"
#include "sim/measured/read/read.hpp"

namespace gccl {

struct MeasuredArguments : ClusterArgument {
  std::vector<std::string> files;
  std::string collective, system;
  std::optional<std::int64_t> nodes, cards;
  bool live = false;  // this machine is measured, no file is read
};

// `live`: with the option --live, in place of files.
void add_measured_options(Command& command, MeasuredArguments& a, bool live = false);

// The files that are read: measurements, cluster, parameters.
std::vector<std::filesystem::path> inputs_of(const MeasuredArguments& a);
// These throw json::InputError.
sim::Measured read_measured(const MeasuredArguments& a);
sim::Measured measured_now(const MeasuredArguments& a, const Cluster& cluster);  // --live
// The cluster under its own parameters: rows of MPI libraries have some of their own where it names them. Under those
// that are stated all have the same.
sim::MeasuredClusters load_measured_clusters(const MeasuredArguments& a);

// One parameter set for all rows.
struct MeasuredSet {
  Parameters parameters;
  std::filesystem::path file;  // empty: the cluster has them in itself
  nlohmann::json value;        // as the cluster has them
};
// The stated one, else the cluster's for what the rows are of. Throws json::InputError where they are of MPI libraries
// and of others, and the cluster names a set for each.
MeasuredSet measured_set(const MeasuredArguments& a, const json::Node& description,
                         const std::vector<sim::Measurement>& rows);

}  // namespace gccl
