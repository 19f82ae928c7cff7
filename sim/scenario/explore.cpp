#include "sim/scenario/explore.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "sim/scenario/plan/faults.hpp"
#include "sim/scenario/result/row.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kSeedsMax = 1'000'000;

// The rows of all runs, or of one alone.
Json rows_of(const Campaign& campaign, const Engines& engines, std::optional<std::size_t> run = {}) {
  Json rows = Json::array();
  for (const Point& point : campaign.points) {
    if (run && point.run != *run) continue;
    rows.push_back(result_row(campaign, point, play(campaign, point, engines, false)));
    rows.back()["index"] = rows.size() - 1;
  }
  return rows;
}

// What the rows break, as text.
std::vector<std::string> broken(const Campaign& campaign, const Json& rows, std::optional<std::size_t> run = {}) {
  std::vector<Json> list(rows.begin(), rows.end());
  std::vector<std::string> all;
  const std::string of = run ? fmt::format("/runs/{}/", *run) : "";
  for (const Json& e : judge_rows(campaign, list).expectations)
    if (!e["ok"].get<bool>() && (e["pointer"].get_ref<const std::string&>() + '/').starts_with(of))
      all.push_back(fmt::format("{}; found {}", e["text"].get_ref<const std::string&>(),
                                e["found"].get_ref<const std::string&>()));
  return all;
}

// What a campaign with exactly these faults in one of its runs breaks.
std::vector<std::string> broken_by(const Campaign& campaign, const Engines& engines, std::size_t run,
                                   const std::vector<Fault>& faults) {
  Campaign changed = campaign;  // its points refer to the tasks of the one that it came from
  auto scenario = std::make_shared<Scenario>(*campaign.scenario);
  std::vector<std::pair<Fault, json::Node>> stated;
  for (const Fault& f : faults) stated.emplace_back(f, scenario->runs[run].faults.at(f.stated).second);
  scenario->runs[run].faults = std::move(stated);
  changed.scenario = std::move(scenario);
  try {
    return broken(changed, rows_of(changed, engines, run), run);
  } catch (const std::exception& e) {
    return {e.what()};
  }
}

std::vector<BrokenSeed::Timeline> shrunk(const Campaign& campaign, const Engines& engines) {
  std::vector<BrokenSeed::Timeline> all;
  for (std::size_t r = 0; r < campaign.scenario->runs.size(); ++r) {
    if (campaign.scenario->runs[r].faults.empty()) continue;
    const auto point =
        std::find_if(campaign.points.begin(), campaign.points.end(), [&](const Point& p) { return p.run == r; });
    std::vector<Fault> faults =
        fault_plan(campaign.scenario->runs[r], campaign.worlds[point->world], campaign.seed).faults;
    const std::size_t of = faults.size();
    if (broken_by(campaign, engines, r, faults).empty()) continue;
    faults = minimal(std::move(faults),
                     [&](const std::vector<Fault>& fewer) { return !broken_by(campaign, engines, r, fewer).empty(); });
    all.push_back(
        {r, of, faults_json({.faults = faults, .recovery = {}}), broken_by(campaign, engines, r, faults).front()});
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
    PoolOptions pool{.children = options.jobs, .finished = {}, .stop = options.stop};
    pool.finished = [&](std::size_t job, const std::string& text, std::size_t) {
      Campaign seeded = campaign;
      seeded.seed = first + job;
      found[job] = broken(seeded, Json::parse(text));
      ++done;
      if (options.progress) options.progress(done, total);
    };
    run_pool(
        order,
        [&](std::size_t job) {
          Campaign seeded = campaign;
          seeded.seed = first + job;
          return rows_of(seeded, engines).dump();
        },
        pool);
    for (std::size_t job = 0; job < count; ++job) {
      if (found[job].empty()) continue;
      Campaign seeded = campaign;
      seeded.seed = first + job;
      return BrokenSeed{.seed = seeded.seed, .broken = found[job], .minimal = shrunk(seeded, engines)};
    }
  }
  return {};
}

}  // namespace gccl::sim
