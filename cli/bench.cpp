#include "cli/bench.hpp"

#if GCCL_HAVE_MPI

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/bench_data.hpp"
#include "cli/bench_options.hpp"
#include "cli/output.hpp"
#include "libgccl/backends/mpi/mpi_communicator.hpp"
#include "libgccl/select/cheapest.hpp"
#include "sim/json/reader.hpp"
#include "sim/scenario/sizes.hpp"

namespace gccl {
namespace bench {
namespace {

// Ranks that talk through shared memory, nodes that talk over a 100 Gbit/s network, as a guess where nothing has been
// measured: "auto" only has to be a sensible choice.
CostModel default_model(Rank ranks_per_node, unsigned element_bytes) {
  CostModel m;
  m.node = {1000, 0.2};
  m.net = {2500, 0.08};
  m.net_all = {2500, 0.08 * ranks_per_node};
  m.overhead_ns = 300;
  m.combine_ns_per_byte = 0.1;
  m.copy_ns_per_byte = 0.1;
  m.element_bytes = element_bytes;
  return m;
}
constexpr std::string_view kDefaultModelText =
    "auto: the cheapest closed form for 1 us and 5 GB/s in a node, 2.5 us and 12.5 GB/s between nodes";

// Columns of the table.
constexpr std::string_view kLeft = "{:>12} {:>12} {:>6} {:>6} {:>5}  {:<22}";
constexpr std::string_view kRight = "  {:>10} {:>7} {:>7} {:>6}";

// MPI from here to the end of the scope.
class MpiSession {
 public:
  MpiSession() { MPI_Init(nullptr, nullptr); }
  ~MpiSession() { MPI_Finalize(); }
  MpiSession(const MpiSession&) = delete;
};

struct Timing {
  double time_us = 0, algbw_GBps = 0, busbw_GBps = 0;
  Count wrong = 0;
};

// Counts of alltoallv: half, one and one and a half times the call's, symmetric as a call in place demands.
Count skewed(const void* each, Rank from, Rank to) {
  const Count count = *static_cast<const Count*>(each);
  return count * (1 + (Count(from) + to) % 3) / 2;
}

bool counts_blocks(Collective kind) {
  switch (kind) {
    case Collective::allgather:
    case Collective::reduce_scatter:
    case Collective::gather:
    case Collective::scatter:
    case Collective::alltoall:
    case Collective::alltoallv: return true;
    default: return false;
  }
}

class Bench {
 public:
  Bench(MpiCommunicator& comm, const Options& options) : comm_(comm), o_(options), each_(size_of(options.dtype)) {
    table_ = comm.rank() == 0 && o_.json != "-";
  }

  // 0 all right, 1 wrong elements, 2 not enough memory.
  int run() {
    const Count largest = std::max<Count>(o_.bytes_max, comm_.size() * Count(each_));
    if (!allocate(largest)) return 2;
    head();
    for (Collective kind : o_.collectives) run(kind);
    if (table_) fmt::print("# wrong elements: {}{}\n", wrong_, wrong_ ? " FAILED" : "");
    if (comm_.rank() == 0 && !o_.json.empty()) {
      const nlohmann::ordered_json out = {{"schema", "gccl/bench/1"},
                                          {"engine", "mpi"},
                                          {"ranks", comm_.size()},
                                          {"nodes", comm_.view().nodes},
                                          {"iterations", o_.iterations},
                                          {"warmup", o_.warmup},
                                          {"shares", o_.shares},
                                          {"lanes", o_.lanes},
                                          {"window", o_.window},
                                          {"runs", std::move(runs_)},
                                          {"ok", wrong_ == 0}};
      o_.json == "-" ? write_stdout(out.dump(2) + "\n") : write_output(o_.json, out.dump(2) + "\n");
    }
    return wrong_ ? 1 : 0;
  }

 private:
  // A rank's buffers; alltoallv sends up to one and a half times as much.
  bool allocate(Count bytes) {
    int ok = 1, all = 0;
    try {
      const std::size_t room = bytes + bytes / 2 + comm_.size() * Count(each_);
      input_.resize(room);
      output_.resize(room);
    } catch (const std::exception&) {
      ok = 0;
    }
    MPI_Allreduce(&ok, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!all && comm_.rank() == 0)
      fmt::print(stderr, "gccl bench: not enough memory for --max-bytes {}\n", o_.bytes_max);
    return all;
  }

