#include "sim/scenario/explore.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "sim/engine/workload_error.hpp"
#include "sim/scenario/plan/faults.hpp"
#include "sim/scenario/result/row.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kSeedsMax = 1'000'000;

// The campaign as `gccl run --seed` makes it. Its faults are drawn as it is played; cards and counts that are drawn by
// the seed are part of its points, which are then planned anew.
Campaign seeded(const Campaign& campaign, std::uint64_t seed) {
  const Scenario& s = *campaign.scenario;
  const bool draws_cards = s.placement.kind == Placement::Kind::random && !s.placement.seed;
  const auto draws_counts = [](const Task& task) {
    return has_counts(task.kind) && task.counts.kind != Distribution::Kind::uniform && !task.counts.seed;
  };
  const bool draws = draws_cards || std::ranges::any_of(s.runs, [&](const ScenarioRun& run) {
                       return std::ranges::any_of(
                           run.streams, [&](const auto& tasks) { return std::ranges::any_of(tasks, draws_counts); });
                     });
  if (!draws) {
    Campaign same = campaign;
    same.seed = seed;
    return same;
  }
  CampaignOptions options{.engine = {}, .seed = seed, .authorities = campaign.authorities};
  options.load = [&](const std::filesystem::path& file) {
    return std::ranges::find(campaign.worlds, file, &SimulatedWorld::cluster_file)->cluster;
  };
  try {
    return make_campaign(s, options);
  } catch (const json::InputError& e) {
    throw WorkloadError(e.what());
  }
}

Json row_of(const Campaign& campaign, const Engines& engines, std::size_t i) {
  Json row = result_row(campaign, campaign.points[i], play(campaign, campaign.points[i], engines, false));
  row["index"] = i;
  return row;
}

// What the rows break, or one run of them, as text.
std::vector<std::string> broken(const Campaign& campaign, std::vector<Json> rows, std::optional<std::size_t> run = {}) {
  std::vector<std::string> all;
  const std::string of = run ? fmt::format("/runs/{}/", *run) : "";
  for (const Json& e : judge_rows(campaign, rows).expectations)
    if (!e["ok"].get<bool>() && (e["pointer"].get_ref<const std::string&>() + '/').starts_with(of))
      all.push_back(fmt::format("{}; found {}", e["text"].get_ref<const std::string&>(),
                                e["found"].get_ref<const std::string&>()));
  return all;
}

// One run in one world, to be played with fewer faults than the seed gave it.
struct Trial {
  const Campaign& campaign;
  const Engines& engines;
  const std::vector<Json>& rows;  // of all points, as the seed has them
  std::size_t run, world;

  const SimulatedWorld& its_world() const { return campaign.worlds[world]; }

  // What it breaks beside the other runs in this world, which are as they were; nothing where it cannot be played.
  std::vector<std::string> with(const std::vector<Fault>& faults) const {
    Campaign changed = campaign;  // its points refer to the tasks of the one that it came from
    auto scenario = std::make_shared<Scenario>(*campaign.scenario);
    std::vector<std::pair<Fault, json::Node>> stated;
    for (const Fault& f : faults) stated.emplace_back(f, scenario->runs[run].faults.at(f.stated).second);
    scenario->runs[run].faults = std::move(stated);
    changed.scenario = std::move(scenario);
    try {
      return breaks([&](std::size_t i) { return row_of(changed, engines, i); });
    } catch (const std::exception&) {
      return {};
    }
  }
  bool breaks_as_it_was() const {
    return !breaks([&](std::size_t i) { return rows[i]; }).empty();
  }

 private:
  template <class Own>
  std::vector<std::string> breaks(Own own) const {
    std::vector<Json> here;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (const Point& point = campaign.points[i]; point.world == world)
        here.push_back(point.run == run ? own(i) : rows[i]);
    return broken(campaign, std::move(here), run);
  }
};

