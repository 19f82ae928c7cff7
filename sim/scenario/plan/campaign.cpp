#include "sim/scenario/plan/campaign.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libgccl/cluster/read/load.hpp"
#include "libgccl/cluster/read/load_authorities.hpp"
#include "sim/scenario/plan/estimate.hpp"
#include "sim/scenario/plan/faults.hpp"
#include "sim/scenario/plan/part_planner.hpp"
#include "sim/scenario/plan/real.hpp"
#include "sim/scenario/plan/worlds.hpp"
#include "sim/scenario/read/sizes.hpp"

namespace gccl::sim {
namespace {

// Builds the points of one scenario.
class Planner {
 public:
  Planner(Campaign& campaign, const std::optional<RealMeans>& real)
      : campaign_(campaign), real_(real), parts_(campaign) {}

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

 private:
  const SimulatedWorld& world(std::size_t w) const { return campaign_.worlds[w]; }

  void check_stragglers(const ScenarioRun& run, std::size_t w) const {
    for (const auto& [s, where] : run.stragglers)
      if (s.rank >= world(w).ranks())
        where.fail(fmt::format("found rank {}, expected one below {}", s.rank, world(w).ranks()));
  }

  void add_collective(const ScenarioRun& run, std::size_t run_index, std::size_t w, Engine engine) {
    const Task& task = run.task();
    Part part{.task = &task, .communicators = parts_.communicators_of(task, w), .plans = {}};
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
      const auto [list, chosen] = parts_.candidates(part, w);
      for (const PartPlanner::Algorithms& a : list) {
        part.others = a == chosen.algorithms ? chosen.others : std::vector<OtherChoice>{};
        parts_.set_plans(part, a, chosen, w);
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
                  .communicators = parts_.communicators_of(task, w),
                  .plans = {},
                  .others = {}};
        const auto [list, chosen] = parts_.candidates(part, w);
        part.others = chosen.others;
        parts_.set_plans(part, list[0], chosen, w);
        stream.push_back(std::move(part));
      }
    }
    append(std::move(point));
  }

  // Adds what the part's communicators do in all repetitions, each like the first of its shape.
  static void add_work(const Part& part, unsigned repeats, Point& point, double& lanes, std::uint64_t seed) {
    const auto first = PartPlanner::firsts(part);
    std::vector<double> count(first.size(), 0);
    for (const SimulatedCommunicator& c : *part.communicators) count[c.shape] += repeats;
    for (const SimulatedCommunicator* c : first) {
      const Plan& plan = part.plan(*c);
      const EstimatedWork work = estimated_work(*plan.algorithm, PartPlanner::Asked(part, *c, seed).call, *c->layout,
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
        stream_us += parts_.predicted_us(part, point.world);
        add_work(part, run.repeats, point, lanes, campaign_.seed);
        if (run.payload) check_payload(part, std::ranges::any_of(run.engines, plays_ranks));
      }
      longest_us = stream_us > longest_us || std::isnan(stream_us) ? stream_us : longest_us;
    }
    if (!std::isnan(longest_us)) point.predicted_us = longest_us;
    if (point.engine == Engine::real) check_real_algorithms(point);
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
  PartPlanner parts_;
  double messages_ = 0;
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
  return PartPlanner(left, slow).plan_of_part(task, part.bytes, automatic ? nullptr : part.plan().algorithm);
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
