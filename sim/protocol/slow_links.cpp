// Ranks find slow links, by the library's rules (libgccl/fault/link_reports.hpp), and plan around them: as members of a
// communicator do (libgccl/communicator/links/link_watch.hpp), with reports that travel over the simulated links.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "sim/protocol/ranks.hpp"

namespace gccl::sim {
namespace {

constexpr std::uint32_t kReportChannel = 0xfffff;  // no collective has so many

DataMessage message_of(const fault::LinkReport& report) {
  DataMessage m{.signature = 0, .bytes = std::vector<std::byte>(sizeof report)};
  std::memcpy(m.bytes.data(), &report, sizeof report);
  return m;
}

fault::LinkReport report_of(const DataMessage& m) {
  fault::LinkReport report;
  std::memcpy(&report, m.bytes.data(), sizeof report);
  return report;
}

bool same(const fault::LinkHealth::Link& a, const fault::LinkHealth::Link& b) {
  return a.from == b.from && a.to == b.to && a.slow == b.slow && a.rate == b.rate && a.expected == b.expected;
}

}  // namespace

// Nobody knows yet what these links reach. No cost model counts as measured on these machines.
void ProtocolRanks::look_at_links(Process& p) {
  const EpochWorld& world = *worlds_.at(p.epoch);
  p.looking.reset();
  if (plan_.recovery.link_slow == 0 || world.members.size() < 2) return;
  p.looking = std::make_unique<Looking>(
      Looking{.reports = {world.rank_of(p.id), Rank(world.members.size()), double(plan_.recovery.link_slow), 0,
                          plan_.recovery.link_avoid, now()},
              .got = {}});
}

bool ProtocolRanks::report_first(Process& p) {
  if (!p.looking) return false;
  Looking& l = *p.looking;
  if (!l.got.empty()) return true;
  if (l.counted > p.next) return false;
  l.counted = p.next + 1;
  const EpochWorld& world = *worlds_.at(p.epoch);
  const SimulatedOperation& o = world.workload.operations[p.next];
  if (!l.reports.due(o.call.kind, o.call.count, o.element_bytes)) return false;
  const fault::LinkReport mine = l.reports.report(arrivals_of(p), now());
  l.got.assign(world.members.size(), std::nullopt);
  l.got[world.rank_of(p.id)] = mine;
  for (const ProcessId& other : world.members)
    if (other != p.id) links_.send(p.id, other, kReportChannel, message_of(mine));
  return !all_reported(p);
}

// Inside a node ranks have shared memory, whose links nobody looks at.
std::vector<fault::Arrivals> ProtocolRanks::arrivals_of(const Process& p) {
  const EpochWorld& world = *worlds_.at(p.epoch);
  const auto node_of = [&](Rank r) { return workload_.cluster->node_of(world.workload.cards[r]); };
  std::vector<fault::Arrivals> all = links_.take_arrivals(p.id, world.members);
  for (Rank r = 0; r < all.size(); ++r)
    if (node_of(r) == node_of(world.rank_of(p.id))) all[r] = {};
  return all;
}

bool ProtocolRanks::of_reports(std::uint32_t channel) { return channel == kReportChannel; }

void ProtocolRanks::report_came(Process& p) {
  if (p.doing != Doing::working || !p.looking || p.looking->got.empty()) return;
  if (all_reported(p)) begin_operation(p.id, p.epoch);
}

// Takes what has come. True: nothing is missing, and all follows from that.
bool ProtocolRanks::all_reported(Process& p) {
  const EpochWorld& world = *worlds_.at(p.epoch);
  Looking& l = *p.looking;
  bool all = true;
  for (std::size_t i = 0; i < l.got.size(); ++i) {
    if (l.got[i]) continue;
    auto& arrived = p.inbox[{world.members[i], kReportChannel}];
    if (arrived.empty()) {
      all = false;
    } else {
      l.got[i] = report_of(arrived.front());
      arrived.pop_front();
    }
  }
  if (all) all_judge(p);
  return all;
}

void ProtocolRanks::all_judge(Process& p) {
  EpochWorld& world = *worlds_.at(p.epoch);
  Looking& l = *p.looking;
  std::vector<fault::LinkReport> reports;
  for (const auto& r : std::exchange(l.got, {})) reports.push_back(*r);
  EpochWorld::Answer mine{.operation = p.next, .changed = l.reports.take(reports), .avoided = l.reports.to_avoid()};
  const bool plans_change = l.reports.plans_change();
  // Nobody has begun this operation: all are at the report before it.
  if (l.answers++ == world.answers.size()) {
    if (plans_change) plan_around(world, p.next, mine.avoided);
    world.answers.push_back(mine);
  }
  EpochWorld::Answer& answer = world.answers[l.answers - 1];
  if (answer.operation != mine.operation || answer.avoided != mine.avoided ||
      !std::ranges::equal(answer.changed, mine.changed, same))
    violation(
        fmt::format("rank {} comes to another answer about links than others before operation {}", p.id.rank, p.next));
  mix(std::uint64_t(now()) ^ answer.changed.size() << 32 ^ answer.avoided.size());
  if (++answer.known == world.members.size()) all_know(world, answer, plans_change);
}

void ProtocolRanks::plan_around(EpochWorld& world, std::size_t next, const std::vector<SlowPair>& pairs) {
  const auto layout = std::make_shared<const Layout>(around(*world.layout, pairs));
  for (std::size_t i = next; i < world.workload.operations.size(); ++i) {
    SimulatedOperation& o = world.workload.operations[i];
    o.layout = layout;
    workload_.replan(std::uint32_t(i), world.workload.cards, pairs, &o);
  }
}

// By the ranks' numbers in the scenario.
void ProtocolRanks::all_know(const EpochWorld& world, const EpochWorld::Answer& answer, bool plans_change) {
  using What = FaultEvent::What;
  const auto number = [&](Rank r) { return world.members[r].rank; };
  for (const auto& l : answer.changed) {
    events_.push_back({.at = now(),
                       .what = l.slow ? What::link_slow : What::link_recovered,
                       .rank = number(l.from),
                       .peer = number(l.to),
                       .rate = l.rate,
                       .expected = l.expected,
                       .operation = answer.operation});
  }
  if (!plans_change) return;
  planned_anew_ = now();
  FaultEvent& e = events_.emplace_back();
  e.at = now();
  e.what = What::planned_around;
  e.operation = answer.operation;
  for (const SlowPair& p : answer.avoided) e.pairs.emplace_back(number(p.a), number(p.b));
}

}  // namespace gccl::sim
