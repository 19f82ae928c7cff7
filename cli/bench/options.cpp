#include "cli/bench/options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/json/nearest.hpp"
#include "libgccl/json/reader.hpp"
#include "libgccl/schedule/lane.hpp"
#include "libgccl/select/overrides.hpp"

namespace gccl::bench {
namespace {

struct Typed {
  std::string backend, collectives = "allreduce", algorithms = "auto", bytes_min = "8", bytes_max = "64MiB";
  std::string dtype = "f32", op = "sum";
  bool in_place = false, out_of_place = false;
};

std::string unknown(std::string_view what, std::string_view typed, std::span<const std::string_view> valid) {
  return fmt::format("unknown {} \"{}\"{}", what, typed, suggestion(typed, valid));
}

// Every check that is not the table's own; what is wrong, or empty.
std::string resolve(const Typed& t, Rank ranks, Options& o) {
  std::vector<std::string_view> kinds(collective_names().begin(), collective_names().end());
  kinds.push_back("all");
  for (const std::string& n : split_names(t.collectives)) {
    if (n == "all") {
      for (std::string_view each : collective_names()) o.collectives.push_back(*collective_named(each));
    } else if (const auto kind = collective_named(n)) {
      o.collectives.push_back(*kind);
    } else {
      return unknown("collective", n, kinds);
    }
  }

  std::vector<std::string_view> known = {"auto", "all"};
  for (const Algorithm& a : algorithms())
    if (std::find(o.collectives.begin(), o.collectives.end(), a.kind) != o.collectives.end() &&
        std::find(known.begin(), known.end(), a.name) == known.end())
      known.push_back(a.name);
  o.algorithms = split_names(t.algorithms);
  for (const std::string& n : o.algorithms)
    if (std::find(known.begin(), known.end(), n) == known.end())
      return unknown(fmt::format("algorithm for {}", t.collectives), n, known);

  const auto dtype = dtype_named(t.dtype);
  if (!dtype) return unknown("dtype", t.dtype, dtype_names());
  const auto op = reduction_named(t.op);
  if (!op) return unknown("op", t.op, reduction_names());
  o.dtype = *dtype;
  o.op = *op;

  for (const auto& [option, typed, value] :
       {std::tuple{"--min-bytes", &t.bytes_min, &o.bytes_min}, std::tuple{"--max-bytes", &t.bytes_max, &o.bytes_max}}) {
    const auto bytes = json::parse_bytes(*typed);
    if (!bytes) return fmt::format("{}: \"{}\" is no size; write 8, 64KiB, 1.5GB ...", option, *typed);
    *value = *bytes;
  }
  if (o.bytes_min > o.bytes_max)
    return fmt::format("--min-bytes {} is more than --max-bytes {}", t.bytes_min, t.bytes_max);
  if (o.lanes > o.shares)
    return fmt::format("--channels {}: every channel needs a chunk, but --chunks is {}", o.lanes, o.shares);
  const bool planned = std::all_of(o.algorithms.begin(), o.algorithms.end(), [](auto& n) { return n == "auto"; });
  if (const Options d; planned && (o.shares != d.shares || o.lanes != d.lanes || o.window != d.window))
    return "--chunks, --channels and --window have no effect on auto, which plans them itself; name an algorithm";
  if (o.root >= ranks) return fmt::format("--root {}: expected a rank below {}", o.root, ranks);
  if (t.in_place || t.out_of_place) {
    o.in_place = t.in_place;
    o.out_of_place = t.out_of_place;
  }
  return {};
}

// Options that write to `o` and `t` when they are parsed.
Command table(Options& o, Typed& t) {
  Command app("Times collectives on a real backend and checks every element.", "gccl bench");
  const auto names = [](auto all, OneOf more) {
    more.insert(more.end(), all.begin(), all.end());
    return more;
  };
  app.add_option("--backend", t.backend,
                 "What carries the messages: mpi; native (shm,tcp); or names as in GCCL_BACKENDS: shm, tcp, a "
                 "plug-in's. By default mpi under mpirun, else native")
      ->value("NAMES")
      ->suggest({"native", "mpi", "shm", "tcp"});
  app.add_option("--collective", t.collectives, "Names, with commas between them, or all")
      ->value("NAMES")
      ->suggest(names(collective_names(), {"all"}))
      ->capture_default_str();
  app.add_option("--algorithm", t.algorithms,
                 "Names, with commas between them; all; or auto, as a program's call would choose")
      ->value("NAMES")
      ->suggest(names(algorithm_names(), {"auto", "all"}))
      ->capture_default_str();
  app.add_option("--min-bytes", t.bytes_min, "Smallest size; the larger of a rank's input and output counts")
      ->value("SIZE")
      ->capture_default_str();
  app.add_option("--max-bytes", t.bytes_max, "Largest size")->value("SIZE")->capture_default_str();
  app.add_option("--factor", o.factor, "From one size to the next")->check(Range{2, 1u << 30})->capture_default_str();
  app.add_option("--dtype", t.dtype, fmt::format("{}", fmt::join(dtype_names(), " ")))
      ->value("NAME")
      ->suggest(names(dtype_names(), {}))
      ->capture_default_str();
  app.add_option("--op", t.op, fmt::format("{}", fmt::join(reduction_names(), " ")))
      ->value("NAME")
      ->suggest(names(reduction_names(), {}))
      ->capture_default_str();
  app.add_option("--root", o.root, "Of broadcast, reduce, gather and scatter")->capture_default_str();
  app.add_option("--iterations", o.iterations, "Timed, back to back")
      ->check(Range{1, 1000000000})
      ->capture_default_str();
  app.add_option("--warmup", o.warmup, "Untimed, before them")->check(Range{0, 1000000000})->capture_default_str();
  app.add_option("--chunks", o.shares, "Chunks that a call is cut into")
      ->formerly("--shares")
      ->check(Range{1, 1u << 20})
      ->capture_default_str();
  app.add_option("--channels", o.lanes, "Channels: chunks in flight at once")
      ->formerly("--lanes")
      ->check(Range{1, 1u << 15})
      ->capture_default_str();
  app.add_option("--window", o.window, "Steps in flight in a channel")
      ->check(Range{2, kWindowMax})
      ->capture_default_str();
  app.add_flag("--in-place", t.in_place, "Only in place (both by default)");
  app.add_flag("--out-of-place", t.out_of_place, "Only out of place (both by default)");
  app.add_option("--ranks-per-node", o.ranks_per_node,
                 "Treat every so many ranks as a node, for algorithms and for auto")
      ->check(Range{1, 1u << 30});
  app.add_option("--json", o.json, "Write the rows to a file, or - for standard output alone")->value("FILE");
  app.examples({"gccl launch -n 4 -- gccl bench --collective allreduce --algorithm auto,ring",
                "mpirun -n 4 gccl bench --backend mpi"});
  return app;
}

}  // namespace

Command option_table() {
  Options o;
  Typed t;
  return table(o, t);  // to be looked at, not to be parsed with
}

Parsed<Options> parse_options(std::vector<std::string> args, Rank ranks) {
  Options o;
  Typed t;
  Command app = table(o, t);
  return parse_with(app, args, o, [&] { return resolve(t, ranks, o); });
}

}  // namespace gccl::bench
