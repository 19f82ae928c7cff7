#include "sim/scenario/run/play.hpp"

#include <sys/resource.h>

#include <algorithm>

#include "libgccl/schedule/definition.hpp"
#include "sim/engine/trace.hpp"

namespace gccl::sim {

Played play(const Campaign& campaign, const Point& point, const Engines& engines, bool trace) {
  PreparedWorkload prepared = prepare(campaign, point);
  if (trace) prepared.workload.trace_ranks = std::min(campaign.worlds[point.world].ranks(), kTraceRanks);
  const auto run = point.engine == Engine::model      ? engines.model
                   : point.engine == Engine::flow     ? engines.flow
                   : point.engine == Engine::protocol ? engines.protocol
                                                      : engines.simgrid;
  Played played;
  played.outcome = point.engine == Engine::real ? engines.real(prepared.workload) : run(prepared.workload);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  played.peak_rss_MB = double(usage.ru_maxrss) * 1024 / 1e6;
  if (trace) played.trace = chrome_trace(prepared.workload, played.outcome);
  return played;
}

}  // namespace gccl::sim
