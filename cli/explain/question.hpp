// What gccl explain is asked: one call of some ranks on a cluster.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "libgccl/cluster/cluster.hpp"
#include "libgccl/elements/dtype.hpp"
#include "libgccl/select/authorities.hpp"
#include "libgccl/select/others/other_planners.hpp"

namespace gccl {

struct Question {
  std::shared_ptr<const Cluster> cluster;
  std::string parameters;   // the name of its parameter set, where that is not its own
  std::vector<Card> cards;  // of the ranks
  Collective kind{};
  Count bytes = 0;  // as nccl-tests counts
  Dtype dtype = Dtype::f32;
  Rank root = 0;
  PlannerKind as = PlannerKind::gccl;
  Authorities authorities{};  // of the environment; they decide before GCCL's planner
};

// "gccl/explanation/1" (docs/formats.md). Throws json::InputError where NCCL's rules are asked for and the cluster's
// parameters do not say which architecture its cards are of.
nlohmann::json answer(const Question& question);

}  // namespace gccl
