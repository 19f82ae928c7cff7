#include "sim/tuning/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "libgccl/cluster/read/tuning_file.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/scenario/description/digest.hpp"
#include "sim/scenario/plan/point_key.hpp"
#include "sim/scenario/read/sizes.hpp"
#include "sim/tuning/regret.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

// Where sizes are closer than this no cross-over is looked for between them.
constexpr double kClose = 1.3;
// Sizes that are estimated between those simulated are at most so many times the one before.
constexpr double kEstimated = 1.5;

// One number of ranks with one size.
struct SweepPlace {
  Collective kind{};
  Rank ranks = 0;
  Count bytes = 0;  // of whole elements
  bool bisection = false;
  auto key() const { return std::tuple(kind, ranks, bytes); }
};

class Sweep {
 public:
  Sweep(const SweepQuestion& q, const Engines& engines, const SweepOptions& options)
      : q_(q), options_(options), search_(q.search) {
    if (options_.journal) journal_key_ = sweep_key(q);
    const auto run = q.engine == Engine::model  ? engines.model
                     : q.engine == Engine::flow ? engines.flow
                                                : engines.simgrid;
    search_.run = run;
    // SimGrid plays once in a process.
    if (q.engine == Engine::simgrid)
      search_.run = [run](const Workload& w) {
        const auto job = [&](std::size_t) { return std::to_string(run(w).time_ns); };
        Outcome o;
        o.time_ns = std::stoll(run_pool({0}, job, {})[0]);
        return o;
      };
  }

  Json document() {
    bool complete = true;
    try {
      play(grid(q_));
      for (unsigned i = 0; i < q_.bisections; ++i) play(crossings());
    } catch (const Interrupted&) {
      complete = false;
    }
    Json cells = Json::array();
    for (const auto& [key, cell] : done_) cells.push_back(cell);
    Json out = {{"schema", "gccl/tuning/1"},
                {"version", GCCL_VERSION_TEXT},
                {"complete", complete && failed_.empty()},
                {"failed", failed_},
                {"cluster",
                 {{"name", q_.cluster->name()},
                  {"file", json::valid_text(q_.file.string())},
                  {"cards", q_.cluster->cards()},
                  {"nodes", q_.cluster->nodes()},
                  {"backends", q_.cluster->backends()}}},
                {"engine", name(q_.engine)},
                {"dtype", name(q_.search.dtype)},
                {"steps_max", q_.search.steps_max},
                {"margin", q_.search.margin},
                {"cells", std::move(cells)},
                {"between", estimates()}};
    if (!q_.parameters.empty()) out["cluster"]["parameters"] = json::valid_text(q_.parameters.string());
    add_regret(out);
    return out;
  }

  static std::vector<SweepPlace> grid(const SweepQuestion& q) {
    std::map<std::tuple<Collective, Rank, Count>, SweepPlace> all;
    for (const Collective kind : q.collectives)
      for (const Rank n : q.ranks)
        for (const Count asked : q.bytes) {
          const SweepPlace p{kind, n, whole(q, kind, n, asked)};
          all.emplace(p.key(), p);
        }
    std::vector<SweepPlace> list;
    for (const auto& [key, p] : all) list.push_back(p);
    return list;
  }

  // Everything that a cell depends on besides its place.
  static std::string sweep_key(const SweepQuestion& q) {
    const std::string parameters = q.parameters.empty() ? "" : cluster_digest(q.parameters);
    const std::string table = q.search.table ? digest(write_tuning_table(*q.search.table)) : "";
    return digest(fmt::format("{} {} {} {} {} {} {} {} {}", program_digest(), cluster_digest(q.file), parameters,
                              name(q.engine), name(q.search.dtype), q.search.steps_max, q.search.margin,
                              q.search.refined, table));
  }
  static std::string cell_key(const std::string& sweep, const SweepPlace& p) {
    return digest(fmt::format("{} {} {} {}", sweep, name(p.kind), p.ranks, p.bytes));
  }

 private:
  static Count whole(const SweepQuestion& q, Collective kind, Rank n, Count bytes) {
    const unsigned each = size_of(q.search.dtype);
    return total_bytes(kind, elements(kind, bytes, n, each), n, each);
  }

  const TunedRanks& tuned(Rank n) {
    auto& known = ranks_[n];
    if (!known) known = std::make_unique<TunedRanks>(q_.cluster, n, q_.search.dtype);
    return *known;
  }

  void keep(const SweepPlace& p, Json cell) {
    cell["bisection"] = p.bisection;
    done_[p.key()] = std::move(cell);
  }

