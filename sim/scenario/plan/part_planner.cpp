#include "sim/scenario/plan/part_planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libgccl/algorithms/parts/root_order.hpp"
#include "libgccl/base/counted.hpp"
#include "libgccl/cluster/read/nccl_settings.hpp"
#include "libgccl/json/nearest.hpp"
#include "sim/scenario/plan/estimate.hpp"
#include "sim/scenario/read/sizes.hpp"

namespace gccl::sim {
namespace {

constexpr double kPlannedMessagesMax = 6e6;

}  // namespace

Communicators PartPlanner::communicators_of(const Task& task, std::size_t w) {
  Communicators& all = communicators_[{&task, w}];
  if (all) return all;
  auto cut = communicators(task.groups, *world(w).cluster, world(w).cards);
  for (const SimulatedCommunicator& c : cut)
    if (task.root >= c.ranks())
      task.where.at("root").fail(
          fmt::format("found rank {}, but the communicator has only {}", task.root, counted(c.ranks(), "rank")));
  if (!slow_.empty())
    for (SimulatedCommunicator& c : cut) c.layout = std::make_shared<const Layout>(around(*c.layout, slow_));
  return all = std::make_shared<const std::vector<SimulatedCommunicator>>(std::move(cut));
}

std::vector<const SimulatedCommunicator*> PartPlanner::firsts(const Part& part) {
  std::vector<const SimulatedCommunicator*> all;
  for (const SimulatedCommunicator& c : *part.communicators)
    if (c.shape == all.size()) all.push_back(&c);
  return all;
}

std::vector<Card> PartPlanner::cards_of(const SimulatedCommunicator& c, std::size_t w) const {
  std::vector<Card> cards(c.ranks());
  for (Rank r = 0; r < c.ranks(); ++r) cards[r] = world(w).cards[c.world(r)];
  return cards;
}

const PartPlanner::Basis& PartPlanner::basis_of(const Part& part, const SimulatedCommunicator& c, std::size_t w) {
  const Basis*& known = basis_of_shape_[{part.task, w, c.shape}];
  if (known) return *known;
  const unsigned each = size_of(part.task->dtype);
  const std::vector<Card> cards = cards_of(c, w);
  const std::vector<Rank> order =
      order_from_root({.kind = part.task->kind, .root = part.task->root}, c.layout->view(0));
  const Rank from = order.empty() ? 0 : part.task->root + 1;
  const bool blocks = !order.empty() && counts_blocks(part.task->kind);
  const auto [at, fresh] = bases_.try_emplace({w, each, cards, from, blocks});
  Basis& basis = at->second;
  known = &basis;
  if (!fresh) return basis;
  const Cluster& cluster = *world(w).cluster;
  static_cast<PlannedBy&>(basis) = planned_by(cluster, cards, each, order);
  basis.authorities = campaign_.authorities.on(c.ranks(), c.layout->view(0).nodes);
  if (cluster.backends().empty()) basis.tuning.channels_limit = kLanesMax;  // else it is that of real communicators
  return basis;
}

std::pair<std::size_t, std::size_t> PartPlanner::protocols_of(const Part& part, const SimulatedCommunicator& c,
                                                              std::size_t w) const {
  const Protocols& all = world(w).cluster->protocols();
  const std::string& asked = part.task->protocol;
  if (asked.empty() && !part.others.empty())
    for (std::size_t i = 0; i < all.size(); ++i)
      if (const auto& chosen = part.others[c.shape].protocol; !chosen.empty() && all[i].name == chosen) return {i, 1};
  if (asked.empty()) return {0, all.size()};
  const bool crosses = c.layout->view(0).nodes > 1;
  std::vector<std::string_view> names{"auto"};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool serves = all[i].between_nodes || !crosses;
    if (all[i].name == asked && serves) return {i, 1};
    if (!all[i].name.empty() && serves) names.push_back(all[i].name);
  }
  const bool known = std::ranges::count(all, asked, &Protocol::name) > 0;
  const std::string& in = world(w).cluster_name;
  const std::string what =
      known ? fmt::format("\"{}\" is for calls inside one node (its \"network\" is false in {})", asked, in)
            : fmt::format("{} has no protocol \"{}\"", in, asked.substr(0, 60));
  part.task->where.at("protocol").fail(what + suggestion(asked, names));
}

