#include "sim/fault/faults.hpp"

#include <algorithm>
#include <cmath>

#include "libgccl/base/splitmix.hpp"
#include "sim/fault/virtual_time.hpp"

namespace gccl::sim {
namespace {

constexpr std::string_view kFaultNames[] = {"rank_crash",  "pause",      "node_loss",     "card_loss",
                                            "nic_down",    "link_down",  "link_degraded", "loss",
                                            "duplication", "reordering", "corruption",    "partition",
                                            "switch_loss", "straggler",  "late_start",    "agreement_loss"};
constexpr std::string_view kMomentNames[] = {"operations", "steps", "bytes", "agreements", "epochs"};
constexpr std::string_view kPolicyNames[] = {"fail", "shrink", "spare", "rejoin"};

// Where a stated rule leaves open whom it hits.
void aim(Fault* f, const FaultTargets& targets, Chance* chance) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : std::size_t(chance->from(0, n - 1)); };
  const auto one_of = [&]<class T>(const std::vector<T>& all) { return all.empty() ? T() : all[below(all.size())]; };
  const bool open = f->ranks.empty() && f->link.empty() && !f->place;
  if (!open) return;
  switch (f->kind) {
    case FaultKind::rank_crash:
    case FaultKind::pause:
    case FaultKind::straggler:
    case FaultKind::late_start:
    case FaultKind::partition: f->ranks = {Rank(below(targets.ranks))}; return;
    case FaultKind::node_loss: f->place = one_of(targets.nodes); return;
    case FaultKind::card_loss: f->place = one_of(targets.cards); return;
    case FaultKind::link_degraded:
    case FaultKind::nic_down: f->link = one_of(targets.nics); return;
    case FaultKind::switch_loss: f->link = one_of(targets.switches); return;
    case FaultKind::link_down: {
      const Rank a = Rank(below(targets.ranks)), b = Rank(below(targets.ranks - 1));
      f->ranks = {a, b < a ? b : b + 1};
      return;
    }
    default: return;  // all wires
  }
}

}  // namespace

std::span<const std::string_view> fault_names() { return kFaultNames; }
std::span<const std::string_view> moment_names() { return kMomentNames; }
std::span<const std::string_view> policy_names() { return kPolicyNames; }
std::string_view name(FaultKind kind) { return kFaultNames[std::size_t(kind)]; }

std::vector<Fault> drawn(const std::vector<Fault>& faults, const FaultTargets& targets, std::uint64_t seed) {
  std::vector<Fault> all;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    Fault f = faults[i];
    Chance chance(seed * splitmix::kGolden + i + 1);
    if (!f.drawn()) {
      aim(&f, targets, &chance);
      all.push_back(f);
      continue;
    }
    double at = double(f.at);
    for (;;) {
      const double u = (double(chance.next() >> 11) + 0.5) * 0x1p-53;
      at -= std::log(u) * double(f.every);
      if (at > double(f.until)) break;
      Fault one = f;
      one.at = Nanos(at);
      one.every = one.until = 0;
      aim(&one, targets, &chance);
      all.push_back(one);
    }
  }
  return all;
}

}  // namespace gccl::sim
