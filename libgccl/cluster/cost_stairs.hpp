// What explain() (select/explain.hpp) needs of a cluster: its models while one kind of cost after another gets smaller,
// and those of a machine that is better in one respect.
#pragma once

#include <string>

#include "libgccl/cluster/cluster.hpp"
#include "libgccl/select/explain.hpp"

namespace gccl {

// What calls of ranks on these cards are planned by: the transports' models where the cluster names some, else one read
// off its routes for each protocol. `order`: as for cost_model().
struct PlannedBy {
  std::vector<CostModel> models;
  Tuning tuning;
};
PlannedBy planned_by(const Cluster& cluster, const std::vector<Card>& cards, unsigned element_bytes,
                     std::span<const Rank> order = {});

CostStairs cost_stairs(const Cluster& cluster, const std::vector<Card>& cards, unsigned element_bytes,
                       std::span<const Rank> order = {});

struct Better {
  std::string what;  // "links inside nodes twice as fast"; "between cards" where the same links join nodes, too
  std::vector<CostModel> models;
};
std::vector<Better> better_machines(const Cluster& cluster, const std::vector<Card>& cards, unsigned element_bytes,
                                    std::span<const Rank> order = {});

}  // namespace gccl
