#include "cli/analysis/tune_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "cli/engines.hpp"
#include "libgccl/cluster/read/load_authorities.hpp"
#include "libgccl/cluster/read/tuning_file.hpp"
#include "libgccl/json/nearest.hpp"
#include "libgccl/json/reader.hpp"
#include "libgccl/select/overrides.hpp"
#include "sim/flow/cost_check.hpp"

namespace gccl {
namespace {

constexpr std::size_t kNumbersMax = 64;

// "8..1GiB", each so many times the one before; "8..1GiB*2"; or "64KiB,1MiB". `expected`: examples, and what is
// allowed.
template <class Read>
std::vector<Count> numbers(std::string_view option, const std::string& text, double factor, std::string_view expected,
                           Read read) {
  const auto wrong = [&](const std::string& found) {
    throw json::InputError(
        fmt::format("{}: found \"{}\", expected a list or a range such as {}", option, found, expected));
  };
  const auto too_many = [&] {
    throw json::InputError(fmt::format("{}: found \"{}\", which are more than {} values", option, text, kNumbersMax));
  };
  const auto one = [&](const std::string& word) {
    const std::optional<Count> n = read(word);
    if (!n) wrong(word);
    return *n;
  };
  std::set<Count> all;
  if (const std::size_t dots = text.find(".."); dots != std::string::npos) {
    std::string last = text.substr(dots + 2);
    if (const std::size_t star = last.find('*'); star != std::string::npos) {
      char* end = nullptr;
      factor = std::strtod(last.c_str() + star + 1, &end);
      if (*end != 0 || !(factor >= 1.1) || factor > 1e9) wrong(text);
      last.resize(star);
    }
    const Count from = one(text.substr(0, dots)), to = one(last);
    if (from > to) wrong(text);
    for (double n = double(from); n <= double(to) * (1 + 1e-9); n *= factor) {
      all.insert(std::min<Count>(to, Count(std::llround(n))));
      if (all.size() > kNumbersMax) too_many();
    }
    all.insert(to);
  } else {
    for (const std::string& word : split_names(text)) all.insert(one(word));
  }
  if (all.size() > kNumbersMax) too_many();
  return {all.begin(), all.end()};
}

// From one node on by doubling, or from two ranks on where there is one node.
std::vector<Rank> usual_ranks(const Cluster& cluster) {
  Rank first = 0;
  while (first < cluster.cards() && cluster.node_of(first) == 0) ++first;
  if (cluster.nodes() == 1 || first == 1) first = 2;
  std::vector<Rank> all;
  for (std::uint64_t n = first; n <= cluster.cards() && all.size() < 4; n *= 2) all.push_back(Rank(n));
  if (all.empty()) all.push_back(cluster.cards());
  return all;
}

std::vector<Collective> collectives_of(const std::string& text) {
  std::vector<Collective> all;
  for (const std::string& word : split_names(text)) {
    const auto kind = collective_named(word);
    if (!kind)
      throw json::InputError(fmt::format("--collectives: found \"{}\"{}", word, suggestion(word, collective_names())));
    if (has_counts(*kind))
      throw json::InputError(fmt::format(
          "--collectives: found \"{}\", whose blocks have lengths of their own; expected one with blocks of one length",
          word));
    if (std::find(all.begin(), all.end(), *kind) == all.end()) all.push_back(*kind);
  }
  return all;
}

}  // namespace

sim::SweepQuestion sweep_question(const TuneArguments& a) {
  sim::SweepQuestion q;
  q.file = cluster_file_of(a);
  q.parameters = parameters_file_of(a);
  q.cluster = load_cluster(a);
  q.collectives = collectives_of(a.collectives);
  q.engine = engine_named(a.engine);
  // The page shows all exports, and the JSON says what those for Open MPI name.
  if (a.commutative && a.openmpi.empty() && a.openmpi_json.empty() && a.html.empty() && a.json.empty())
    throw json::InputError(
        "--commutative: without --export-openmpi, --export-openmpi-json, --html or --json nothing asks for what it "
        "changes");
  if (!a.mpich_release.empty() && a.mpich.empty() && a.html.empty())
    throw json::InputError("--mpich: without --export-mpich or --html nothing asks for what it changes");
  if (sim::plays_ranks(q.engine))
    throw json::InputError(
        fmt::format("--engine: found \"{}\", which is for faults; expected one of model, flow, simgrid", a.engine));
  const auto dtype = dtype_named(a.dtype);
  if (!dtype)
    throw json::InputError(fmt::format("--dtype: found \"{}\"{}", a.dtype, suggestion(a.dtype, dtype_names())));
  // Only files say anything about sizes between.
  const bool files = std::ranges::any_of(std::array{&a.table, &a.html, &a.nccl, &a.openmpi, &a.openmpi_json, &a.mpich},
                                         [](const std::string* file) { return !file->empty(); });
  q.search = {.dtype = *dtype,
              .run = {},
              .steps_max = a.steps,
              .margin = a.margin,
              .refined = a.refined,
              .confirmed = files ? a.confirmed : 0,
              .table = nullptr};
  q.bisections = a.bisections;
  q.bytes = numbers("--bytes", a.bytes, 8, "64KiB,1MiB or 8..1GiB, of 1 B to 1 TiB", [](const std::string& word) {
    const auto n = json::parse_bytes(word);
    return n && *n > 0 && *n <= Count(1) << 40 ? std::optional<Count>(*n) : std::nullopt;
  });
  if (a.ranks.empty()) {
    q.ranks = usual_ranks(*q.cluster);
  } else {
    const auto all = numbers("--ranks", a.ranks, 2, "8,64 or 2..64, from 1 on", [](const std::string& word) {
      const bool digits =
          !word.empty() && word.size() < 9 && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
      const Count n = digits ? std::stoull(word) : 0;
      return n >= 1 ? std::optional<Count>(n) : std::nullopt;
    });
    q.ranks.assign(all.begin(), all.end());
  }
  if (q.ranks.back() > q.cluster->cards())
    throw json::InputError(fmt::format("--ranks: found {}, but {} has only {} cards", q.ranks.back(), q.cluster->name(),
                                       q.cluster->cards()));
  if (!a.check_table.empty()) {
    q.search.table = std::make_shared<const TuningTable>(load_tuning_table(a.check_table));
    if (const Status s = check_table(*q.search.table, *q.cluster, sim::first_cards(q.ranks.back())); !s.ok())
      throw json::InputError("--check-table: " + s.text());
  }
  if (q.cluster->backends() == "shm")
    for (const Rank n : q.ranks)
      if (q.cluster->node_of(n - 1) != q.cluster->node_of(0))
        throw json::InputError(fmt::format(
            "--ranks: found {}, but no backend of \"shm\" reaches ranks on another node of {}", n, q.cluster->name()));
  return q;
}

void add_tune_options(Command& command, TuneArguments& a) {
  const auto file = [&](const char* option, std::string& into, const char* help) {
    command.add_option(option, into, help)->value("FILE");
  };
  command.add_option("cluster", a.cluster, "Cluster description, or the name of a shipped one (gccl list topologies)")
      ->required();
  add_parameters_option(command, a);
  command.add_option("--collectives", a.collectives, "What is called")->value("NAMES")->capture_default_str();
  command
      .add_option("--bytes", a.bytes,
                  "Sizes as nccl-tests counts: a list, or a range by a factor of 8 (8..1GiB*2: of 2)")
      ->value("SIZES")
      ->capture_default_str();
  command
      .add_option("--ranks", a.ranks,
                  "On the cluster's first so many cards: a list, or a range by doubling (default: one node and up to "
                  "three doublings)")
      ->value("NUMBERS");
  command.add_option("--engine", a.engine, "model, flow or simgrid")
      ->value("NAME")
      ->suggest({"model", "flow", "simgrid"})
      ->capture_default_str();
  command.add_option("--dtype", a.dtype, "Type of the elements")->value("NAME")->capture_default_str();
  command
      .add_option("--steps", a.steps,
                  "Leave out simulations of more steps, and cut no call up more finely than that allows")
      ->check(Range{1e3, 4e9})
      ->capture_default_str();
  command
      .add_option("--margin", a.margin,
                  "Leave out what is predicted to take more than so many times the best prediction")
      ->check(Range{1, 1e9})
      ->capture_default_str();
  command
      .add_option("--refine", a.refined,
                  "Of so many of the fastest of each call double and halve chunks and channels as long as that helps")
      ->check(Range{0, 64})
      ->capture_default_str();
  command
      .add_option("--bisections", a.bisections,
                  "How often the way between neighbouring sizes with different winners is halved")
      ->check(Range{0, 20})
      ->capture_default_str();
  command
      .add_option(
          "--confirm", a.confirmed,
          "For --table, --html and --export-*: at sizes between, how many of those estimated to be the fastest to "
          "simulate; 0: go by the estimate")
      ->check(Range{0, 64})
      ->capture_default_str();
  file("--check-table", a.check_table,
       "Simulate what this tuning table chooses, too, and say how far from the fastest that is");
  file("--json", a.json, "Write all that was found as JSON; - for standard output, which then holds nothing else");
  file("--html", a.html, "Write a self-contained HTML page");
  file("--table", a.table, "Write a tuning table for GCCL_TUNING_FILE and GCCL's tuner of NCCL");
  file("--export-nccl", a.nccl, "Write a file for the tuner plug-in that comes with NCCL as an example");
  file("--export-openmpi", a.openmpi, "Write a rules file for Open MPI (coll_tuned_dynamic_rules_filename)");
  file("--export-openmpi-json", a.openmpi_json, "Write the same as JSON, which Open MPI 6 reads");
  command.add_flag("--commutative", a.commutative,
                   "For --export-openmpi*, --html and --json: the programs' operations all commute, as those of MPI "
                   "itself do; without it "
                   "calls whose fastest algorithm needs that are left to Open MPI, as its rules do not look at the "
                   "operation");
  command
      .add_option(
          "--export-gain", a.export_gain,
          "For --export-openmpi*, --html and --json: leave to Open MPI what by its own choice takes at most so many "
          "percent longer than the fastest that rules can name; 0: only what takes less")
      ->check(Range{0, 1000})
      ->capture_default_str();
  file("--export-mpich", a.mpich, "Write a selection file for MPICH (MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE)");
  command
      .add_option("--mpich", a.mpich_release,
                  "Which MPICH the file of --export-mpich and --html is for: 4.1 (and later; the default) or 4.0")
      ->check(OneOf{"4.1", "4.0"});
  file("--resume", a.resume, "Keep what is found in this file, and take from it what an interrupted sweep left there");
  command
      .add_option("--jobs", a.jobs, "Searches at once (default: one per core, of this rank's where there are several)")
      ->check(Range{1, 1024});
  command.add_flag("--quiet", a.quiet, "No progress");
}

}  // namespace gccl
