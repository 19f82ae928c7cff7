#include "cli/bench/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/bench/data.hpp"
#include "cli/bench/job.hpp"
#include "cli/output.hpp"
#include "libgccl/base/counted.hpp"
#include "libgccl/json/reader.hpp"
#include "libgccl/schedule/definition.hpp"

namespace gccl::bench {
namespace {

// Columns of the table.
constexpr std::string_view kLeft = "{:>12} {:>12} {:>6} {:>6} {:>5}  {:<22}";
constexpr std::string_view kRight = "  {:>10} {:>7} {:>7} {:>6}";

struct Timing {
  double time_us = 0, algbw_GBps = 0, busbw_GBps = 0;
  Count wrong = 0;
};

// Counts of blocks of different lengths: half, one and one and a half times the call's, symmetric as an alltoallv in
// place demands.
Count skewed(const void* each, Rank from, Rank to) {
  const Count count = *static_cast<const Count*>(each);
  return count * (1 + (Count(from) + to) % 3) / 2;
}

class Bench {
 public:
  Bench(Job& job, const Options& options) : job_(job), o_(options), each_(size_of(options.dtype)) {
    table_ = job.rank() == 0 && o_.json != "-";
  }

  // 0 all right, 1 wrong elements, 2 not enough memory.
  int run() {
    const Count largest = std::max<Count>(o_.bytes_max, job_.ranks() * Count(each_));
    if (!allocate(largest)) return 2;
    head();
    for (Collective kind : o_.collectives) run(kind);
    if (table_) print("# wrong elements: {}{}\n", wrong_, wrong_ ? " FAILED" : "");
    if (job_.rank() == 0 && !o_.json.empty()) {
      const View v = job_.layout().view(0);
      std::vector<Rank> ranks_per_node;
      for (Rank k = 0; k < v.nodes; ++k) ranks_per_node.push_back(v.node_at(k).size);
      const nlohmann::ordered_json out = {{"schema", "gccl/bench/1"},
                                          {"engine", job_.backends()},
                                          {"ranks", job_.ranks()},
                                          {"nodes", v.nodes},
                                          {"ranks_per_node", std::move(ranks_per_node)},
                                          {"iterations", o_.iterations},
                                          {"warmup", o_.warmup},
                                          {"chunks", o_.shares},
                                          {"channels", o_.lanes},
                                          {"window", o_.window},
                                          {"runs", std::move(runs_)},
                                          {"ok", wrong_ == 0}};
      write_output(o_.json, out.dump(2) + "\n");
    }
    if (!unprinted_.empty()) {
      write_stderr(fmt::format("gccl bench: {}\n", unprinted_));
      return 2;
    }
    return wrong_ ? 1 : 0;
  }

 private:
  // A part of the table. What cannot be written is an error at the end: the other ranks go on measuring.
  template <class... T>
  void print(fmt::format_string<T...> format, T&&... values) {
    try {
      write_stdout(fmt::format(format, std::forward<T>(values)...));
    } catch (const json::InputError& e) {
      unprinted_ = e.what();
    }
  }

  // A rank's buffers; with blocks of different lengths up to one and a half times as much.
  bool allocate(Count bytes) {
    bool ok = true;
    try {
      const std::size_t room = bytes + bytes / 2 + job_.ranks() * Count(each_);
      input_.resize(room);
      output_.resize(room);
    } catch (const std::exception&) {
      ok = false;
    }
    const bool all = job_.sum_over_ranks(!ok) == 0;
    if (!all && job_.rank() == 0)
      write_stderr(fmt::format("gccl bench: not enough memory for --max-bytes {}\n", o_.bytes_max));
    return all;
  }

  void head() {
    if (!table_) return;
    const View v = job_.layout().view(0);
    print("# gccl bench: {}, {} on {}; {} on {}, window {}\n", job_.backends(), counted(job_.ranks(), "rank"),
          counted(v.nodes, "node"), counted(o_.shares, "chunk"), counted(o_.lanes, "channel"), o_.window);
    print("# time: mean of {} back to back after {}, of the slowest rank\n", o_.iterations, o_.warmup);
    if (std::find(o_.algorithms.begin(), o_.algorithms.end(), "auto") != o_.algorithms.end())
      print("# auto: as the communicator plans, with its own chunks and channels\n");
  }

