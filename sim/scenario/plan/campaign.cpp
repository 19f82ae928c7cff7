#include "sim/scenario/plan/campaign.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "libgccl/algorithms/parts/root_order.hpp"
#include "libgccl/base/counted.hpp"
#include "libgccl/cluster/cost_stairs.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "libgccl/cluster/read/load_authorities.hpp"
#include "libgccl/cluster/read/nccl_settings.hpp"
#include "libgccl/json/nearest.hpp"
#include "sim/scenario/plan/estimate.hpp"
#include "sim/scenario/plan/faults.hpp"
#include "sim/scenario/plan/real.hpp"
#include "sim/scenario/plan/worlds.hpp"
#include "sim/scenario/read/sizes.hpp"

namespace gccl::sim {
namespace {

constexpr double kPlannedMessagesMax = 6e6;

// Builds the points of one scenario.
class Planner {
 public:
  // Calls are planned around slow links between these ranks of the campaign's worlds.
  Planner(Campaign& campaign, const std::optional<RealMeans>& real, std::vector<SlowPair> slow = {})
      : campaign_(campaign), real_(real), slow_(std::move(slow)) {}

  void add(std::size_t run_index) {
    const ScenarioRun& run = campaign_.scenario->runs[run_index];
    const std::size_t before = campaign_.points.size();
    for (std::size_t w = 0; w < campaign_.worlds.size(); ++w) {
      check_stragglers(run, w);
      for (const Engine engine : run.engines) {
        check_faults(run, world(w), engine, real_);
        check_expected_ranks(run, world(w), engine, campaign_.worlds.size() == 1);
        if (run.kind == ScenarioRun::Kind::collective)
          add_collective(run, run_index, w, engine);
        else
          add_streams(run, run_index, w, engine);
      }
    }
    for (std::size_t i = before; i < campaign_.points.size(); ++i) messages_ += campaign_.points[i].messages;
    if (messages_ > kMessagesTotalMax)
      run.where.fail(
          fmt::format("the scenario would send about {:.2g} messages by this run, more than {:.0g}; leave out "
                      "sizes or algorithms",
                      messages_, kMessagesTotalMax));
  }

  // Of one part alone, on the campaign's first world. Null: the planner chooses.
  Plan plan_of_part(const Task& task, Count bytes, const Algorithm* stated) {
    Part part{.task = &task, .bytes = bytes, .communicators = communicators_of(task, 0), .plans = {}};
    Algorithms algorithms{stated};
    Chosen chosen;
    if (!stated || !fits(part, *stated)) algorithms = (chosen = choose(part, 0)).algorithms;
    part.others = chosen.others;
    set_plans(part, algorithms, chosen, 0);
    return part.plan();
  }

 private:
  const SimulatedWorld& world(std::size_t w) const { return campaign_.worlds[w]; }

  void check_stragglers(const ScenarioRun& run, std::size_t w) const {
    for (const auto& [s, where] : run.stragglers)
      if (s.rank >= world(w).ranks())
        where.fail(fmt::format("found rank {}, expected one below {}", s.rank, world(w).ranks()));
  }

