// The fastest way to carry out one call on one number of ranks, found by simulating those that may be it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "libgccl/algorithms/parts/root_order.hpp"
#include "libgccl/cluster/cost_stairs.hpp"
#include "libgccl/elements/dtype.hpp"
#include "libgccl/select/others/other_planners.hpp"
#include "libgccl/select/tuning_table.hpp"
#include "sim/engine/workload.hpp"

namespace gccl::sim {

// Ranks on the first cards of a cluster, and what they are planned by.
struct TunedRanks {
  std::shared_ptr<const Cluster> cluster;
  std::vector<Card> cards;
  std::shared_ptr<const Layout> layout;
  PlannedBy by;
  std::optional<PlannedBy> by_from_root;  // calls with a root, where they take ranks in another order
  std::optional<NcclMachine> nccl;        // where the cluster says which architecture its cards are of

  TunedRanks(std::shared_ptr<const Cluster> cluster, Rank ranks, Dtype dtype);
  Rank ranks() const { return layout->ranks(); }
  const PlannedBy& of(const Call& call) const {
    return by_from_root && !order_from_root(call, layout->view(0)).empty() ? *by_from_root : by;
  }
};

struct SearchOptions {
  Dtype dtype = Dtype::f32;
  // Simulates a workload; may be asked often in one process.
  std::function<Outcome(const Workload&)> run;
  // What would take more steps than this is left out, and no plan is cut up so finely that it would.
  double steps_max = 4e5;
  // Nor is simulated what is predicted to take more than so many times the best prediction.
  double margin = 2;
  // From how many of the fastest algorithms on chunks and channels are doubled and halved, as long as that helps;
  // sweeps say it of places between anew.
  unsigned refined = 2;
  // Between two sizes so many of those estimated to be the fastest are simulated; 0: none, and the estimate decides.
  unsigned confirmed = 3;
  // Whose choices are simulated, too; null: none.
  std::shared_ptr<const TuningTable> table;
};

// One place of a sweep, "cells" of "gccl/tuning/1" (docs/formats.md): what was simulated, the fastest first; what the
// planners of GCCL, NCCL and Open MPI choose; how many candidates were left out, and why.
//
// A candidate is left out where a bound below its time is above the best time, or its prediction is beyond the margin:
// in both cases of all candidates, and of those that another library has too (counterparts.hpp), since that library's
// tuning file wants the best of these.
nlohmann::json search(const TunedRanks& ranks, Collective kind, Count bytes, const SearchOptions& options);

// A place of "between" two of these, where what was simulated at one or both of them is estimated: a closed form that
// is off by some factor at a size is off by much the same near it, so the prediction is taken times that factor, where
// neighbours differ the larger, and a little more for what was simulated at one of them alone. Of those estimated to be
// the fastest, of the fastest that each library has, and of what Open MPI chooses by itself, what simulation finds; or,
// where none are simulated or that would take too many steps, the estimates.
nlohmann::json search_between(const TunedRanks& ranks, Collective kind, Count bytes, const SearchOptions& options,
                              const nlohmann::json& below, const nlohmann::json& above);

}  // namespace gccl::sim
