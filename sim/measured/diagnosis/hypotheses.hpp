// What may be wrong with a cluster: each cause as other clusters, parameters, algorithms or protocols to predict with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libgccl/cluster/read/parameters.hpp"
#include "sim/measured/measurement.hpp"

namespace gccl::sim {

// One way in which a cause may show, such as one of eight NICs, or two.
struct Variant {
  std::string detail;
  std::shared_ptr<const Cluster> cluster;
  std::string algorithm = {};       // for calls of all sizes whose rows leave it to the library
  std::string planner = "library";  // whose rules stand for the library's, as for MeasuredPoints
  std::size_t model = 0;            // of the healthy cluster: its own variant of that index
};

struct Hypothesis {
  std::string name;   // "tcp"
  std::string title;  // "TCP instead of RDMA"
  std::string check;  // what to look at
  std::vector<Variant> variants;
};

// The first one is a healthy cluster. `description`: of the cluster; `parameters`: which it has. Where these go by
// NCCL, each variant comes by several models: planned by NCCL's rules and by GCCL's, and where no protocols are named
// as the set has it and with NCCL's three added.
std::vector<Hypothesis> hypotheses_of(const json::Node& description, const Parameters& parameters,
                                      const std::vector<Measurement>& rows);

}  // namespace gccl::sim
