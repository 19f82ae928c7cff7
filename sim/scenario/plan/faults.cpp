#include "sim/scenario/plan/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "libgccl/json/nearest.hpp"
#include "sim/engine/link_names.hpp"
#include "sim/protocol/ranks.hpp"
#include "sim/scenario/judge/check.hpp"
#include "sim/scenario/plan/real.hpp"
#include "sim/scenario/read/faults.hpp"

namespace gccl::sim {
namespace {

// What the flow engine plays: what happens to links and cards, not to processes.
bool of_links(const Fault& f) {
  switch (f.kind) {
    case FaultKind::nic_down:
    case FaultKind::link_degraded:
    case FaultKind::switch_loss: return true;
    case FaultKind::link_down: return f.ranks.empty();
    case FaultKind::straggler: return f.at == 0 && f.lasts == 0 && !f.drawn();
    case FaultKind::pause:
    case FaultKind::late_start: return true;
    default: return false;
  }
}

void check_place(const Fault& f, const json::Node& where, const LinkNames& names) {
  if (f.link.empty()) return;
  const char* const key = where.has("nic") ? "nic" : where.has("switch") ? "switch" : "link";
  const std::vector<std::string> known = where.has("nic")      ? names.nics()
                                         : where.has("switch") ? names.switches()
                                                               : names.names();
  if (std::find(known.begin(), known.end(), f.link) != known.end()) return;
  const std::vector<std::string_view> views(known.begin(), known.end());
  where.at(key).fail(fmt::format("found \"{}\"{}", f.link.substr(0, 60), suggestion(f.link, views)));
}

void check_ranks(const Fault& f, const json::Node& where, const ScenarioRun& run, const SimulatedWorld& world) {
  const Rank n = world.ranks() + run.recovery.spares;
  const auto check = [&](Rank r, const json::Node& at) {
    if (r >= n)
      at.fail(
          fmt::format("found rank {}, expected one below {}{}", r, n, run.recovery.spares ? " (with the spares)" : ""));
  };
  for (const Rank r : f.ranks)
    for (const char* key : {"rank", "ranks", "between"})
      if (const auto at = where.find(key)) check(r, *at);
  if (f.after) check(f.after->rank, where.at("after").at("rank"));
  if (f.kind == FaultKind::node_loss && f.place && *f.place >= world.cluster->nodes())
    where.at("node").fail(fmt::format("found node {}, expected one below {}", *f.place, world.cluster->nodes()));
  if (f.kind == FaultKind::card_loss && f.place && *f.place >= world.cluster->cards())
    where.at("card").fail(fmt::format("found card {}, expected one below {}", *f.place, world.cluster->cards()));
}

void check_protocol(const ScenarioRun& run, const SimulatedWorld& world) {
  const RecoverySettings& s = run.recovery;
  if (world.ranks() > kProtocolRanksMax || s.spares > kProtocolSparesMax)
    run.where.fail(
        fmt::format("engine \"protocol\" plays every frame of at most {} ranks and {} spares, found {} and {}; "
                    "engine \"flow\" plays faults of links and cards at any number",
                    kProtocolRanksMax, kProtocolSparesMax, world.ranks(), s.spares));
  if (world.ranks() + s.spares > world.cluster->cards())
    run.where.fail(fmt::format("{} ranks and {} spares need more cards than the {} of {}", world.ranks(), s.spares,
                               world.cluster->cards(), world.cluster_name));
  if (run.streams.size() > 1) run.where.fail("engine \"protocol\" plays one sequence, found several concurrent ones");
  for (const Task& task : run.streams[0]) {
    if (!task.groups.whole()) task.where.fail("engine \"protocol\" plays collectives of all ranks, found groups");
    if (has_counts(task.kind))
      task.where.fail(
          fmt::format("engine \"protocol\" plays no {}: its counts belong to ranks that may be gone", name(task.kind)));
  }
  if (const std::size_t n = run.streams[0].size() * run.repeats; n > kProtocolOperationsMax)
    run.where.fail(fmt::format("has {} operations, engine \"protocol\" plays at most {}", n, kProtocolOperationsMax));
}

}  // namespace

void check_faults(const ScenarioRun& run, const SimulatedWorld& world, Engine engine,
                  const std::optional<RealMeans>& real) {
  if (engine == Engine::real) check_real_ranks(run, world, real);
  if (plays_ranks(engine)) check_protocol(run, world);
  if (!plays_ranks(engine) && run.recovery.link_slow > 0)
    run.where.at("recovery")
        .at("link_slow")
        .fail(
            fmt::format("engine \"{}\" plays no ranks that look for slow links, expected \"protocol\"", name(engine)));
  if (!plays_ranks(engine) && run.recovery.heal > 0)
    run.where.at("recovery")
        .at("heal_us")
        .fail(fmt::format("engine \"{}\" ends no faults together; state \"for_us\" of each, or take \"protocol\"",
                          name(engine)));
  if (!plays_ranks(engine) && run.recovery.spares > 0)
    run.where.at("recovery")
        .at("spares")
        .fail(fmt::format("engine \"{}\" has no spares, as none of its ranks fails; expected \"protocol\"",
                          name(engine)));
  if (!plays_ranks(engine) && run.compute > 0)
    run.where.at("compute_us")
        .fail(fmt::format("engine \"{}\" plays no computing, expected \"protocol\"", name(engine)));
  if (run.faults.empty()) return;
  if (!plays_ranks(engine) && engine != Engine::flow)
    run.where.at("faults").fail(
        fmt::format("engine \"{}\" knows no faults, expected \"protocol\" or \"flow\"", name(engine)));
  const LinkNames names(*world.cluster);
  for (const auto& [f, where] : run.faults) {
    check_ranks(f, where, run, world);
    check_place(f, where, names);
    if (f.drawn() && f.link.empty() && f.ranks.empty() && !f.place) {
      const bool nics = f.kind == FaultKind::nic_down || f.kind == FaultKind::link_degraded;
      if ((nics && names.nics().empty()) || (f.kind == FaultKind::switch_loss && names.switches().empty()))
        where.fail(fmt::format("{} has none to draw from", world.cluster_name));
      if (f.kind == FaultKind::link_down && world.ranks() < 2) where.fail("needs two ranks");
    }
    if (engine == Engine::real) check_real_fault(f, where, run, world, *real);
    if (engine != Engine::flow) continue;
    if (!of_links(f))
      where.fail(fmt::format(
          "engine \"flow\" plays {} of links and cards for good or for a time, not this {}; take engine \"protocol\"",
          "faults", name(f.kind)));
    if (f.after) where.at("after").fail("engine \"flow\" knows times alone; take \"at_us\", or engine \"protocol\"");
  }
}

void check_expected_ranks(const ScenarioRun& run, const SimulatedWorld& world, Engine engine, bool alone) {
  const RunRanks ranks{
      .engine = engine, .cluster = *world.cluster, .cards = world.cards, .spares = run.recovery.spares, .alone = alone};
  for (const Expectation& e : run.expectations)
    if (e.check->match && e.selects(world.cluster_name, name(engine), world.ranks())) e.check->match(e, ranks);
}

FaultPlan fault_plan(const ScenarioRun& run, const SimulatedWorld& world, std::uint64_t seed) {
  FaultTargets targets{.ranks = world.ranks(), .cards = world.cards, .nodes = {}, .nics = {}, .switches = {}};
  std::vector<Fault> stated;
  bool draws = false;
  for (const auto& [f, where] : run.faults) {
    stated.push_back(f);
    draws = draws || f.drawn();
  }
  if (draws) {
    const LinkNames names(*world.cluster);
    targets.switches = names.switches();
    std::vector<bool> used(world.cluster->nodes(), false);
    for (const Card c : world.cards) used[world.cluster->node_of(c)] = true;
    for (std::uint32_t node = 0; node < used.size(); ++node)
      if (used[node]) targets.nodes.push_back(node);
    for (const std::string& nic : names.nics())
      if (const auto node = LinkNames::node_of(nic); node && *node < used.size() && used[*node])
        targets.nics.push_back(nic);
  }
  return {.faults = drawn(stated, targets, seed), .recovery = run.recovery, .compute = run.compute};
}

nlohmann::json faults_json(const FaultPlan& plan) {
  nlohmann::json all = nlohmann::json::array();
  for (const Fault& f : plan.faults) all.push_back(fault_json(f));
  return all;
}

}  // namespace gccl::sim
