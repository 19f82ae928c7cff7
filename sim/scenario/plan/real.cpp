#include "sim/scenario/plan/real.hpp"

#include <fmt/format.h>

#include <map>

#include "sim/scenario/judge/check.hpp"

namespace gccl::sim {
namespace {

// What happens between ranks rather than to one of them.
bool needs_network(const Fault& f) {
  switch (f.kind) {
    case FaultKind::rank_crash:
    case FaultKind::pause:
    case FaultKind::node_loss:
    case FaultKind::card_loss:
    case FaultKind::straggler:
    case FaultKind::late_start: return false;
    default: return true;
  }
}

// Silence of 0.3 of the detection time may count as a failure (docs/faults.md).
bool may_be_taken_for_dead(Nanos silent, const RecoverySettings& s) { return silent * 10 >= s.detection * 3; }

}  // namespace

void check_real_ranks(const ScenarioRun& run, const SimulatedWorld& world, const std::optional<RealMeans>& real) {
  if (!real) run.where.fail("engine \"real\" starts ranks on this machine, which gccl run alone does with scenarios");
  if (!real->obstacle.empty())
    run.where.fail(
        fmt::format("cannot be inflicted here with --namespaces: {}; leave that out, or take the engine "
                    "\"protocol\"",
                    real->obstacle));
  if (world.ranks() > kRealRanksMax)
    run.where.fail(
        fmt::format("engine \"real\" starts at most {} ranks on this machine, found {}; state fewer \"ranks\", "
                    "or take the engine \"flow\"",
                    kRealRanksMax, world.ranks()));
  if (!run.stragglers.empty())
    run.where.at("stragglers").fail("engine \"real\" takes them as \"faults\": straggler and late_start");
  for (const auto& stream : run.streams)
    for (const Task& task : stream) {
      if (task.in_place) task.where.at("in_place").fail("engine \"real\" plays two buffers alone, expected false");
      if (task.kind == Collective::sendrecv)
        task.where.at("collective").fail("engine \"real\" plays no sendrecv; alltoall is nearest");
      for (const char* key : {"channels", "lanes", "window"})
        if (const auto stated = task.where.find(key))
          stated->fail("engine \"real\": ranks plan it by themselves; expected none stated");
      if (!task.protocol.empty())
        task.where.at("protocol")
            .fail(fmt::format("found \"{}\", which is the cluster's: real ranks have none; expected \"auto\"",
                              task.protocol));
    }
}

void check_real_algorithms(const Point& point) {
  std::map<Collective, const Algorithm*> all;
  for (const auto& stream : point.streams)
    for (const Part& part : stream) {
      const auto [at, fresh] = all.try_emplace(part.task->kind, part.plan().algorithm);
      if (at->second != part.plan().algorithm)
        part.task->where.fail(
            fmt::format("engine \"real\" plays one algorithm for each collective, found \"{}\" for {} here and \"{}\" "
                        "before; expected the same \"algorithm\" stated for all",
                        part.plan().algorithm->name, name(part.task->kind), at->second->name));
    }
}

void check_real_fault(const Fault& f, const json::Node& where, const ScenarioRun& run, const SimulatedWorld& world,
                      const RealMeans& real) {
  if (f.after && f.after->rank >= world.ranks())
    where.at("after").at("rank").fail(fmt::format(
        "found rank {}, a spare, of which nobody knows where it begins; expected one below {}, or \"at_us\"",
        f.after->rank, world.ranks()));
  if (needs_network(f)) {
    const auto refuse = [&](const std::string& why) {
      where.fail(fmt::format("{} cannot be inflicted {}", name(f.kind), why));
    };
    if (real.shm) refuse("on shared memory; take --transport tcp --namespaces");
    if (run.recovery.system_reports)
      refuse("where \"system_reports\", which makes all ranks one machine; leave that out");
    if (!real.namespaces) refuse("without a network between the ranks; take --namespaces");
    return;
  }
  if (f.kind == FaultKind::pause && may_be_taken_for_dead(f.lasts, run.recovery) &&
      (!real.namespaces || run.recovery.system_reports))
    where.fail(fmt::format(
        "a stop of 0.3 of the detection time or more: ranks of one machine are not called failed while their "
        "processes live; {}",
        run.recovery.system_reports ? "leave out \"system_reports\" and take --namespaces"
                                    : "take --transport tcp --namespaces"));
  if (f.kind == FaultKind::late_start && may_be_taken_for_dead(f.at, run.recovery))
    where.fail(
        "a start 0.3 of the detection time or more after the others: real ranks wait for one that nobody has heard "
        "yet, and simulated ones call it failed; expected an earlier one, or a longer \"detection_us\"");
}

std::size_t leave_out_virtual_times(ScenarioRun* run) {
  return std::erase_if(run->expectations, [](const Expectation& e) { return e.check->virtual_time; });
}

}  // namespace gccl::sim
