// What `gccl validate` and `gccl fit` share: the measurements, the cluster and its parameters.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "sim/measured/read/read.hpp"

namespace gccl {

struct MeasuredArguments {
  std::vector<std::string> files;
  std::string cluster, parameters, collective, system;
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
std::filesystem::path cluster_file_of(const MeasuredArguments& a);
std::filesystem::path parameters_file_of(const MeasuredArguments& a);  // empty where none is stated
std::shared_ptr<const Cluster> load_measured_cluster(const MeasuredArguments& a);

}  // namespace gccl
