// Holds closed forms to the engines: to the model engine on one switch, to flow where messages share links, which it
// shares out fairly.
#pragma once

#include <optional>
#include <string>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/cluster/cluster.hpp"
#include "sim/engine/workload.hpp"

namespace gccl::sim {

// A closed form may be off by this part of the simulated time, for 256 B, 64 KiB and 16 MiB
// - on one switch, from 2 to 64 ranks that are a power of two;
// - there, off powers of two: what folds to a power of two has ranks that are late, and long messages of different
//   steps share ports;
// - on four nodes of eight cards and eight NICs below a fat tree whose spine is half as wide as its leaves: messages of
//   different lengths meet there, which no form follows step by step;
// - there, with a last node that is not full: a form takes the slowest message of each step, and they need not follow
//   each other on one rank;
// - there, with nodes of any sizes, and ranks dealt out to them in turn: as a part of the longer of both times.
constexpr double kCostTolerance = 0.15, kCostToleranceOdd = 0.35, kCostToleranceTwoLevels = 0.35,
                 kCostToleranceUneven = 0.6, kCostToleranceAnySizes = 0.6;

// Where the algorithm's closed form is off by more than that, most of all; nothing when it holds or there is none.
std::optional<std::string> wrong_cost(const Algorithm& algorithm);

// Ranks 0, 1, ... on cards 0, 1, ...
std::vector<Card> first_cards(Rank ranks);

struct CostPoint {
  double predicted_ns, simulated_ns;

  // As a part of the simulated time; 0 within `slack_ns`.
  double error(double slack_ns) const;
  // As a part of the longer of both times.
  double apart() const;
};

// One call of `count` elements of 4 bytes, rank r on card cards[r]: its closed form and its simulated time. Nothing
// when the algorithm cannot serve it.
std::optional<CostPoint> cost_point(const Algorithm& algorithm, const Cluster& cluster, const std::vector<Card>& cards,
                                    Count count, Outcome (*run)(const Workload&) = run_model);

}  // namespace gccl::sim
