// What GCCL says of measured points on a cluster. Points are those of a scenario, so that they are planned and played
// as `gccl run` would.
#pragma once

#include <map>

#include "sim/measured/measurement.hpp"
#include "sim/measured/predict/algorithm_names.hpp"
#include "sim/scenario/run_campaign.hpp"

namespace gccl::sim {

struct Predicted {
  std::size_t row = 0;  // of the measurements
  double us = 0;
  std::string algorithm;
  Slicing slicing;
  std::string protocol;  // of the cluster's; empty where it names none
  std::string planner;   // that chose the algorithm; "library": the parameters' choices; empty where it was stated
};

// A cluster under the parameters of those whose times were measured.
struct MeasuredClusters {
  std::shared_ptr<const Cluster> cards, mpi;  // of NCCL and its like; of MPI libraries

  MeasuredClusters(std::shared_ptr<const Cluster> both) : cards(both), mpi(std::move(both)) {}
  MeasuredClusters(std::shared_ptr<const Cluster> of_cards, std::shared_ptr<const Cluster> of_mpi)
      : cards(std::move(of_cards)), mpi(std::move(of_mpi)) {}
};

// How many rows are of MPI libraries, and of others; those whose algorithm GCCL has not are neither.
struct RowKinds {
  std::size_t mpi = 0, others = 0;
};
RowKinds kinds_of(const std::vector<Measurement>& rows);

// Rows on the cards of a cluster, sorted by the cards that they need: what is the same for every set of parameters.
// The measured nodes are the first nodes of the cluster, with the first so many cards of each; of nodes that are made
// of hosts the first hosts, where these have so many cards.
class MeasuredPoints {
 public:
  // `clusters`: as read from `file`, under any parameters that name the protocols and what NCCL goes by. Rows that
  // they have no cards for, whose algorithm GCCL has not, or whose algorithm cannot serve the call are added to
  // `skipped`. `planner`: whose rules stand for a library's own choice; "library": its own where they are known, for
  // NCCL and its like where the cluster's parameters say what it chooses, or what NCCL's rules go by. NCCL's never
  // stand for an MPI library's.
  MeasuredPoints(const std::vector<Measurement>& rows, const MeasuredClusters& clusters,
                 const std::filesystem::path& file, std::vector<SkippedRow>& skipped,
                 std::string_view planner = "library");

  // Closed forms. Rows without one are left out, and added to `skipped` where that is given.
  std::vector<Predicted> closed(const MeasuredClusters& clusters, std::vector<SkippedRow>* skipped = nullptr) const;
  // By simulation, `jobs` at once. `progress` may be empty.
  std::vector<Predicted> simulated(const MeasuredClusters& clusters, Engine engine, const Engines& engines,
                                   const RunOptions& options) const;

  std::size_t points() const;
  bool packed(std::size_t row) const { return packed_.count(row) > 0; }

 private:
  struct World {
    std::vector<Card> cards;
    bool mpi = false;
    Scenario scenario;
    std::vector<std::vector<std::size_t>> rows;  // of each run
  };
  Campaign campaign(const World& world, const MeasuredClusters& clusters, Engine engine) const;
  void add(const Campaign& campaign, const World& world, const std::vector<double>& us,
           std::vector<Predicted>& to) const;

  const std::vector<Measurement>& rows_;
  std::vector<MeasuredAlgorithm> algorithms_;  // of each row, as it names it
  std::vector<World> worlds_;
  std::map<std::size_t, bool> packed_;
};

}  // namespace gccl::sim