  void head() const {
    if (!table_) return;
    const View v = comm_.view();
    fmt::print("# gccl bench: mpi, {} rank{} on {} node{}; {} share{} on {} lane{}, window {}\n", comm_.size(),
               comm_.size() == 1 ? "" : "s", v.nodes, v.nodes == 1 ? "" : "s", o_.shares, o_.shares == 1 ? "" : "s",
               o_.lanes, o_.lanes == 1 ? "" : "s", o_.window);
    fmt::print("# time: mean of {} back to back after {}, of the slowest rank\n", o_.iterations, o_.warmup);
    if (std::find(o_.algorithms.begin(), o_.algorithms.end(), "auto") != o_.algorithms.end())
      fmt::print("# {}\n", kDefaultModelText);
  }

  bool measures(Collective kind, bool in_place) const {
    if (kind == Collective::barrier) return !in_place;  // it has no place
    return in_place ? o_.in_place : o_.out_of_place;
  }

  void head(Collective kind) const {
    if (!table_) return;
    std::string lines[3] = {std::string(70, ' '),
                            fmt::format(kLeft, "size", "count", "type", "redop", "root", "algorithm"),
                            fmt::format(kLeft, "(B)", "(elements)", "", "", "", "")};
    for (const bool in_place : {false, true}) {
      if (!measures(kind, in_place)) continue;
      lines[0] += fmt::format("  {:^33}", in_place ? "in place" : "out of place");
      lines[1] += fmt::format(kRight, "time", "algbw", "busbw", "#wrong");
      lines[2] += fmt::format(kRight, "(us)", "(GB/s)", "(GB/s)", "");
    }
    fmt::print("#\n# {}\n", name(kind));
    for (const std::string& line : lines) fmt::print("#{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }

  void run(Collective kind) {
    std::optional<Count> last;
    for (std::uint64_t bytes = o_.bytes_min;; bytes = std::max<std::uint64_t>(bytes, 1) * o_.factor) {
      const Count unit = Count(each_) * (counts_blocks(kind) ? comm_.size() : 1);
      // Sizes below one element for each block are taken as one.
      const Count count = kind == Collective::barrier || bytes == 0 ? 0 : std::max<Count>(bytes / unit, 1);
      if (count != last) run(kind, count);
      last = count;
      if (kind == Collective::barrier || bytes > o_.bytes_max / o_.factor) return;
    }
  }

  void run(Collective kind, Count count) {
    Call call{kind, count, has_root(kind) ? o_.root : 0};
    call.counts = skewed;
    call.table = &count;
    for (const std::string& asked : o_.algorithms) {
      if (asked == "auto") {
        const CostModel m = default_model(comm_.layout().view(0).rails, each_);
        if (const Algorithm* best = cheapest(call, comm_.layout().view(0), m)) row(*best, call, true);
      } else if (asked == "all") {
        for (const Algorithm& a : algorithms())
          if (a.kind == kind && !a.variant) row(a, call, false);
      } else if (const Algorithm* a = find_algorithm(kind, asked)) {
        row(*a, call, false);
      }
    }
  }

  // Elements of the rank with the most to send or to hold: what nccl-tests calls the size.
  Count size_of_call(const Call& call) const {
    Count most = 0;
    for (Rank r = 0; r < comm_.size(); ++r)
      most = std::max({most, input_of(call, comm_.size(), r).count, output_of(call, comm_.size(), r).count});
    return most;
  }

  void row(const Algorithm& a, Call call, bool by_auto) {
    const Count bytes = size_of_call(call) * each_;
    std::string line =
        fmt::format(kLeft, bytes, call.count, call.kind == Collective::barrier ? "-" : name(o_.dtype),
                    reduces(call.kind) ? name(o_.op) : "-", has_root(call.kind) ? std::to_string(call.root) : "-",
                    fmt::format("{}{}", by_auto ? "auto:" : "", a.name));
    bool served = false;
    for (const bool in_place : {false, true}) {
      if (!measures(call.kind, in_place)) continue;
      call.in_place = in_place;
      if (!a.can(call, comm_.layout().view(0))) {
        line += fmt::format(kRight, "-", "-", "-", "-");
        continue;
      }
      served = true;
      const Timing t = measure(a, call, bytes);
      wrong_ += t.wrong;
      line += fmt::format("  {:>10.2f} {:>7.3f} {:>7.3f} {:>6}", t.time_us, t.algbw_GBps, t.busbw_GBps, t.wrong);
      if (comm_.rank() == 0 && !o_.json.empty())
        runs_.push_back({{"collective", name(call.kind)},
                         {"algorithm", a.name},
                         {"auto", by_auto},
                         {"engine", "mpi"},
                         {"ranks", comm_.size()},
                         {"bytes", bytes},
                         {"count", call.count},
                         {"dtype", name(o_.dtype)},
                         {"op", reduces(call.kind) ? nlohmann::ordered_json(name(o_.op)) : nullptr},
                         {"root", has_root(call.kind) ? nlohmann::ordered_json(call.root) : nullptr},
                         {"in_place", in_place},
                         {"time_us", t.time_us},
                         {"algbw_GBps", t.algbw_GBps},
                         {"busbw_GBps", t.busbw_GBps},
                         {"wrong", t.wrong}});
    }
    if (!table_ || !served) return;
    if (headed_ != call.kind) head(call.kind);
    headed_ = call.kind;
    fmt::print(" {}\n", line);
    std::fflush(stdout);
  }

  // First one checked call on fresh data, then the timed ones: these may reduce their own results over and over.
  Timing measure(const Algorithm& a, const Call& call, Count bytes) {
    const Rank n = comm_.size(), r = comm_.rank();
    const auto at = [&](const Region& x) {
      return (x.buffer == Buffer::input ? input_ : output_).data() + x.offset * each_;
    };
    const Region from = input_of(call, n, r), to = output_of(call, n, r);
    // No result has an element of these bytes, so one that was never written counts as wrong.
    std::memset(output_.data(), 0xa5, output_count(call, n, r) * each_);
    fill_input(call, o_.dtype, o_.op, n, r, at(from));
    once(a, call);
    const std::uint64_t mine = count_wrong(call, o_.dtype, o_.op, n, r, at(to));

    for (unsigned i = 0; i < o_.warmup; ++i) once(a, call);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (unsigned i = 0; i < o_.iterations; ++i) once(a, call);
    const double mean_us = (MPI_Wtime() - begin) * 1e6 / o_.iterations;

    Timing t;
    MPI_Allreduce(&mean_us, &t.time_us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &t.wrong, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    t.algbw_GBps = double(bytes) / (t.time_us * 1e3);
    t.busbw_GBps = t.algbw_GBps * sim::bus_factor(call.kind, n);
    return t;
  }

  void once(const Algorithm& a, const Call& call) {
    const Slicing slicing{o_.shares, o_.lanes, o_.window};
    const Status s = comm_.run(a, call, o_.dtype, o_.op, input_.data(), output_.data(), slicing);
    if (s.ok()) return;
    // The other ranks may be waiting for this one's messages: nothing gentler ends them.
    fmt::print(stderr, "gccl bench: rank {}: {}\n", comm_.rank(), s.text());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

  MpiCommunicator& comm_;
  const Options& o_;
  const unsigned each_;
  bool table_;
  std::vector<std::byte> input_, output_;
  Count wrong_ = 0;
  std::optional<Collective> headed_;  // whose rows come below the last heading
  nlohmann::ordered_json runs_ = nlohmann::ordered_json::array();
};

int command_bench(const std::vector<std::string>& args) {
  const MpiSession mpi;
  int ranks = 0, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);

  // Every rank parses the same words and comes to the same end; rank 0 speaks.
  const auto parsed = parse_options(args, Rank(ranks));
  if (const Help* help = std::get_if<Help>(&parsed)) {
    if (rank == 0) write_stdout(help->text);
    return 0;
  }
  if (const Wrong* wrong = std::get_if<Wrong>(&parsed)) {
    if (rank == 0) fmt::print(stderr, "gccl bench: {}\n", wrong->text);
    return 2;
  }
  const Options& o = std::get<Options>(parsed);

  int writable = 1;
  if (rank == 0 && !o.json.empty() && o.json != "-") {
    try {
      check_writable(o.json);
    } catch (const json::InputError& e) {
      fmt::print(stderr, "gccl bench: {}\n", e.what());
      writable = 0;
    }
  }
  MPI_Bcast(&writable, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (!writable) return 2;

  std::unique_ptr<MpiCommunicator> comm;
  if (const Status s = MpiCommunicator::create(MPI_COMM_WORLD, &comm); !s.ok()) {
    fmt::print(stderr, "gccl bench: rank {}: {}\n", rank, s.text());
    return 1;
  }
  if (o.ranks_per_node) comm->use_layout(Layout::regular(Rank(ranks), o.ranks_per_node));
  return Bench(*comm, o).run();
}

}  // namespace
}  // namespace bench

void add_bench(CLI::App& app, int& exit_code) {
  CLI::App* sub =
      app.add_subcommand("bench", "Times collectives on a real backend (under mpirun); --help lists its options");
  sub->set_help_flag();
  sub->prefix_command();
  sub->callback([sub, &exit_code] { exit_code = bench::command_bench(sub->remaining()); });
}

}  // namespace gccl

#endif
