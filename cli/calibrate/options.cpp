#include "cli/calibrate/options.hpp"

#include <fmt/format.h>

#include "libgccl/json/reader.hpp"

namespace gccl::calibrate {
namespace {

constexpr std::uint64_t kBytesMost = 1ull << 30;  // of one message; a rank holds a few of them
// A bandwidth is the slope of times by size. A message's fixed time, 0.3 us in memory to 30 us over TCP, is as long as
// a few KiB of its bytes take; and where the smallest size is near the largest, noise is as large as what is between.
constexpr std::uint64_t kLargestLeast = 64 << 10, kRangeLeast = 8;

struct Typed {
  std::string backend, bytes_min = "8", bytes_max = "16MiB";
};

// Every check that is not the table's own; what is wrong, or empty.
std::string resolve_options(const Typed& t, Options& o) {
  for (const auto& [option, typed, value] :
       {std::tuple{"--min-bytes", &t.bytes_min, &o.bytes_min}, std::tuple{"--max-bytes", &t.bytes_max, &o.bytes_max}}) {
    const auto bytes = json::parse_bytes(*typed);
    if (!bytes || *bytes == 0 || *bytes > kBytesMost)
      return fmt::format("{}: \"{}\" is no size from 1 B to 1 GiB; write 8, 64KiB, 16MiB ...", option, *typed);
    *value = *bytes;
  }
  const auto largest = std::uint64_t(sizes_of(o).back());
  if (largest < kLargestLeast || largest / o.bytes_min < kRangeLeast)
    return fmt::format(
        "--min-bytes {}, --max-bytes {}, --factor {}: the largest size is {}, and times of so short a range do not "
        "tell a bandwidth: expected a largest size of {} or more, at least {} times the smallest",
        t.bytes_min, t.bytes_max, o.factor, json::format_bytes(largest), json::format_bytes(kLargestLeast),
        kRangeLeast);
  if (!o.cluster_output.empty() && o.output == "-")
    return "--cluster-out names the file of the parameters: give -o a file's name";
  if (o.output == "-" && o.json == "-") return "-o and --json both ask for standard output";
  if (o.cluster_output == "-") return "--cluster-out: expected a file's name";
  return {};
}

// Options that write to `o` and `t` when they are parsed.
Command calibrate_table(Options& o, Typed& t) {
  Command app("Measures a job's transports: a parameter set for planner and simulator.", "gccl calibrate");
  app.add_option("-o,--output", o.output,
                 "The parameter set to write; - for standard output, which then holds nothing else")
      ->required()
      ->value("FILE");
  app.add_option("--cluster-out", o.cluster_output, "Write a cluster of this job's nodes and ranks, too")
      ->value("FILE");
  app.add_option("--backend", t.backend,
                 "Names as in GCCL_BACKENDS: shm,tcp (the default), shm, tcp, or mpi (under mpirun)")
      ->value("NAMES")
      ->suggest({"shm,tcp", "shm", "tcp", "mpi"});
  app.add_option("--min-bytes", t.bytes_min, "Smallest message")->value("SIZE")->capture_default_str();
  app.add_option("--max-bytes", t.bytes_max, "Largest message")->value("SIZE")->capture_default_str();
  app.add_option("--factor", o.factor, "From one size to the next")->check(Range{2, 1024})->capture_default_str();
  app.add_option("--seconds", o.seconds, "How long to measure, about; each size 2000 times at most")
      ->check(Range{0.1, 3600})
      ->capture_default_str();
  app.add_option("--pairs", o.pairs, "Pairs of ranks of each class; all but the first are only compared with it")
      ->check(Range{1, 64})
      ->capture_default_str();
  app.add_option("--name", o.name, "Name of the set and the cluster (default: the file's)")->value("TEXT");
  app.add_option("--json", o.json, "Write all that was measured and fitted to a file, or - for standard output alone")
      ->value("FILE");
  app.examples({"gccl launch -n 2 -- gccl calibrate -o here.json",
                "gccl launch -n 8 --hosts a,b -- gccl calibrate -o pair.json --cluster-out pair-cluster.json",
                "mpirun -n 2 gccl calibrate --backend mpi -o mpi.json --cluster-out mpi-cluster.json",
                "GCCL_PARAMETERS=here.json gccl launch -n 2 -- gccl bench"});
  return app;
}

}  // namespace

Command option_table() {
  Options o;
  Typed t;
  return calibrate_table(o, t);  // to be looked at, not to be parsed with
}

Parsed<Options> parse_options(std::vector<std::string> args) {
  Options o;
  Typed t;
  Command app = calibrate_table(o, t);
  return parse_with(app, args, o, [&] { return resolve_options(t, o); });
}

}  // namespace gccl::calibrate