Plan PartPlanner::plan_for(const Part& part, const Algorithm& a, const SimulatedCommunicator& c, std::size_t w) {
  const Basis& basis = basis_of(part, c, w);
  const auto [first, number] = protocols_of(part, c, w);
  const Asked asked(part, c, campaign_.seed);
  Plan p = plan_of(a, asked.call, asked.view, CostModels(basis.models).subspan(first, number), basis.tuning,
                   chunks_max(part, asked, c), stated_slicing(part));
  p.protocol += first;
  return p;
}

std::optional<Slicing> PartPlanner::stated_slicing(const Part& part) {
  if (!part.task->slicing && part.task->planner == PlannerKind::openmpi)
    return Slicing{};  // its rules ask for no segments
  return part.task->slicing;
}

ChunksMax PartPlanner::chunks_max(const Part& part, const Asked& asked, const SimulatedCommunicator& c) {
  return [&](const Algorithm& a) {
    double each = estimated_work(a, asked.call, *c.layout, 1).messages * double(part.communicators->size());
    if (a.staggered) each *= 1.5;  // two shares in a channel become three
    return Count(std::clamp(kPlannedMessagesMax / std::max(each, 1.0), 1.0, double(kChunksMax)));
  };
}

bool PartPlanner::fits(const Part& part, const Algorithm& a) const {
  return std::all_of(part.communicators->begin(), part.communicators->end(), [&](const SimulatedCommunicator& c) {
    const CountTable table = count_table(*part.task, part.bytes, c.ranks(), campaign_.seed);
    return a.can(call_of(*part.task, part.bytes, c.ranks(), &table), c.layout->view(0));
  });
}

bool PartPlanner::switches_sum(const Part& part, const SimulatedCommunicator& c, std::size_t w) {
  const auto [first, number] = protocols_of(part, c, w);
  return by_switches(CostModels(basis_of(part, c, w).models).subspan(first, number));
}

bool PartPlanner::suits(const Part& part, const Algorithm& a, std::size_t w) {
  return !a.in_switch ||
         std::ranges::all_of(firsts(part), [&](const SimulatedCommunicator* c) { return switches_sum(part, *c, w); });
}

bool PartPlanner::in_vain(const Part& part, const Algorithm& a, std::size_t w) {
  return a.in_switch && std::ranges::any_of(firsts(part), [&](const SimulatedCommunicator* c) {
           return basis_of(part, *c, w).models[0].node_switch.has_value() && !switches_sum(part, *c, w);
         });
}

OtherChoice PartPlanner::other_choice(const Part& part, const SimulatedCommunicator& c, const Asked& asked,
                                      std::size_t w) const {
  const double each = size_of(part.task->dtype);
  if (part.task->planner == PlannerKind::openmpi) return openmpi_choice(asked.call, asked.view, each);
  const auto machine = nccl_machine(*world(w).cluster, cards_of(c, w));
  if (!machine)
    part.task->where.fail(
        fmt::format("planner \"nccl\": the parameters of {} have no \"nccl\" object that says "
                    "which architecture its cards are of",
                    world(w).cluster_name));
  return nccl_choice(asked.call, asked.view, each, *machine);
}

PartPlanner::Chosen PartPlanner::choose(const Part& part, std::size_t w) {
  Chosen all;
  Algorithms& chosen = all.algorithms;
  for (const SimulatedCommunicator* c : firsts(part)) {
    const Asked asked(part, *c, campaign_.seed);
    if (part.task->planner != PlannerKind::gccl) {
      all.others.push_back(other_choice(part, *c, asked, w));
      if (all.others.back().algorithm) {
        chosen.push_back(all.others.back().algorithm);
        all.plans.emplace_back();
        continue;
      }
    }
    const Basis& basis = basis_of(part, *c, w);
    const auto [first, number] = protocols_of(part, *c, w);
    const Detours detours(*c->layout, slow_);
    all.plans.push_back(gccl::plan(asked.call, asked.view, CostModels(basis.models).subspan(first, number),
                                   basis.tuning, basis.authorities, algorithms(), chunks_max(part, asked, *c), &detours,
                                   stated_slicing(part)));
    Plan& plan = all.plans.back();
    plan.protocol += first;
    chosen.push_back(plan.algorithm);
    if (!chosen.back())
      part.task->where.fail(
          fmt::format("no algorithm can serve this {} on {}", name(part.task->kind), counted(c->ranks(), "rank")));
  }
  return all;
}

