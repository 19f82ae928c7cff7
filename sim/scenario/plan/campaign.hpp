// From a scenario to the points to simulate: every cluster, rank count, engine, size and algorithm that it asks for.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "libgccl/select/plan.hpp"
#include "sim/scenario/description/scenario.hpp"
#include "sim/scenario/read/counts.hpp"
#include "sim/scenario/read/groups.hpp"

namespace gccl::sim {

// Ranks on the cards of one cluster.
struct SimulatedWorld {
  std::shared_ptr<const Cluster> cluster;
  std::string cluster_name;  // unique within the campaign
  std::filesystem::path cluster_file;
  std::vector<Card> cards;  // cards[w]: of world rank w

  Rank ranks() const { return Rank(cards.size()); }
};

using Communicators = std::shared_ptr<const std::vector<SimulatedCommunicator>>;

// One task as one point plays it.
struct Part {
  const Task* task = nullptr;
  Count bytes = 0;  // as the scenario states it
  Communicators communicators;
  std::vector<Plan> plans;  // by SimulatedCommunicator::shape: each communicator plans for itself, as real ones do
  std::vector<OtherChoice> others = {};  // by shape, where another library's rules chose; else empty
  bool sliced = false;                   // the slicing is the planner's: the scenario does not state it

  // The communicator that stands for all in the results: the first of the largest.
  const SimulatedCommunicator& largest() const;
  const Plan& plan(const SimulatedCommunicator& c) const { return plans[c.shape]; }
  const Plan& plan() const { return plan(largest()); }
  // "ring", or "ring + direct" where communicators of different shapes have different ones; the largest's first.
  std::string algorithm() const;
};

// One simulation, independent of all others.
struct Point {
  std::size_t run = 0, world = 0;  // indices
  Engine engine{};
  std::vector<std::vector<Part>> streams;
  std::vector<Count> asked;  // the sizes that this point answers: several where they round to the same elements
  bool automatic = false;    // the run asks for "auto" and this is the planner's choice
  // Closed form without contention, by the costs that the choice was made with; absent where an algorithm has none.
  std::optional<double> predicted_us;
  double messages = 0, steps = 0;  // estimates, see estimate.hpp

  const Part& part() const { return streams[0][0]; }
};

// All simulations that a scenario asks for.
struct Campaign {
  std::shared_ptr<const Scenario> scenario;  // what the points refer to
  std::vector<SimulatedWorld> worlds;        // by cluster, then by ranks
  std::vector<Point> points;                 // by run, world, engine, size, algorithm
  std::uint64_t seed = 1;
  Authorities authorities;  // what decides before the planner's own rules where a run asks for "auto"
  std::size_t unchecked =
      0;  // expectations left out: they are about engines that are not run, or times of a virtual cluster
};

constexpr std::size_t kPointsMax = 10'000;
constexpr double kMessagesMax = 2e9;  // of one point, all repetitions: about four minutes on the model engine
constexpr double kStepsMax = 2 * kMessagesMax;
constexpr double kMessagesTotalMax = 2e10;
constexpr double kPayloadElementsMax = 1 << 26;
constexpr double kLanesTotalMax = 1 << 28;  // of all ranks, collectives and repetitions of one point

// How real ranks reach each other, and what can be done to them here.
struct RealMeans {
  bool shm = false;         // shared memory; else TCP
  bool namespaces = false;  // each rank on a network of its own
  std::string obstacle;     // why this system lets nobody make networks; empty: it does
  const char* carrier() const { return shm ? "shm" : namespaces ? "tcp in namespaces" : "tcp"; }
};

struct CampaignOptions {
  std::optional<Engine> engine;             // instead of the scenario's; expectations about other engines are left out
  std::optional<std::uint64_t> seed;        // instead of the scenario's
  std::optional<PlannerKind> planner = {};  // instead of the scenario's
  // What decides for "auto" before GCCL's planner does; in real jobs the environment says it.
  Authorities authorities = {};
  // Where the caller can start real ranks: engine "real".
  std::optional<RealMeans> real = {};
  // How a cluster's file is read; empty: load_cluster().
  std::function<std::shared_ptr<const Cluster>(const std::filesystem::path&)> load = {};
};

// Loads the clusters. Throws json::InputError: more ranks than cards, a root or straggler that is no rank, an algorithm
// that is named but cannot serve the call, a planner that knows nothing of the cluster, more work than the limits
// above, a tuning table that is for another machine than one of the clusters.
Campaign make_campaign(Scenario scenario, const CampaignOptions& options);

// How ranks on these cards carry a part of the point out when they are what is left of its ranks, as a communicator
// does that was shrunk. What the planner chose it chooses anew; a stated algorithm is kept, as GCCL_ALGORITHM's is,
// where it can serve them, and otherwise the planner chooses. `root` is one of these ranks, as are those whose link is
// slow, which is planned around. The part is the whole world's.
Plan replanned(const Campaign& campaign, const Point& point, const Part& part, const std::vector<Card>& cards,
               Rank root, const std::vector<SlowPair>& slow);

// What an operation of the part takes before its first message: what its protocol does, and what the cluster's
// corrections add.
double operation_ns(const Cluster& cluster, const Part& part, const SimulatedCommunicator& communicator);

// The call of one task on a communicator of `ranks` ranks; `table` is for calls with counts and must outlive the call.
Call call_of(const Task& task, Count bytes, Rank ranks, const CountTable* table);
CountTable count_table(const Task& task, Count bytes, Rank ranks, std::uint64_t seed);

}  // namespace gccl::sim
