// A sweep over collectives, sizes and numbers of ranks, each searched in a process of its own: gccl tune.
#pragma once

#include <filesystem>

#include "sim/scenario/run_campaign.hpp"
#include "sim/tuning/search.hpp"

namespace gccl::sim {

struct SweepQuestion {
  std::shared_ptr<const Cluster> cluster;
  std::filesystem::path file;        // of the cluster
  std::filesystem::path parameters;  // its parameter set's, where that is not its own
  std::string program;               // program_digest() before it loads what lets ranks meet, which finds nothing
  std::vector<Collective> collectives;
  std::vector<Count> bytes;  // ascending
  std::vector<Rank> ranks;   // ascending
  Engine engine = Engine::flow;
  SearchOptions search;     // run is filled in
  unsigned bisections = 2;  // between neighbouring sizes with different winners
};

// Processes that carry out one sweep together, each a share of the searches: all are asked the same question.
struct SweepTeam {
  std::size_t rank = 0, ranks = 1;
  // What each of them gives, by rank; all call it, and wait for each other. Empty: there is one.
  std::function<std::vector<std::string>(const std::string&)> gather = {};
};

struct SweepOptions {
  unsigned jobs = 1;
  std::function<void(std::size_t done, std::size_t of)> progress;  // may be empty
  const StopFlag* stop = nullptr;
  Journal* journal = nullptr;  // what this process finds, and found before
  SweepTeam team = {};
};

// "gccl/tuning/1" (docs/formats.md), the same in each process of a team. Where the stop flag is set, of one of them, it
// holds what was found until then, and says so. A place whose process ends without a result (it was killed, as memory
// was short) is searched once more when no other runs; one that fails again stands in "failed". Throws json::InputError
// where the processes of a team are asked different questions.
nlohmann::json sweep(const SweepQuestion& question, const Engines& engines, const SweepOptions& options);

// How many cells of the sweep's grid the journal holds already.
std::size_t known_cells(const SweepQuestion& question, const Journal& journal);

}  // namespace gccl::sim
