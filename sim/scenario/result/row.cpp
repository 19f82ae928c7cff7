#include "sim/scenario/result/row.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libgccl/schedule/definition.hpp"
#include "sim/engine/workload_error.hpp"
#include "sim/scenario/plan/faults.hpp"
#include "sim/scenario/read/sizes.hpp"
#include "sim/scenario/result/fault_events.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

// Bandwidth in GB/s of `bytes` in `ns`; 0 where no time passed.
double rate(double bytes, double ns) { return ns > 0 ? bytes / ns : 0; }

// Per tier: how much its links carried, how busy the busiest was, and the mean over those that carried something: links
// of cards that take no part would dilute it.
Json tiers_of(const Cluster& cluster, const Outcome& outcome) {
  struct Sum {
    std::uint64_t links = 0, used = 0, bytes = 0;
    double busiest = -1, total = 0;
    LinkId busiest_link = 0;
  };
  std::vector<Sum> sums(std::size_t(Tier::other) + 1);
  const auto& links = cluster.links();
  for (LinkId l = 0; l < links.size() && l < outcome.link_bytes.size(); ++l) {
    Sum& s = sums[std::size_t(links[l].tier)];
    const double carried = double(outcome.link_bytes[l]);
    const auto degraded = outcome.link_shares.find(l);
    const double share = degraded == outcome.link_shares.end() ? 1 : degraded->second;
    const double busy = outcome.time_ns > 0 ? carried / (links[l].bandwidth_GBps * share * double(outcome.time_ns)) : 0;
    ++s.links;
    s.used += outcome.link_bytes[l] > 0;
    if (__builtin_add_overflow(s.bytes, outcome.link_bytes[l], &s.bytes)) throw BytesOverflow();
    s.total += busy;
    if (busy > s.busiest) s.busiest = busy, s.busiest_link = l;
  }
  Json tiers = Json::array();
  for (std::size_t t = 0; t < sums.size(); ++t) {
    const Sum& s = sums[t];
    if (s.links == 0) continue;
    tiers.push_back({{"tier", name(Tier(t))},
                     {"links", s.links},
                     {"bytes", s.bytes},
                     {"busiest_link", cluster.link_name(s.busiest_link)},
                     {"busiest_utilisation", s.busiest},
                     {"mean_utilisation", s.used ? s.total / double(s.used) : 0.0}});
  }
  return tiers;
}

// How another library's rules came to the algorithm.
void add_planner(Json& row, const Part& part) {
  const Authority by = part.plan().by;
  if (by == Authority::named || by == Authority::lists || by == Authority::table) row["decided_by"] = name(by);
  if (part.others.empty()) return;
  const OtherChoice& other = part.others[part.largest().shape];
  row["planner"] = kPlanners[std::size_t(part.task->planner)];
  row["planner_choice"] = other.theirs;
  if (!other.note.empty()) row["planner_note"] = other.note;
}

Count bytes_of(const Part& part) {
  const Rank n = part.largest().ranks();
  const unsigned size = size_of(part.task->dtype);
  return total_bytes(part.task->kind, elements(part.task->kind, part.bytes, n, size), n, size);
}

// Operations are numbered stream by stream, repetition by repetition and part by part (prepare.cpp). Those of a run
// that did not complete have no times: what some ranks had done was given up.
Json operations_of(const Point& point, const Outcome& outcome, unsigned repeats, bool completed) {
  Json all = Json::array();
  std::ptrdiff_t first = 0;
  for (std::size_t s = 0; s < point.streams.size(); ++s)
    for (std::size_t i = 0; i < point.streams[s].size() * repeats; ++i) {
      const Part& part = point.streams[s][i % point.streams[s].size()];
      const auto last = first + std::ptrdiff_t(part.communicators->size());
      const auto begin = std::min_element(outcome.begin_ns.begin() + first, outcome.begin_ns.begin() + last);
      const auto end = std::max_element(outcome.end_ns.begin() + first, outcome.end_ns.begin() + last);
      first = last;
      all.push_back({{"collective", name(part.task->kind)},
                     {"algorithm", part.algorithm()},
                     {"ranks", part.largest().ranks()},
                     {"groups", part.communicators->size()},
                     {"stream", s},
                     {"bytes", bytes_of(part)},
                     {"begin_us", completed ? Json(double(*begin) / 1e3) : Json()},
                     {"end_us", completed ? Json(double(*end) / 1e3) : Json()}});
      add_planner(all.back(), part);
    }
  return all;
}

// What describes a single collective.
void add_collective(Json& row, const Point& point, const Cluster& cluster) {
  const Part& part = point.part();
  const Task& task = *part.task;
  const Rank n = part.largest().ranks();
  row["collective"] = name(task.kind);
  row["algorithm"] = part.algorithm();
  row["ranks"] = n;
  row["groups"] = part.communicators->size();
  row["bytes"] = bytes_of(part);
  row["stated_bytes"] = point.asked;
  row["count"] = elements(task.kind, part.bytes, n, size_of(task.dtype));
  row["dtype"] = name(task.dtype);
  if (reduces(task.kind)) row["op"] = name(task.op);
  row["root"] = task.root;
  row["in_place"] = task.in_place;
  add_planner(row, part);
  if (point.engine == Engine::real) return;  // its ranks plan the rest by themselves
  const Slicing& slicing = part.plan().slicing;
  const std::string& protocol = cluster.protocols()[part.plan().protocol].name;
  row["chunks"] = slicing.shares;
  row["channels"] = slicing.lanes;
  row["window"] = slicing.window;
  row["planned"] = part.sliced;
  if (protocol.empty()) return;
  row["protocol"] = protocol;
  row["protocol_planned"] = task.protocol.empty();
}

