#include "sim/tuning/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "libgccl/base/counted.hpp"
#include "libgccl/cluster/read/tuning_file.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/scenario/description/digest.hpp"
#include "sim/scenario/plan/point_key.hpp"
#include "sim/scenario/read/sizes.hpp"
#include "sim/tuning/regret.hpp"
#include "sim/tuning/segments.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

// Where sizes are closer than this no cross-over is looked for between them: by a search among all, and among few.
constexpr double kClose = 1.3, kCloseFew = 1.15;
// A cliff: what is fastest at one size takes so much longer than the fastest at the next. So often the way between them
// is halved, and no further than that.
constexpr double kCliff = 1.05, kCliffClose = 1.02;
constexpr unsigned kCliffBisections = 4;
// Sizes between those of the grid: of those that are simulated each is at most so many times the one before, of all so
// many times.
constexpr double kConfirmed = 2, kEstimated = 1.5;
// And, on a scale of these, a little more, since calls are of whole elements.
constexpr double kRounded = 0.005;

// One number of ranks with one size.
struct SweepPlace {
  Collective kind{};
  Rank ranks = 0;
  Count bytes = 0;  // of whole elements
  bool bisection = false;
  // Of a place of "between": the sizes beside it, and of how many of the fastest chunks and channels are refined.
  Count below = 0, above = 0;
  unsigned refined = 0;
  auto key() const { return std::tuple(kind, ranks, bytes); }
};