  // Searches all that is not in the journal; the most expensive first.
  void play(const std::vector<SweepPlace>& places) {
    std::vector<SweepPlace> left;
    for (const SweepPlace& p : places) {
      const Json* known = options_.journal ? options_.journal->find(cell_key(journal_key_, p)) : nullptr;
      if (known)
        keep(p, *known);
      else
        left.push_back(p);
    }
    for (const SweepPlace& p : left) tuned(p.ranks);  // before the children, which all see it
    std::vector<std::size_t> order(left.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(left[a].ranks, left[a].bytes) > std::pair(left[b].ranks, left[b].bytes);
    });
    const std::size_t before = done_.size();
    std::size_t finished = 0;
    const auto search_all = [&](const std::vector<std::size_t>& which, unsigned children, const auto& failed) {
      PoolOptions pool{.children = children, .finished = {}, .stop = options_.stop};
      pool.finished = [&](std::size_t job, const std::string& text, std::size_t) {
        const SweepPlace& p = left[which[job]];
        Json cell = Json::parse(text);
        if (options_.journal) options_.journal->add(cell_key(journal_key_, p), cell);
        keep(p, std::move(cell));
        if (options_.progress) options_.progress(before + ++finished, before + left.size());
      };
      pool.failed = [&](const JobFailed& e) { failed(which[e.job], e); };
      const auto job = [&](std::size_t i) {
        const SweepPlace& p = left[which[i]];
        return search(tuned(p.ranks), p.kind, p.bytes, search_).dump();
      };
      std::vector<std::size_t> jobs(which.size());
      std::iota(jobs.begin(), jobs.end(), 0);
      try {
        run_pool(jobs, job, pool);
      } catch (const JobFailed& e) {
        throw JobFailed(e.job, fmt::format("{}: {}", place_text(left[which[e.job]]), e.what()));
      }
    };
    // Several at once may need more memory than there is where one alone does not.
    std::vector<std::size_t> again;
    search_all(order, options_.jobs, [&](std::size_t i, const JobFailed&) { again.push_back(i); });
    search_all(again, 1, [&](std::size_t i, const JobFailed& e) {
      failed_.push_back({{"at", place_text(left[i])}, {"why", json::valid_text(e.what())}});
    });
  }

  static std::string place_text(const SweepPlace& p) {
    return fmt::format("{} of {} on {}", name(p.kind), json::format_bytes(p.bytes), json::format_ranks(p.ranks));
  }

  // The middles of neighbours with different winners.
  std::vector<SweepPlace> crossings() const {
    std::vector<SweepPlace> all;
    neighbours([&](const SweepPlace& low, const SweepPlace& high, const Json& below, const Json& above) {
      const Json &a = below["tried"][0], &b = above["tried"][0];
      if (double(high.bytes) < kClose * double(low.bytes)) return;
      if (a["algorithm"] == b["algorithm"] && a["protocol"] == b["protocol"]) return;
      const Count middle = whole(q_, low.kind, low.ranks, Count(std::sqrt(double(low.bytes) * double(high.bytes))));
      if (middle > low.bytes && middle < high.bytes) all.push_back({low.kind, low.ranks, middle, true});
    });
    return all;
  }

  Json estimates() {
    Json all = Json::array();
    neighbours([&](const SweepPlace& low, const SweepPlace& high, const Json& below, const Json& above) {
      const double way = std::log(double(high.bytes) / double(low.bytes));
      const int steps = int(std::ceil(way / std::log(kEstimated)));
      Count before = low.bytes;
      for (int i = 1; i < steps; ++i) {
        const Count bytes =
            whole(q_, low.kind, low.ranks, Count(double(low.bytes) * std::exp(way * double(i) / double(steps))));
        if (bytes <= before || bytes >= high.bytes) continue;
        before = bytes;
        Json place = estimate(tuned(low.ranks), low.kind, bytes, search_, below, above);
        if (!place["estimated"].empty()) all.push_back(std::move(place));
      }
    });
    return all;
  }

  // Calls f with each two sizes of one collective on one number of ranks that have none between them.
  template <class F>
  void neighbours(F f) const {
    for (auto next = done_.begin(), at = next; at != done_.end(); at = next) {
      if (++next == done_.end()) break;
      const auto& [kind, ranks, low] = at->first;
      const auto& [kind2, ranks2, high] = next->first;
      if (kind != kind2 || ranks != ranks2 || low == 0) continue;
      if (at->second["tried"].empty() || next->second["tried"].empty()) continue;
      f(SweepPlace{kind, ranks, low}, SweepPlace{kind, ranks, high}, at->second, next->second);
    }
  }

  const SweepQuestion& q_;
  const SweepOptions& options_;
  SearchOptions search_;
  std::string journal_key_;
  std::map<Rank, std::unique_ptr<TunedRanks>> ranks_;
  std::map<std::tuple<Collective, Rank, Count>, Json> done_;
  Json failed_ = Json::array();
};

}  // namespace

Json sweep(const SweepQuestion& question, const Engines& engines, const SweepOptions& options) {
  return Sweep(question, engines, options).document();
}

std::size_t known_cells(const SweepQuestion& q, const Journal& journal) {
  const std::string key = Sweep::sweep_key(q);
  const auto places = Sweep::grid(q);
  return std::size_t(std::ranges::count_if(
      places, [&](const SweepPlace& p) { return journal.find(Sweep::cell_key(key, p)) != nullptr; }));
}

}  // namespace gccl::sim