// What describes several collectives: bytes are the sum over them.
void add_streams(Json& row, const Campaign& campaign, const Point& point) {
  const ScenarioRun& run = campaign.scenario->runs[point.run];
  row["collective"] = "sequence";
  row["algorithm"] =
      run.label.empty() ? (run.kind == ScenarioRun::Kind::sequence ? "sequence" : "concurrent") : run.label;
  row["ranks"] = campaign.worlds[point.world].ranks();
  Count bytes = 0;
  for (const auto& stream : point.streams)
    for (const Part& part : stream) bytes += bytes_of(part);
  row["bytes"] = bytes;
}

// What came of faults; times that there are none of are null.
Json faults_of(const FaultOutcome& f, const FaultPlan& plan) {
  const auto us = [](Nanos t) { return t < 0 ? Json() : Json(double(t) / 1e3); };
  Json j = {{"timeline", faults_json(plan)},
            {"policy", policy_names()[std::size_t(plan.recovery.policy)]},
            {"completed", f.completed},
            {"survivors", f.survivors},
            {"out", f.out},
            {"dead", f.dead},
            {"false_alarms", f.false_alarms},
            {"first_detection_us", us(f.detection_first)},
            {"detection_us", us(f.detection)},
            {"recovery_us", us(f.recovery)},
            {"lost", f.lost},
            {"doubled", f.doubled},
            {"throughput_after_percent", f.throughput_after < 0 ? Json() : Json(f.throughput_after * 100)},
            {"slow_links", f.slow_links},
            {"link_detection_us", us(f.link_detection)},
            {"plans_changed", f.plans_changed},
            {"slowest", f.slowest ? Json(*f.slowest) : Json()},
            {"events", fault_events(f, plan)},
            {"never_struck", faults_that_never_struck(f, plan)},
            {"violations", f.violations},
            {"epochs", f.epochs},
            {"frames", f.frames},
            {"repeated_frames", f.repeated},
            {"duplicate_frames", f.duplicates},
            {"damaged_frames", f.damaged},
            {"reconnects", f.reconnects},
            {"rerouted", f.rerouted},
            {"trace", fmt::format("{:016x}", f.trace)}};
  if (!f.waits.empty()) j["hang"] = f.waits;
  if (f.stretch > 0) {  // real ranks: the system moves their bytes, and nobody counts frames
    for (const char* key :
         {"frames", "repeated_frames", "duplicate_frames", "damaged_frames", "reconnects", "rerouted", "trace"})
      j.erase(key);
    j["stretch"] = f.stretch;
    j["late_us"] = us(f.late);
    j["carried_by"] = f.carried_by;
    j["differs"] = f.differs;
  }
  return j;
}

}  // namespace

Json row_head(const Campaign& campaign, const Point& point) {
  const SimulatedWorld& world = campaign.worlds[point.world];
  const ScenarioRun& run = campaign.scenario->runs[point.run];
  Json row = {
      {"run", point.run}, {"cluster", world.cluster_name}, {"label", run.label}, {"world_ranks", world.ranks()}};
  row["like_run"] = run.like;
  if (run.repeats > 1) row["repeats"] = run.repeats;
  row["engine"] = name(point.engine);
  row["auto"] = point.automatic;
  if (run.kind == ScenarioRun::Kind::collective)
    add_collective(row, point, *world.cluster);
  else
    add_streams(row, campaign, point);
  return row;
}

std::vector<Json> row_heads(const Campaign& campaign) {
  std::vector<Json> heads;
  for (const Point& point : campaign.points) heads.push_back(row_head(campaign, point));
  return heads;
}

Json result_row(const Campaign& campaign, const Point& point, const Played& played) {
  const ScenarioRun& run = campaign.scenario->runs[point.run];
  const Outcome& outcome = played.outcome;
  const bool completed = !outcome.faults || outcome.faults->completed;
  Json row = row_head(campaign, point);
  if (run.kind != ScenarioRun::Kind::collective || run.repeats > 1)
    row["operations"] = operations_of(point, outcome, run.repeats, completed);
  const double time_ns = double(outcome.time_ns), algbw = rate(row["bytes"].get<double>() * run.repeats, time_ns);
  const double factor =
      run.kind == ScenarioRun::Kind::collective ? bus_factor(run.task().kind, point.part().largest().ranks()) : 0;
  row["time_us"] = time_ns / 1e3;
  row["algbw_GBps"] = completed ? Json(algbw) : Json();
  row["busbw_GBps"] = completed ? Json(algbw * factor) : Json();
  const bool counted =
      point.engine != Engine::real;  // the system moves real ranks' bytes, over no links of the cluster
  row["messages"] = counted ? Json(outcome.messages) : Json();
  row["message_bytes"] = counted ? Json(outcome.bytes) : Json();
  row["wall_s"] = outcome.wall_s;
  row["peak_rss_MB"] = played.peak_rss_MB;
  const bool predicted = point.predicted_us && !outcome.faults;
  row["predicted_us"] = predicted ? Json(*point.predicted_us * run.repeats) : Json();
  row["wrong"] = run.payload && (completed || outcome.wrong) ? Json(outcome.wrong) : Json();
  if (outcome.wrong) row["first_wrong"] = outcome.first_wrong;
  row["tiers"] = counted ? tiers_of(*campaign.worlds[point.world].cluster, outcome) : Json::array();
  if (outcome.faults)
    row["faults"] = faults_of(*outcome.faults, fault_plan(run, campaign.worlds[point.world], campaign.seed));
  return row;
}

void set_place(const Campaign& campaign, std::size_t index, Json& row) {
  row["index"] = index;
  const Json head = row_head(campaign, campaign.points[index]);
  for (const char* key : {"run", "like_run", "stated_bytes"})
    if (head.contains(key)) row[key] = head[key];
}

}  // namespace gccl::sim
