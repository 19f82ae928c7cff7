// From a point to the workload that the engines understand.
#include "sim/scenario/run/play.hpp"

namespace gccl::sim {

PreparedWorkload prepare(const Campaign& campaign, const Point& point) {
  const SimulatedWorld& world = campaign.worlds[point.world];
  const ScenarioRun& run = campaign.scenario->runs[point.run];
  PreparedWorkload p;
  Workload& w = p.workload;
  w.cluster = world.cluster.get();
  w.cards = world.cards;
  w.payload = run.payload;
  w.seed = campaign.seed;
  for (const auto& [straggler, where] : run.stragglers) w.stragglers.push_back(straggler);
  for (const auto& parts : point.streams) {
    Stream stream;
    for (const Part& part : parts) {
      const Task& task = *part.task;
      Stage stage;
      for (const SimulatedCommunicator& c : *part.communicators) {
        const CountTable* table = nullptr;
        if (has_counts(task.kind)) {
          p.tables.push_back(std::make_unique<CountTable>(count_table(task, part.bytes, c.ranks(), campaign.seed)));
          table = p.tables.back().get();
        }
        stage.push_back(std::uint32_t(w.operations.size()));
        const Plan& planned = part.plan(c);
        w.operations.push_back({.algorithm = planned.algorithm,
                                .call = call_of(task, part.bytes, c.ranks(), table),
                                .layout = c.layout,
                                .members = c.members,
                                .shares = planned.slicing.shares,
                                .lanes = planned.slicing.lanes,
                                .window = planned.slicing.window,
                                .element_bytes = size_of(task.dtype),
                                .protocol = &world.cluster->protocols()[planned.protocol]});
      }
      stream.push_back(std::move(stage));
    }
    w.streams.push_back(std::move(stream));
  }
  return p;
}

}  // namespace gccl::sim