std::pair<std::vector<PartPlanner::Algorithms>, PartPlanner::Chosen> PartPlanner::candidates(const Part& part,
                                                                                             std::size_t w) {
  const Candidates& asked = part.task->algorithms;
  const std::size_t shapes = firsts(part).size();
  std::vector<Algorithms> list;
  const auto append = [&](Algorithms a) {
    if (std::find(list.begin(), list.end(), a) == list.end()) list.push_back(std::move(a));
  };
  if (asked.all)
    for (const Algorithm& a : algorithms())
      if (a.kind == part.task->kind && !a.variant && fits(part, a) && suits(part, a, w)) append(Algorithms(shapes, &a));
  for (const auto& [a, where] : asked.named) {
    if (!fits(part, *a))
      where.fail(fmt::format("\"{}\" cannot serve this {} on {} of {}", a->name, name(part.task->kind),
                             counted(part.largest().ranks(), "rank"), world(w).cluster_name));
    if (const std::string& p = part.task->protocol; !p.empty() && in_vain(part, *a, w))
      where.fail(
          fmt::format("\"{}\" leaves summing to switches, which do not sum by protocol \"{}\" (its "
                      "\"in_switch\" is false); expected another protocol, or \"auto\"",
                      a->name, p));
    append(Algorithms(shapes, a));
  }
  Chosen chosen;
  if (asked.automatic) append((chosen = choose(part, w)).algorithms);
  if (list.empty()) part.task->where.fail(fmt::format("no algorithm can serve this {}", name(part.task->kind)));
  return {std::move(list), std::move(chosen)};
}

void PartPlanner::set_plans(Part& part, const Algorithms& by_shape, const Chosen& chosen, std::size_t w) {
  part.plans.clear();
  for (const SimulatedCommunicator* c : firsts(part)) {
    const std::size_t shape = part.plans.size();
    const Plan* const planned = by_shape == chosen.algorithms ? &chosen.plans[shape] : nullptr;
    if (planned && planned->entry && !part.task->slicing) {
      part.plans.push_back(*planned);
      continue;
    }
    part.plans.push_back(plan_for(part, *by_shape[shape], *c, w));
    if (planned) part.plans.back().by = planned->by;
  }
  part.sliced = !part.task->slicing;
}

double PartPlanner::predicted_us(const Part& part, std::size_t w) {
  double longest = 0;
  for (const SimulatedCommunicator* c : firsts(part)) {
    const Asked asked(part, *c, campaign_.seed);
    const Plan& plan = part.plan(*c);
    const Basis& basis = basis_of(part, *c, w);
    const CostModel& costs = basis.models[plan.protocol];
    const bool empty = has_counts(asked.call.kind) && part.bytes == 0;
    const double extra = operation_ns(*world(w).cluster, part, *c) - costs.protocol.operation_ns;
    const double us = ((empty ? costs.protocol.operation_ns
                              : predicted(*plan.algorithm, asked.call, asked.view, costs, plan.slicing, basis.tuning)) +
                       extra) /
                      1e3;
    if (us > longest || std::isnan(us)) longest = us;
  }
  return longest;
}

Plan PartPlanner::plan_of_part(const Task& task, Count bytes, const Algorithm* stated) {
  Part part{.task = &task, .bytes = bytes, .communicators = communicators_of(task, 0), .plans = {}};
  Algorithms algorithms{stated};
  Chosen chosen;
  if (!stated || !fits(part, *stated)) algorithms = (chosen = choose(part, 0)).algorithms;
  part.others = chosen.others;
  set_plans(part, algorithms, chosen, 0);
  return part.plan();
}

}  // namespace gccl::sim
