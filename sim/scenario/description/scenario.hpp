// A scenario: what to run, on which clusters, and what must come out. The vocabulary of "gccl/scenario/1"
// (docs/formats.md) once its mistakes are ruled out; what depends on a cluster's size is checked by
// sim/scenario/plan/campaign.hpp.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libgccl/cost/slicing.hpp"
#include "libgccl/elements/dtype.hpp"
#include "libgccl/elements/reduction.hpp"
#include "libgccl/select/others/other_planners.hpp"
#include "sim/engine/workload.hpp"
#include "sim/scenario/description/counts.hpp"
#include "sim/scenario/description/expectation.hpp"
#include "sim/scenario/description/groups.hpp"
#include "sim/scenario/description/placement.hpp"

namespace gccl::sim {

enum class Engine : std::uint8_t { model, flow, simgrid, protocol, real };
inline constexpr std::string_view kEngineNames[] = {"model", "flow", "simgrid", "protocol", "real"};
constexpr std::span<const std::string_view> engine_names() { return kEngineNames; }
constexpr std::string_view name(Engine e) { return kEngineNames[std::size_t(e)]; }
// Its ranks detect failures and recover from them: faults may hit processes, and elements are always checked.
constexpr bool plays_ranks(Engine e) { return e == Engine::protocol || e == Engine::real; }

// Which algorithms a task is run with.
struct Candidates {
  bool all = false;                                            // every one that fits, variants excepted
  bool automatic = false;                                      // the planner's choice
  std::vector<std::pair<const Algorithm*, json::Node>> named;  // and where each is named
};

// One collective on every group.
struct Task {
  json::Node where;
  Collective kind{};
  std::vector<Count> bytes{0};  // see sizes.hpp; exactly one inside a sequence
  Dtype dtype = Dtype::f32;
  Reduction op = Reduction::sum;
  Rank root = 0;  // a rank of each group
  bool in_place = false;
  Candidates algorithms;           // exactly one inside a sequence
  PlannerKind planner{};           // who chooses for "auto"
  std::optional<Slicing> slicing;  // as stated; absent: the planner's
  std::string protocol;            // as stated; empty: the planner's
  Groups groups;
  Distribution counts;  // alltoallv, allgatherv, reduce_scatterv
};

// One entry of "runs": a single collective, or several in a row and concurrently.
struct ScenarioRun {
  enum class Kind : std::uint8_t { collective, sequence, concurrent };
  json::Node where;
  Kind kind = Kind::collective;
  std::string label;
  std::size_t like = 0;  // the first run that asks for the same, with algorithms and sizes to be compared with these
  std::vector<std::vector<Task>> streams;  // concurrent; each a sequence
  std::vector<Engine> engines{Engine::model};
  bool payload = false;
  std::vector<std::pair<Straggler, json::Node>> stragglers;
  std::vector<std::pair<Fault, json::Node>> faults;
  RecoverySettings recovery;
  unsigned repeats = 1;  // so often it is done, one after the other
  Nanos compute = 0;     // so long each rank computes before each operation; protocol engine
  std::vector<Expectation> expectations;

  bool plays_faults() const { return !faults.empty() || plays_ranks(engines[0]); }
  // Whatever happens; by the policy "fail" ranks end with an error.
  bool must_complete() const {
    return !faults.empty() && (!plays_ranks(engines[0]) || recovery.policy != FailurePolicy::fail);
  }
  const Task& task() const { return streams[0][0]; }
};

struct Scenario {
  std::filesystem::path file;
  std::string name, description;
  std::vector<std::pair<std::filesystem::path, json::Node>> clusters;
  std::vector<std::pair<Rank, json::Node>> ranks;  // empty: as many as there are cards
  Placement placement;
  std::uint64_t seed = 1;
  std::vector<ScenarioRun> runs;
};

constexpr std::size_t kStagesMax = 256;  // tasks in one sequence
constexpr std::size_t kStreamsMax = 64;  // concurrent sequences
constexpr unsigned kRepeatsMax = 1000, kRunsMax = 1000;
constexpr Count kSharesMax = 4096;
constexpr Count kLanesMax = 64;

}  // namespace gccl::sim