class Sweep {
 public:
  Sweep(const SweepQuestion& q, const Engines& engines, const SweepOptions& options)
      : q_(q), options_(options), search_(q.search) {
    if (options_.journal) sweep_key_ = sweep_key(q);
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
    check_team();
    bool complete = true;
    try {
      play(grid(q_));
      for (unsigned i = 0; i < q_.bisections; ++i) play(crossings(kClose, {"algorithm", "protocol"}, true));
      if (search_.confirmed > 0) {
        play(between(kConfirmed));
        play(crossings(kCloseFew, {"algorithm", "protocol", "chunks", "channels"}, false));
        for (unsigned i = 0; i < kCliffBisections; ++i) play(cliffs());
      }
    } catch (const Interrupted&) {
      complete = false;
    }
    estimate_rest();
    Json cells = Json::array(), places = Json::array();
    for (const auto& [key, cell] : done_) cells.push_back(cell);
    for (const auto& [key, place] : between_) places.push_back(place);
    Json missing = Json::array();
    for (const SweepPlace& p : grid(q_))
      if (!done_.contains(p.key()))
        missing.push_back({{"collective", name(p.kind)},
                           {"ranks", p.ranks},
                           {"nodes", tuned(p.ranks).layout->view(0).nodes},
                           {"bytes", p.bytes}});
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
                {"between", std::move(places)},
                {"missing", std::move(missing)}};
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
    return digest(fmt::format("{} {} {} {} {} {} {} {} {}", q.program, cluster_digest(q.file), parameters,
                              name(q.engine), name(q.search.dtype), q.search.steps_max, q.search.margin,
                              q.search.refined, table));
  }
  static std::string cell_key(const std::string& sweep, const SweepPlace& p) {
    return digest(fmt::format("{} {} {} {}", sweep, name(p.kind), p.ranks, p.bytes));
  }

 private:
  // Shares of different sweeps would be no sweep.
  void check_team() const {
    if (!options_.team.gather) return;
    std::string mine = fmt::format("{} {} {}", sweep_key(q_), q_.bisections, search_.confirmed);
    for (const SweepPlace& p : grid(q_)) mine += " " + cell_key("", p);
    const std::vector<std::string> all = options_.team.gather(digest(mine));
    for (std::size_t r = 1; r < all.size(); ++r)
      if (all[r] != all[0])
        throw json::InputError(
            fmt::format("rank {} sweeps something else than rank 0: expected the same program, cluster, parameters, "
                        "tables and options on every machine",
                        r));
  }

  static Count whole(const SweepQuestion& q, Collective kind, Rank n, Count bytes) {
    const unsigned each = size_of(q.search.dtype);
    return total_bytes(kind, elements(kind, bytes, n, each), n, each);
  }

  const TunedRanks& tuned(Rank n) {
    auto& known = ranks_[n];
    if (!known) known = std::make_unique<TunedRanks>(q_.cluster, n, q_.search.dtype);
    return *known;
  }

  std::string journal_key(const SweepPlace& p) const {
    const std::string cell = cell_key(sweep_key_, p);
    if (!p.below) return cell;
    return digest(fmt::format("{} {} {} {} {}", cell, search_.confirmed, p.refined, found_at(p, p.below).dump(),
                              found_at(p, p.above).dump()));
  }

  void keep(const SweepPlace& p, Json cell) {
    if (p.below) {
      if (!cell.contains("estimated") || !cell["estimated"].empty()) between_[p.key()] = std::move(cell);
      return;
    }
    cell["bisection"] = p.bisection;
    done_[p.key()] = std::move(cell);
  }

  Json search_at(const SweepPlace& p, SearchOptions options) {
    if (!p.below) return search(tuned(p.ranks), p.kind, p.bytes, options);
    options.refined = p.refined;
    return search_between(tuned(p.ranks), p.kind, p.bytes, options, found_at(p, p.below), found_at(p, p.above));
  }

  const Json& found_at(const SweepPlace& p, Count bytes) const {
    const auto at = done_.find({p.kind, p.ranks, bytes});
    return at == done_.end() ? between_.at({p.kind, p.ranks, bytes}) : at->second;
  }

  // What one process has found of a round's places, by their numbers.
  struct Found {
    Json cells = Json::array(), failed = Json::array();  // [number, cell], [number, why]
    bool interrupted = false;
  };

  // Takes what all processes have found, the same on each. Throws Interrupted where one was.
  void together(const std::vector<SweepPlace>& places, const Found& mine, std::vector<bool>* done) {
    const std::string text = Json::array({mine.cells, mine.failed, mine.interrupted}).dump();
    bool interrupted = false;
    for (const std::string& theirs : options_.team.gather ? options_.team.gather(text) : std::vector{text}) {
      Json found = Json::parse(theirs);
      for (Json& cell : found[0]) {
        const std::size_t i = cell[0];
        // The first one's journal is enough to go on with, in whatever company.
        if (options_.journal && options_.team.rank == 0 && !options_.journal->find(journal_key(places[i])))
          options_.journal->add(journal_key(places[i]), cell[1]);
        keep(places[i], std::move(cell[1]));
        (*done)[i] = true;
      }
      for (Json& failure : found[1]) {
        const SweepPlace& p = places[failure[0].get<std::size_t>()];
        failed_keys_.insert(p.key());
        failed_.push_back({{"at", place_text(p)}, {"why", std::move(failure[1])}});
      }
      interrupted |= found[2].get<bool>();
    }
    if (interrupted) throw Interrupted();
  }

  // Searches all that is in no journal; the most expensive first, and each process as many as the others.
  void play(const std::vector<SweepPlace>& places) {
    std::vector<bool> done(places.size());
    Found found;
    for (std::size_t i = 0; options_.journal && i < places.size(); ++i)
      if (const Json* known = options_.journal->find(journal_key(places[i]))) found.cells.push_back({i, *known});
    together(places, found, &done);
    std::vector<std::size_t> left, share;
    for (std::size_t i = 0; i < places.size(); ++i)
      if (!done[i]) left.push_back(i);
    std::stable_sort(left.begin(), left.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(places[a].ranks, places[a].bytes) > std::pair(places[b].ranks, places[b].bytes);
    });
    for (std::size_t i = options_.team.rank; i < left.size(); i += options_.team.ranks) share.push_back(left[i]);
    for (const std::size_t i : share) tuned(places[i].ranks);  // before the children, which all see it
    found = search_all(places, share, left.size());
    together(places, found, &done);
  }

  Found search_all(const std::vector<SweepPlace>& places, const std::vector<std::size_t>& share, std::size_t of_all) {
    Found found;
    const std::size_t before = done_.size() + between_.size();
    const auto search_each = [&](const std::vector<std::size_t>& which, unsigned children, const auto& failed) {
      PoolOptions pool{.children = children, .finished = {}, .stop = options_.stop};
      pool.finished = [&](std::size_t job, const std::string& text, std::size_t) {
        Json cell = Json::parse(text);
        if (options_.journal) options_.journal->add(journal_key(places[which[job]]), cell);
        found.cells.push_back({which[job], std::move(cell)});
        if (options_.progress)
          options_.progress(before + std::min(of_all, found.cells.size() * options_.team.ranks), before + of_all);
      };
      pool.failed = [&](const JobFailed& e) { failed(which[e.job], e); };
      const auto job = [&](std::size_t i) { return search_at(places[which[i]], search_).dump(); };
      std::vector<std::size_t> jobs(which.size());
      std::iota(jobs.begin(), jobs.end(), 0);
      try {
        run_pool(jobs, job, pool);
      } catch (const JobFailed& e) {
        e.rethrow(e.job, fmt::format("{}: {}", place_text(places[which[e.job]]), e.what()));
      }
    };
    // Several at once may need more memory than there is where one alone does not.
    std::vector<std::size_t> again;
    try {
      search_each(share, options_.jobs, [&](std::size_t i, const JobFailed&) { again.push_back(i); });
      search_each(again, 1, [&](std::size_t i, const JobFailed& e) {
        found.failed.push_back({i, json::valid_text(e.what())});
      });
    } catch (const Interrupted&) {
      found.interrupted = true;
    }
    return found;
  }

  static std::string place_text(const SweepPlace& p) {
    return fmt::format("{} of {} on {}", name(p.kind), json::format_bytes(p.bytes), counted(p.ranks, "rank"));
  }

  // The middles of neighbours that are so many times apart or more, where differ(below, above).
  template <class F>
  std::vector<SweepPlace> middles(double apart, bool bisection, F differ) const {
    std::vector<SweepPlace> all;
    neighbours([&](const SweepPlace& low, const SweepPlace& high, const Json& below, const Json& above) {
      if (double(high.bytes) < apart * double(low.bytes) || !differ(below, above)) return;
      const Count middle = whole(q_, low.kind, low.ranks, Count(std::sqrt(double(low.bytes) * double(high.bytes))));
      const SweepPlace p{low.kind, low.ranks, middle, bisection, bisection ? 0 : low.bytes, bisection ? 0 : high.bytes};
      if (middle > low.bytes && middle < high.bytes && !failed_keys_.contains(p.key())) all.push_back(p);
    });
    return all;
  }

  // Those whose winners differ in one of these.
  std::vector<SweepPlace> crossings(double apart, std::initializer_list<const char*> in, bool bisection) const {
    return middles(apart, bisection, [&](const Json& below, const Json& above) {
      return !alike(below["tried"][0], above["tried"][0], in);
    });
  }

  // Those between which one winner takes the other's place at once, as where messages get too long to be sent eagerly:
  // a border in the middle would leave it up to a fifth of the way off.
  std::vector<SweepPlace> cliffs() const {
    // What differs in chunks or channels alone, and was left out there, is no cliff.
    const auto far = [](const Json& winner, const Json& at) {
      const double by = behind(winner, at);
      return by > kCliff && (by < HUGE_VAL || !alike(winner, at["tried"][0], {"algorithm", "protocol"}));
    };
    return middles(kCliffClose, false, [&](const Json& below, const Json& above) {
      return far(below["tried"][0], above) || far(above["tried"][0], below);
    });
  }

  // Sizes between neighbours, for which files and tables say something, too.
  std::vector<SweepPlace> between(double ratio) const {
    std::vector<SweepPlace> all;
    neighbours([&](const SweepPlace& low, const SweepPlace& high, const Json&, const Json&) {
      const double way = std::log(double(high.bytes) / double(low.bytes));
      const int steps = int(std::ceil(way / std::log(ratio) - kRounded));
      Count before = low.bytes;
      for (int i = 1; i < steps; ++i) {
        const Count bytes =
            whole(q_, low.kind, low.ranks, Count(double(low.bytes) * std::exp(way * double(i) / double(steps))));
        if (bytes <= before || bytes >= high.bytes) continue;
        before = bytes;
        all.push_back({low.kind, low.ranks, bytes, false, low.bytes, high.bytes, std::min(search_.refined, 1u)});
      }
    });
    return all;
  }

  // What has not been simulated of them. Of simulated neighbours as near as they get by intent the winners' border is
  // better than estimates from the few candidates that both have.
  void estimate_rest() {
    SearchOptions estimates = search_;
    estimates.confirmed = 0;
    const double near = search_.confirmed > 0 ? 1.01 * kConfirmed : 1;
    for (const SweepPlace& p : between(kEstimated))
      if (double(p.above) > near * double(p.below)) keep(p, search_at(p, estimates));
  }

  // Calls f with each two sizes that were simulated, of one collective on one number of ranks, and none between them,
  // nor one that was to be and has no result.
  template <class F>
  void neighbours(F f) const {
    std::map<std::tuple<Collective, Rank, Count>, const Json*> all;
    for (const SweepPlace& p : grid(q_)) all.emplace(p.key(), nullptr);
    for (const auto* found : {&done_, &between_})
      for (const auto& [key, place] : *found)
        if (place.contains("tried") && !place["tried"].empty()) all[key] = &place;
    for (auto next = all.begin(), at = next; at != all.end(); at = next) {
      if (++next == all.end()) break;
      const auto& [kind, ranks, low] = at->first;
      const auto& [kind2, ranks2, high] = next->first;
      if (kind != kind2 || ranks != ranks2 || low == 0 || !at->second || !next->second) continue;
      f(SweepPlace{kind, ranks, low}, SweepPlace{kind, ranks, high}, *at->second, *next->second);
    }
  }

  const SweepQuestion& q_;
  const SweepOptions& options_;
  SearchOptions search_;
  std::string sweep_key_;
  std::map<Rank, std::unique_ptr<TunedRanks>> ranks_;
  std::map<std::tuple<Collective, Rank, Count>, Json> done_, between_;
  Json failed_ = Json::array();
  std::set<std::tuple<Collective, Rank, Count>> failed_keys_;
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
