// From a point to the workload that the engines understand.
#include <algorithm>
#include <map>
#include <tuple>

#include "sim/scenario/plan/faults.hpp"
#include "sim/scenario/run/play.hpp"

namespace gccl::sim {
namespace {

// As Workload::replan wants it. Repetitions of a part are planned once.
auto replanning(const Campaign& campaign, const Point& point) {
  // The part, who is left, and what is planned around.
  using Key = std::tuple<std::size_t, std::vector<Card>, Rank, std::vector<SlowPair>>;
  return [&campaign, &point, known = std::map<Key, Plan>()](std::uint32_t index, const std::vector<Card>& cards,
                                                            const std::vector<SlowPair>& slow,
                                                            SimulatedOperation* o) mutable {
    const std::vector<Part>& parts = point.streams[0];
    const std::size_t number = index % parts.size();
    const Rank root = o->call.root;
    const auto [at, fresh] = known.try_emplace(Key{number, cards, root, slow});
    Plan& p = at->second;
    if (fresh) p = replanned(campaign, point, parts[number], cards, root, slow);
    o->algorithm = p.algorithm;
    o->shares = p.slicing.shares;
    o->lanes = p.slicing.lanes;
    o->window = p.slicing.window;
    o->protocol = &campaign.worlds[point.world].cluster->protocols()[p.protocol];
  };
}

// The rank enters when nothing makes it late any more, and what slows it is multiplied.
void slow(std::map<Rank, Straggler>* all, const Straggler& more) {
  const auto [at, fresh] = all->try_emplace(more.rank, more);
  if (fresh) return;
  at->second.start_ns = std::max(at->second.start_ns, more.start_ns);
  at->second.slowdown *= more.slowdown;
}

}  // namespace

PreparedWorkload prepare(const Campaign& campaign, const Point& point) {
  const SimulatedWorld& world = campaign.worlds[point.world];
  const ScenarioRun& run = campaign.scenario->runs[point.run];
  PreparedWorkload p;
  Workload& w = p.workload;
  w.cluster = world.cluster.get();
  w.cards = world.cards;
  w.payload = run.payload;
  w.seed = campaign.seed;
  std::map<Rank, Straggler> slowed;
  for (const auto& [straggler, where] : run.stragglers) slow(&slowed, straggler);
  for (const auto& parts : point.streams) {
    Stream stream;
    for (std::size_t i = 0; i < parts.size() * run.repeats; ++i) {
      const Part& part = parts[i % parts.size()];
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
        const Protocol* protocol = &world.cluster->protocols()[planned.protocol];
        if (const double ns = operation_ns(*world.cluster, part, c); ns != protocol->operation_ns) {
          p.protocols.push_back(*protocol);
          p.protocols.back().operation_ns = ns;
          protocol = &p.protocols.back();
        }
        w.operations.push_back({.algorithm = planned.algorithm,
                                .call = call_of(task, part.bytes, c.ranks(), table),
                                .layout = c.layout,
                                .members = c.members,
                                .shares = planned.slicing.shares,
                                .lanes = planned.slicing.lanes,
                                .window = planned.slicing.window,
                                .element_bytes = size_of(task.dtype),
                                .dtype = task.dtype,
                                .reduction = task.op,
                                .protocol = protocol});
      }
      stream.push_back(std::move(stage));
    }
    w.streams.push_back(std::move(stream));
  }
  if (point.engine == Engine::protocol || point.engine == Engine::real || !run.faults.empty()) {
    p.faults = std::make_unique<FaultPlan>(fault_plan(run, world, campaign.seed));
    w.faults = p.faults.get();
    if (plays_ranks(point.engine)) w.replan = replanning(campaign, point);
    if (point.engine == Engine::flow) {
      for (const Fault& f : p.faults->faults)
        for (const Rank r : f.ranks) {
          if (f.kind == FaultKind::straggler) slow(&slowed, {.rank = r, .slowdown = f.amount});
          if (f.kind == FaultKind::late_start) slow(&slowed, {.rank = r, .start_ns = f.at});
        }
    }
  }
  for (const auto& [rank, straggler] : slowed) w.stragglers.push_back(straggler);
  return p;
}

}  // namespace gccl::sim