  Communicators communicators_of(const Task& task, std::size_t w) {
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

  // The first communicator of each shape.
  static std::vector<const SimulatedCommunicator*> firsts(const Part& part) {
    std::vector<const SimulatedCommunicator*> all;
    for (const SimulatedCommunicator& c : *part.communicators)
      if (c.shape == all.size()) all.push_back(&c);
    return all;
  }

  // A call on one communicator, as the planner sees it.
  struct Asked {
    CountTable table;
    Call call;
    View view;
    Asked(const Part& part, const SimulatedCommunicator& c, std::uint64_t seed)
        : table(count_table(*part.task, part.bytes, c.ranks(), seed)),
          call(call_of(*part.task, part.bytes, c.ranks(), &table)),
          view(c.layout->view(0)) {}
    Asked(const Asked&) = delete;
  };

  struct Basis : PlannedBy {
    Authorities authorities;
  };
  std::vector<Card> cards_of(const SimulatedCommunicator& c, std::size_t w) const {
    std::vector<Card> cards(c.ranks());
    for (Rank r = 0; r < c.ranks(); ++r) cards[r] = world(w).cards[c.world(r)];
    return cards;
  }
  const Basis& basis_of(const Part& part, const SimulatedCommunicator& c, std::size_t w) {
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

  // Those of the cluster's protocols that a task may use: [first, first + number). Where NCCL's model chose one that
  // the cluster has, it is that.
  std::pair<std::size_t, std::size_t> protocols_of(const Part& part, const SimulatedCommunicator& c,
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

  // As stated, or as the planner has it. What would send more than kPlannedMessagesMax messages is not planned so
  // finely.
  Plan plan_for(const Part& part, const Algorithm& a, const SimulatedCommunicator& c, std::size_t w) {
    const Basis& basis = basis_of(part, c, w);
    const auto [first, number] = protocols_of(part, c, w);
    const Asked asked(part, c, campaign_.seed);
    Plan p = plan_of(a, asked.call, asked.view, CostModels(basis.models).subspan(first, number), basis.tuning,
                     chunks_max(part, asked, c), stated_slicing(part));
    p.protocol += first;
    return p;
  }
  static std::optional<Slicing> stated_slicing(const Part& part) {
    if (!part.task->slicing && part.task->planner == PlannerKind::openmpi)
      return Slicing{};  // its rules ask for no segments
    return part.task->slicing;
  }
  static ChunksMax chunks_max(const Part& part, const Asked& asked, const SimulatedCommunicator& c) {
    return [&](const Algorithm& a) {
      double each = estimated_work(a, asked.call, *c.layout, 1).messages * double(part.communicators->size());
      if (a.staggered) each *= 1.5;  // two shares in a channel become three
      return Count(std::clamp(kPlannedMessagesMax / std::max(each, 1.0), 1.0, double(kChunksMax)));
    };
  }

  bool fits(const Part& part, const Algorithm& a) const {
    return std::all_of(part.communicators->begin(), part.communicators->end(), [&](const SimulatedCommunicator& c) {
      const CountTable table = count_table(*part.task, part.bytes, c.ranks(), campaign_.seed);
      return a.can(call_of(*part.task, part.bytes, c.ranks(), &table), c.layout->view(0));
    });
  }

  // Whether there are switches that sum, by a protocol that may be used.
  bool switches_sum(const Part& part, const SimulatedCommunicator& c, std::size_t w) {
    const auto [first, number] = protocols_of(part, c, w);
    return by_switches(CostModels(basis_of(part, c, w).models).subspan(first, number));
  }

  // An algorithm with steps for switches is part of "all" where there are such switches, and a protocol that they take.
  bool suits(const Part& part, const Algorithm& a, std::size_t w) {
    return !a.in_switch ||
           std::ranges::all_of(firsts(part), [&](const SimulatedCommunicator* c) { return switches_sum(part, *c, w); });
  }

  // Whether it is for switches that there are, and no protocol that may be used is.
  bool in_vain(const Part& part, const Algorithm& a, std::size_t w) {
    return a.in_switch && std::ranges::any_of(firsts(part), [&](const SimulatedCommunicator* c) {
             return basis_of(part, *c, w).models[0].node_switch.has_value() && !switches_sum(part, *c, w);
           });
  }

  // An algorithm for each shape of communicator.
  using Algorithms = std::vector<const Algorithm*>;

  struct Chosen {
    Algorithms algorithms;
    std::vector<OtherChoice> others;  // see Part
    std::vector<Plan> plans;          // GCCL's planner's; none where another library's rules chose
  };

  OtherChoice other_choice(const Part& part, const SimulatedCommunicator& c, const Asked& asked, std::size_t w) const {
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

  // The planner's choice for each.
  Chosen choose(const Part& part, std::size_t w) {
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
                                     basis.tuning, basis.authorities, algorithms(), chunks_max(part, asked, *c),
                                     &detours, stated_slicing(part)));
      Plan& plan = all.plans.back();
      plan.protocol += first;
      chosen.push_back(plan.algorithm);
      if (!chosen.back())
        part.task->where.fail(
            fmt::format("no algorithm can serve this {} on {}", name(part.task->kind), counted(c->ranks(), "rank")));
    }
    return all;
  }

  // The algorithms of a single collective in the order of the results, and the planner's choice among them.
  std::pair<std::vector<Algorithms>, Chosen> candidates(const Part& part, std::size_t w) {
    const Candidates& asked = part.task->algorithms;
    const std::size_t shapes = firsts(part).size();
    std::vector<Algorithms> list;
    const auto append = [&](Algorithms a) {
      if (std::find(list.begin(), list.end(), a) == list.end()) list.push_back(std::move(a));
    };
    if (asked.all)
      for (const Algorithm& a : algorithms())
        if (a.kind == part.task->kind && !a.variant && fits(part, a) && suits(part, a, w))
          append(Algorithms(shapes, &a));
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

  // Fills in how each shape of communicator carries the part out. A table also says how calls are cut up.
  void set_plans(Part& part, const Algorithms& by_shape, const Chosen& chosen, std::size_t w) {
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

  void add_collective(const ScenarioRun& run, std::size_t run_index, std::size_t w, Engine engine) {
    const Task& task = run.task();
    Part part{.task = &task, .communicators = communicators_of(task, w), .plans = {}};
    // Elements on each communicator -> the points of that size, [first, end).
    std::map<std::vector<Count>, std::pair<std::size_t, std::size_t>> seen;
    for (const Count bytes : task.bytes) {
      part.bytes = bytes;
      std::vector<Count> counts;
      for (const SimulatedCommunicator& c : *part.communicators)
        counts.push_back(elements(task.kind, bytes, c.ranks(), size_of(task.dtype)));
      const auto [same, fresh] = seen.try_emplace(std::move(counts), campaign_.points.size(), campaign_.points.size());
      if (!fresh) {  // rounds to the same elements
        for (std::size_t i = same->second.first; i < same->second.second; ++i)
          campaign_.points[i].asked.push_back(bytes);
        continue;
      }
      part.others.clear();
      const auto [list, chosen] = candidates(part, w);
      for (const Algorithms& a : list) {
        part.others = a == chosen.algorithms ? chosen.others : std::vector<OtherChoice>{};
        set_plans(part, a, chosen, w);
        append({.run = run_index,
                .world = w,
                .engine = engine,
                .streams = {{part}},
                .asked = {bytes},
                .automatic = a == chosen.algorithms,
                .predicted_us = {}});
      }
      same->second.second = campaign_.points.size();
    }
  }

  void add_streams(const ScenarioRun& run, std::size_t run_index, std::size_t w, Engine engine) {
    Point point{.run = run_index, .world = w, .engine = engine, .streams = {}, .asked = {}, .predicted_us = {}};
    for (const auto& tasks : run.streams) {
      auto& stream = point.streams.emplace_back();
      for (const Task& task : tasks) {
        Part part{.task = &task,
                  .bytes = task.bytes[0],
                  .communicators = communicators_of(task, w),
                  .plans = {},
                  .others = {}};
        const auto [list, chosen] = candidates(part, w);
        part.others = chosen.others;
        set_plans(part, list[0], chosen, w);
        stream.push_back(std::move(part));
      }
    }
    append(std::move(point));
  }

  // The closed form of one part with its chunks: the longest of its communicators; NaN where an algorithm has none.
  // Without elements no block is sent, which forms do not look at; the call's own cost is left.
  double predicted_us(const Part& part, std::size_t w) {
    double longest = 0;
    for (const SimulatedCommunicator* c : firsts(part)) {
      const Asked asked(part, *c, campaign_.seed);
      const Plan& plan = part.plan(*c);
      const Basis& basis = basis_of(part, *c, w);
      const CostModel& costs = basis.models[plan.protocol];
      const bool empty = asked.call.count == 0 && asked.call.kind != Collective::barrier;
      const double extra = operation_ns(*world(w).cluster, part, *c) - costs.protocol.operation_ns;
      const double us =
          ((empty ? costs.protocol.operation_ns
                  : predicted(*plan.algorithm, asked.call, asked.view, costs, plan.slicing, basis.tuning)) +
           extra) /
          1e3;
      if (us > longest || std::isnan(us)) longest = us;
    }
    return longest;
  }

  // Adds what the part's communicators do in all repetitions, each like the first of its shape.
  static void add_work(const Part& part, unsigned repeats, Point& point, double& lanes, std::uint64_t seed) {
    const auto first = firsts(part);
    std::vector<double> count(first.size(), 0);
    for (const SimulatedCommunicator& c : *part.communicators) count[c.shape] += repeats;
    for (const SimulatedCommunicator* c : first) {
      const Plan& plan = part.plan(*c);
      const EstimatedWork work = estimated_work(*plan.algorithm, Asked(part, *c, seed).call, *c->layout,
                                                plan.slicing.shares, plan.slicing.lanes);
      point.messages += work.messages * count[c->shape];
      point.steps += work.steps * count[c->shape];
      lanes += count[c->shape] * c->ranks() * double(plan.slicing.lanes);
    }
  }

  void append(Point point) {
    const ScenarioRun& run = campaign_.scenario->runs[point.run];
    if (campaign_.points.size() == kPointsMax)
      run.where.fail(fmt::format("the scenario has more than {} points to simulate", kPointsMax));
    double lanes = 0, longest_us = 0;
    for (const auto& stream : point.streams) {
      double stream_us = 0;
      for (const Part& part : stream) {
        stream_us += predicted_us(part, point.world);
        add_work(part, run.repeats, point, lanes, campaign_.seed);
        if (run.payload) check_payload(part, std::ranges::any_of(run.engines, plays_ranks));
      }
      longest_us = stream_us > longest_us || std::isnan(stream_us) ? stream_us : longest_us;
    }
    if (!std::isnan(longest_us)) point.predicted_us = longest_us;
    const std::string what = fmt::format("{} of {}{}", point.part().algorithm(), json::format_bytes(point.part().bytes),
                                         run.repeats > 1 ? fmt::format(", done {} times,", run.repeats) : "");
    if (point.messages > kMessagesMax)
      run.where.fail(
          fmt::format("{} would send about {:.2g} messages, more than {:.0g}", what, point.messages, kMessagesMax));
    if (point.steps > kStepsMax)
      run.where.fail(fmt::format("{} would take about {:.2g} steps, more than {:.0g}", what, point.steps, kStepsMax));
    if (lanes > kLanesTotalMax)
      run.where.fail(fmt::format("{} would need about {:.2g} channels of its ranks, more than {:.2g}", what, lanes,
                                 kLanesTotalMax));
    campaign_.points.push_back(std::move(point));
  }

  void check_payload(const Part& part, bool always) const {
    double held = 0;
    for (const SimulatedCommunicator& c : *part.communicators) {
      const double n = c.ranks(),
                   count = double(elements(part.task->kind, part.bytes, c.ranks(), size_of(part.task->dtype)));
      const auto all = [&](const Held& h) {
        if (h.extent == Extent::none) return 0.0;
        return (h.at_root ? 1 : n) * (h.extent == Extent::every ? n : 1) * count;
      };
      held += all(definition(part.task->kind).input) + all(definition(part.task->kind).output);
    }
    if (held > kPayloadElementsMax)
      part.task->where.fail(
          fmt::format("checking the payload of {} would hold about {:.2g} elements, more than {:.2g}; take smaller "
                      "sizes{}",
                      json::format_bytes(part.bytes), held, kPayloadElementsMax,
                      always ? " or another engine: this one always checks" : " or \"payload\": \"none\""));
  }

  Campaign& campaign_;
  const std::optional<RealMeans>& real_;
  const std::vector<SlowPair> slow_;
  double messages_ = 0;
  std::map<std::pair<const Task*, std::size_t>, Communicators> communicators_;
  // By world, bytes of an element, cards, root if their order depends on it, and whether it is that of blocks: tasks
  // that are alike share a cost model, which may take a second to make.
  std::map<std::tuple<std::size_t, unsigned, std::vector<Card>, Rank, bool>, Basis> bases_;
  std::map<std::tuple<const Task*, std::size_t, std::size_t>, const Basis*> basis_of_shape_;  // task, world, shape
};

}  // namespace

const SimulatedCommunicator& Part::largest() const {
  return *std::max_element(
      communicators->begin(), communicators->end(),
      [](const SimulatedCommunicator& a, const SimulatedCommunicator& b) { return a.ranks() < b.ranks(); });
}

std::string Part::algorithm() const {
  std::vector<std::string_view> names{plan().algorithm->name};
  for (const Plan& p : plans)
    if (std::find(names.begin(), names.end(), p.algorithm->name) == names.end()) names.push_back(p.algorithm->name);
  return fmt::format("{}", fmt::join(names, " + "));
}

CountTable count_table(const Task& task, Count bytes, Rank ranks, std::uint64_t seed) {
  const bool symmetric = task.in_place && task.kind == Collective::alltoallv;
  return {task.counts, elements(task.kind, bytes, ranks, size_of(task.dtype)), ranks, symmetric, seed};
}

Call call_of(const Task& task, Count bytes, Rank ranks, const CountTable* table) {
  Call call{.kind = task.kind, .root = task.root, .in_place = task.in_place};
  call.count = elements(task.kind, bytes, ranks, size_of(task.dtype));
  if (has_counts(task.kind)) {
    call.counts = task.kind == Collective::allgatherv ? CountTable::count_from : CountTable::count_of;
    call.table = table;
  }
  return call;
}

Plan replanned(const Campaign& campaign, const Point& point, const Part& part, const std::vector<Card>& cards,
               Rank root, const std::vector<SlowPair>& slow) {
  Campaign left{.scenario = campaign.scenario,
                .worlds = {campaign.worlds[point.world]},
                .points = {},
                .seed = campaign.seed,
                .authorities = campaign.authorities};
  left.worlds[0].cards = cards;
  Task task = *part.task;
  task.root = root;
  const bool single = campaign.scenario->runs[point.run].kind == ScenarioRun::Kind::collective;
  const bool automatic = single ? point.automatic : task.algorithms.automatic;
  const std::optional<RealMeans> unused;
  return Planner(left, unused, slow).plan_of_part(task, part.bytes, automatic ? nullptr : part.plan().algorithm);
}

Campaign make_campaign(Scenario scenario, const CampaignOptions& options) {
  Campaign campaign;
  if (options.engine)
    for (ScenarioRun& run : scenario.runs) {
      run.engines = {*options.engine};
      if (plays_ranks(*options.engine)) run.payload = true;
      campaign.unchecked += std::erase_if(
          run.expectations, [&](const Expectation& e) { return e.engine && *e.engine != name(*options.engine); });
    }
  for (ScenarioRun& run : scenario.runs)
    if (std::find(run.engines.begin(), run.engines.end(), Engine::real) != run.engines.end())
      campaign.unchecked += leave_out_virtual_times(&run);
  if (options.planner)
    for (ScenarioRun& run : scenario.runs)
      for (std::vector<Task>& stream : run.streams)
        for (Task& task : stream) task.planner = *options.planner;
  campaign.seed = options.seed.value_or(scenario.seed);
  campaign.worlds = make_worlds(scenario, campaign.seed, options.load ? options.load : load_cluster);
  campaign.authorities = options.authorities;
  for (const SimulatedWorld& world : campaign.worlds)
    if (const Status s = check_table(options.authorities, *world.cluster, world.cards); !s.ok())
      throw json::InputError(s.text());
  campaign.scenario = std::make_shared<const Scenario>(std::move(scenario));
  Planner planner(campaign, options.real);
  for (std::size_t i = 0; i < campaign.scenario->runs.size(); ++i) planner.add(i);
  return campaign;
}

}  // namespace gccl::sim
