// The options of gccl tune.
#pragma once

#include "cli/cluster_argument.hpp"
#include "sim/tuning/counterparts.hpp"
#include "sim/tuning/sweep.hpp"

namespace gccl {

struct TuneArguments : ClusterArgument {
  std::string collectives = "allreduce,allgather,reduce_scatter,alltoall", bytes = "8..1GiB", ranks, engine = "flow",
              dtype = "bf16";
  std::string check_table;
  std::string json, html, table, nccl, openmpi, openmpi_json, mpich, resume;
  std::string mpich_release;  // empty: 4.1
  double steps = 2e5, margin = 2, export_gain = sim::Exporting::kGainPercent;
  unsigned bisections = 1, refined = 2, confirmed = 3;
  unsigned jobs = 0;  // 0: one for each processor that this process has for itself
  bool commutative = false, quiet = false;
};

void add_tune_options(Command& command, TuneArguments& a);

// Throws json::InputError with the option, what was found and what was expected.
sim::SweepQuestion sweep_question(const TuneArguments& a);

}  // namespace gccl