std::vector<BrokenSeed::Timeline> shrunk(const Campaign& campaign, const Engines& engines,
                                         const std::vector<Json>& rows) {
  std::vector<BrokenSeed::Timeline> all;
  for (std::size_t r = 0; r < campaign.scenario->runs.size(); ++r) {
    if (campaign.scenario->runs[r].faults.empty()) continue;
    Trial trial{campaign, engines, rows, r, 0};
    while (trial.world < campaign.worlds.size() && !trial.breaks_as_it_was()) ++trial.world;
    if (trial.world == campaign.worlds.size()) continue;
    std::vector<Fault> faults = fault_plan(campaign.scenario->runs[r], trial.its_world(), campaign.seed).faults;
    const std::size_t of = faults.size();
    faults = minimal(std::move(faults), [&](const std::vector<Fault>& fewer) { return !trial.with(fewer).empty(); });
    const std::vector<std::string> found = trial.with(faults);
    if (found.empty()) continue;
    all.push_back({r, trial.world, of, faults_json({.faults = faults, .recovery = {}}), found.front()});
  }
  return all;
}

std::uint64_t read_seed(std::string_view text, std::string_view whole, std::string_view what) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size() || seed > INT64_MAX)
    throw json::InputError(fmt::format("{}: found \"{}\", expected seeds such as 1..1000", what, whole));
  return seed;
}

}  // namespace

SeedRange read_seeds(std::string_view text, std::string_view what) {
  const std::size_t dots = text.find("..");
  SeedRange range;
  range.first = read_seed(text.substr(0, dots), text, what);
  range.last = dots == std::string_view::npos ? range.first : read_seed(text.substr(dots + 2), text, what);
  if (range.last < range.first)
    throw json::InputError(fmt::format("{}: found \"{}\", expected the lower seed first", what, text));
  if (range.last - range.first >= kSeedsMax)
    throw json::InputError(
        fmt::format("{}: found {} seeds, expected at most {}", what, range.last - range.first + 1, kSeedsMax));
  return range;
}

std::optional<BrokenSeed> explore(const Campaign& campaign, const Engines& engines, SeedRange seeds,
                                  const RunOptions& options) {
  const std::size_t total = std::size_t(seeds.last - seeds.first + 1),
                    batch = std::max<std::size_t>(64, 4 * options.jobs);
  std::size_t done = 0;
  for (std::uint64_t first = seeds.first; done < total; first += batch) {
    const std::size_t count = std::min(batch, total - done);
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::vector<std::vector<std::string>> found(count);
    std::vector<std::vector<Json>> rows(count);  // where something is found
    PoolOptions pool{.children = options.jobs, .finished = {}, .stop = options.stop};
    pool.finished = [&](std::size_t job, const std::string& text, std::size_t) {
      std::vector<Json> played = Json::parse(text);
      found[job] = broken(campaign, played);
      if (!found[job].empty()) rows[job] = std::move(played);
      ++done;
      if (options.progress) options.progress(done, total);
    };
    const auto play_all = [&](std::size_t job) {
      const Campaign own = seeded(campaign, first + job);
      Json all = Json::array();
      for (std::size_t i = 0; i < own.points.size(); ++i) all.push_back(row_of(own, engines, i));
      return all.dump();
    };
    try {
      run_pool(order, play_all, pool);
    } catch (const JobFailed& e) {
      const std::string text = fmt::format("with seed {}: {}", first + e.job, e.what());
      if (e.blame == JobFailed::Blame::input) throw json::InputError(text);
      e.rethrow(e.job, text);
    }
    for (std::size_t job = 0; job < count; ++job) {
      if (found[job].empty()) continue;
      const Campaign own = seeded(campaign, first + job);
      return BrokenSeed{.seed = own.seed, .broken = found[job], .minimal = shrunk(own, engines, rows[job])};
    }
  }
  return {};
}

}  // namespace gccl::sim