  bool measures(Collective kind, bool in_place) const {
    if (kind == Collective::barrier) return !in_place;  // it has no place
    return in_place ? o_.in_place : o_.out_of_place;
  }

  void head(Collective kind) {
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
    print("#\n# {}\n", name(kind));
    for (const std::string& line : lines) print("#{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }

  void run(Collective kind) {
    std::optional<Count> last;
    for (std::uint64_t bytes = o_.bytes_min;; bytes = std::max<std::uint64_t>(bytes, 1) * o_.factor) {
      const Count unit = Count(each_) * (counts_blocks(kind) ? job_.ranks() : 1);
      // Sizes below one element for each block are taken as one.
      const Count count = kind == Collective::barrier || bytes == 0 ? 0 : std::max<Count>(bytes / unit, 1);
      if (count != last) run(kind, count);
      last = count;
      if (kind == Collective::barrier || std::max<std::uint64_t>(bytes, 1) > o_.bytes_max / o_.factor) return;
    }
  }

  void run(Collective kind, Count count) {
    Call call{kind, count, has_root(kind) ? o_.root : 0};
    call.counts = skewed;
    call.table = &count;
    // As a communicator has them: no channel without a chunk.
    const Slicing stated{o_.shares, std::min({o_.lanes, o_.shares, kLanesMax}), o_.window};
    for (const std::string& asked : o_.algorithms) {
      if (asked == "auto") {
        if (const Plan best = job_.planned(call, o_.dtype); best.algorithm)
          row(*best.algorithm, best.slicing, call, true);
      } else if (asked == "all") {
        for (const Algorithm& a : algorithms())
          if (a.kind == kind && !a.variant && !a.in_switch) row(a, stated, call, false);
      } else if (const Algorithm* a = find_algorithm(kind, asked)) {
        row(*a, stated, call, false);
      }
    }
  }

  // Elements of the rank with the most to send or to hold: what nccl-tests calls the size.
  Count size_of_call(const Call& call) const {
    Count most = 0;
    for (Rank r = 0; r < job_.ranks(); ++r)
      most = std::max({most, input_of(call, job_.ranks(), r).count, output_of(call, job_.ranks(), r).count});
    return most;
  }

  // `slicing`: how the calls are cut up.
  void row(const Algorithm& a, const Slicing& slicing, Call call, bool by_auto) {
    const Count bytes = size_of_call(call) * each_;
    std::string line =
        fmt::format(kLeft, bytes, call.count, call.kind == Collective::barrier ? "-" : name(o_.dtype),
                    reduces(call.kind) ? name(o_.op) : "-", has_root(call.kind) ? std::to_string(call.root) : "-",
                    fmt::format("{}{}", by_auto ? "auto:" : "", a.name));
    bool served = false;
    for (const bool in_place : {false, true}) {
      if (!measures(call.kind, in_place)) continue;
      call.in_place = in_place;
      if (!a.can(call, job_.layout().view(0))) {
        line += fmt::format(kRight, "-", "-", "-", "-");
        continue;
      }
      served = true;
      const Timing t = measure(a, call, bytes, by_auto);
      wrong_ += t.wrong;
      line += fmt::format("  {:>10.2f} {:>7.3f} {:>7.3f} {:>6}", t.time_us, t.algbw_GBps, t.busbw_GBps, t.wrong);
      if (job_.rank() == 0 && !o_.json.empty())
        runs_.push_back({{"collective", name(call.kind)},
                         {"algorithm", a.name},
                         {"auto", by_auto},
                         {"engine", job_.backends()},
                         {"ranks", job_.ranks()},
                         {"bytes", bytes},
                         {"count", call.count},
                         {"dtype", name(o_.dtype)},
                         {"op", reduces(call.kind) ? nlohmann::ordered_json(name(o_.op)) : nullptr},
                         {"root", has_root(call.kind) ? nlohmann::ordered_json(call.root) : nullptr},
                         {"in_place", in_place},
                         {"chunks", slicing.shares},
                         {"channels", slicing.lanes},
                         {"window", slicing.window},
                         {"time_us", t.time_us},
                         {"algbw_GBps", t.algbw_GBps},
                         {"busbw_GBps", t.busbw_GBps},
                         {"wrong", t.wrong}});
    }
    if (!table_ || !served) return;
    if (headed_ != call.kind) head(call.kind);
    headed_ = call.kind;
    print(" {}\n", line);
  }

  // First one checked call on fresh data, then the timed ones: these may reduce their own results over and over.
  Timing measure(const Algorithm& a, const Call& call, Count bytes, bool by_auto) {
    const Rank n = job_.ranks(), r = job_.rank();
    const auto at = [&](const Region& x) {
      return (x.buffer() == Buffer::input ? input_ : output_).data() + x.offset() * each_;
    };
    const Region from = input_of(call, n, r), to = output_of(call, n, r);
    // No result has an element of these bytes, so one that was never written counts as wrong.
    std::memset(output_.data(), 0xa5, output_count(call, n, r) * each_);
    fill_input(call, o_.dtype, o_.op, n, r, at(from));
    once(a, call, by_auto);
    const std::uint64_t mine = count_wrong(call, o_.dtype, o_.op, n, r, at(to));

    for (unsigned i = 0; i < o_.warmup; ++i) once(a, call, by_auto);
    job_.barrier();
    const auto begin = std::chrono::steady_clock::now();
    for (unsigned i = 0; i < o_.iterations; ++i) once(a, call, by_auto);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;

    Timing t;
    t.time_us = job_.max_over_ranks(took.count() / o_.iterations);
    t.wrong = job_.sum_over_ranks(mine);
    t.algbw_GBps = double(bytes) / (t.time_us * 1e3);
    t.busbw_GBps = t.algbw_GBps * bus_factor(call.kind, n);
    return t;
  }

  void once(const Algorithm& a, const Call& call, bool by_auto) {
    const Slicing slicing{o_.shares, o_.lanes, o_.window};
    const Status s = job_.run(by_auto ? nullptr : &a, call, o_.dtype, o_.op, input_.data(), output_.data(), slicing);
    if (s.ok()) return;
    write_stderr(fmt::format("gccl bench: rank {}: {}\n", job_.rank(), printable(s.text())));
    job_.abort();
  }

  Job& job_;
  const Options& o_;
  const unsigned each_;
  bool table_;
  std::vector<std::byte> input_, output_;
  Count wrong_ = 0;
  std::string unprinted_;             // why
  std::optional<Collective> headed_;  // whose rows come below the last heading
  nlohmann::ordered_json runs_ = nlohmann::ordered_json::array();
};

}  // namespace

int run(const GCCL_Config& config, const std::vector<std::string>& args, Parse parse, std::string* error) {
  std::unique_ptr<Job> met;
  if (const Status s = Job::meet(config, "gccl bench", &met); !s.ok()) return *error = s.text(), 2;
  Job& job = *met;
  // Every rank parses the same words and comes to the same end; rank 0 speaks.
  const auto parsed = parse(args, job.ranks());
  if (const WrongOptions* wrong = std::get_if<WrongOptions>(&parsed)) {
    if (job.rank() == 0) write_stderr(fmt::format("gccl bench: {}\n", printable(wrong->text)));
    return 2;
  }
  const Options& o = std::get<Options>(parsed);

  bool writable = true;
  if (job.rank() == 0 && !o.json.empty() && o.json != "-") {
    try {
      check_writable(o.json);
    } catch (const json::InputError& e) {
      write_stderr(fmt::format("gccl bench: {}\n", printable(e.what())));
      writable = false;
    }
  }
  if (job.sum_over_ranks(!writable) > 0) return 2;
  if (o.ranks_per_node) job.use_layout(Layout::regular(job.ranks(), o.ranks_per_node));
  return Bench(job, o).run();
}

}  // namespace gccl::bench
