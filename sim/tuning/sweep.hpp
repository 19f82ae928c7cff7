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
  std::vector<Collective> collectives;
  std::vector<Count> bytes;  // ascending
  std::vector<Rank> ranks;   // ascending
  Engine engine = Engine::flow;
  SearchOptions search;     // run is filled in
  unsigned bisections = 2;  // between neighbouring sizes with different winners
};

struct SweepOptions {
  unsigned jobs = 1;
  std::function<void(std::size_t done, std::size_t of)> progress;  // may be empty
  const StopFlag* stop = nullptr;
  Journal* journal = nullptr;
};

// "gccl/tuning/1" (docs/formats.md). Where the stop flag is set it holds what was found until then, and says so. A
// place whose process ends without a result (it was killed, as memory was short) is searched once more when no other
// runs; one that fails again stands in "failed".
nlohmann::json sweep(const SweepQuestion& question, const Engines& engines, const SweepOptions& options);

// How many cells of the sweep's grid the journal holds already.
std::size_t known_cells(const SweepQuestion& question, const Journal& journal);

}  // namespace gccl::sim
