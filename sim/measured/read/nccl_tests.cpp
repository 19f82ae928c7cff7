// What nccl-tests and rccl-tests print, of any version: the columns are found by the line that names them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "libgccl/base/quoted.hpp"
#include "sim/measured/read/readers.hpp"

namespace gccl::sim {
namespace {

constexpr std::size_t kNameMax = 64;  // of a collective

struct Names {
  std::vector<std::string> names;  // each once
  bool programs = false;
};

// "all_reduce" of each "all_reduce_perf" in a line that ends there, as the name of a program does; of those in longer
// names, "all_reduce_perf.log", where there are no others.
Names names_in(std::string_view line) {
  constexpr std::string_view kOthers[] = {"hypercube", "all_reduce_bias"};  // GCCL has no counterpart of
  std::vector<std::string> programs, others;
  for (std::size_t at = line.find("_perf"); at != line.npos; at = line.find("_perf", at + 5)) {
    std::size_t begin = at;
    while (begin > 0 && at - begin < kNameMax &&
           (std::islower(static_cast<unsigned char>(line[begin - 1])) || line[begin - 1] == '_'))
      --begin;
    const std::string name(line.substr(begin, at - begin));
    if (name.empty() ||
        (!measured_collective(name) && std::find(std::begin(kOthers), std::end(kOthers), name) == std::end(kOthers)))
      continue;
    std::string_view behind = line.substr(at + 5);
    if (behind.starts_with("_mpi")) behind.remove_prefix(4);
    auto& names =
        behind.empty() || std::string_view(" \t\r\"';,|&)").find(behind[0]) != behind.npos ? programs : others;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return programs.empty() ? Names{others, false} : Names{programs, true};
}

// Where a table's lines have what.
struct Columns {
  std::size_t before = 0;            // of time: size, count and type where it was not shortened, operation, root
  std::optional<std::size_t> redop;  // may be left out in a line
  bool root = false;                 // the last one before time is the root
  std::size_t words = 0;             // of a whole line
  std::optional<std::size_t> algo, proto;
  bool checked = false, counted = false, cpu = false, milliseconds = false;
};

// "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong"; nothing where it is none.
std::optional<Columns> columns_in(std::vector<std::string_view> names) {
  if (names[0].starts_with('#')) names[0].remove_prefix(1);
  if (names[0].empty()) names.erase(names.begin());
  if (names.empty() || (names[0] != "size" && names[0] != "bytes")) return std::nullopt;
  const auto find = [&](std::string_view name) { return std::find(names.begin(), names.end(), name); };
  Columns c;
  auto time = find("time");
  if (time == names.end()) {
    time = find("cputime");
    c.cpu = true;
  }
  if (time == names.end() || find("busbw") == names.end()) return std::nullopt;
  c.before = std::size_t(time - names.begin());
  if (c.before < 1 || names.end() - time < 3) return std::nullopt;
  if (const auto redop = find("redop"); redop < time && redop - names.begin() > 2)
    c.redop = std::size_t(redop - names.begin());
  c.root = time[-1] == "root";
  c.words = names.size() + (find("timestamp") != names.end());  // a date and a time
  c.counted = names.end() - time > 3 && time[3] == "#wrong";
  c.checked = c.counted || (names.end() - time > 3 && (time[3] == "error" || time[3] == "res"));
  c.milliseconds = names[0] == "bytes" && names[1] == "N";  // until early 2019
  const auto place_of = [&](std::string_view name) {
    const auto at = find(name);
    return at == names.end() ? std::nullopt : std::optional(std::size_t(at - names.begin()));
  };
  c.algo = place_of("algo");
  c.proto = place_of("proto");
  return c;
}

// What a test says of its ranks, above its table.
struct RankLines {
  std::map<std::string, Rank> of_host;
  std::set<std::pair<std::string, std::string>> ranks, cards;  // by group; by host
  Count highest = 0, of_process = 0;                           // the last rank's number; 0: not said
  bool groups = false, several = false, one_name = false;

  // "# Rank 0 Group 0 Pid 1234 on HOST device 0 [0000:07:00] NVIDIA A100". Whether that is such a line.
  bool read_rank(const std::vector<std::string_view>& words) {
    const auto find = [&](std::string_view word) { return std::find(words.begin(), words.end(), word); };
    const auto rank = find("Rank"), on = find("on"), group = find("Group"), device = find("device");
    if (rank == words.end() || on == words.end() || on + 1 == words.end() || rank + 1 == words.end()) return false;
    const auto number = count_in(rank[1]);
    if (!number) return false;
    const std::string host(on[1]);
    ++of_host[host];
    highest = std::max(highest, *number);
    const bool grouped = group != words.end() && group + 1 != words.end();
    if (grouped && group[1] != "0") groups = true;
    several |= !ranks.emplace(grouped ? group[1] : "", rank[1]).second;
    const auto bus = std::find_if(device, words.end(), [](std::string_view word) { return word.starts_with('['); });
    // "[0x07]" of older versions may be the same for all cards of a machine.
    if (bus != words.end() && bus->find(':') != bus->npos) one_name |= !cards.emplace(host, *bus).second;
    return true;
  }

  // Why its nodes and cards are not known; empty where they are, or where nothing was said of them.
  std::string unknown() const {
    if (ranks.empty()) return {};
    // Each process's list is cut where it gets too long.
    if (highest + 1 != ranks.size() || (of_process > 0 && ranks.size() % of_process != 0))
      return "some of its \"# Rank\" lines are missing; state --nodes and --cards-per-node";
    if (one_name) return "several of its nodes have the same name; state --nodes and --cards-per-node";
    return {};
  }
};

bool has(const std::vector<std::string_view>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// A comment that has lost its "#", as where a web page took it for a heading.
bool is_bare_comment(const std::vector<std::string_view>& words) {
  return is_bare_nccl_tests(words) || (words[0] == "Rank" && has(words, "Pid") && has(words, "device")) ||
         words[0] == "out-of-place" || words[0] == "in-place";
}

struct BegunRow {
  FilePlace at;
  std::vector<std::string_view> words;
};

class NcclTestsReader {
 public:
  NcclTestsReader(std::string_view text, const std::string& file, RowCollector& to) : file_(file), to_(to) {
    const std::vector<TextLine> lines = lines_of(text);
    std::set<std::string> names;
    for (const TextLine& line : lines)
      if (const Names found = names_in(line.text); found.names.size() == 1) names.insert(found.names[0]);
    if (names.size() == 1) only_name_ = *names.begin();
    for (const TextLine& line : lines) read(line);
    end_begun();
  }

 private:
  void read(const TextLine& line) {
    std::vector<std::string_view> words = words_of(line.text);
    if (words.empty()) return;
    name_collective(line.text, words);
    if (words[0].starts_with('#') || is_bare_comment(words)) return read_comment(words);
    if (!columns_) {
      // A launcher's "2 of 8" is none of a table of size, time, algbw and busbw.
      if (words.size() >= 4 && is_number_row(words))
        to_.skip({file_, line.number}, "no line above it names its columns");
      return;
    }
    const FilePlace at{file_, line.number};
    for (std::string_view& word : words) word = without_tag_behind(word);
    if (complete_begun(at, words)) return;
    if (begin_row(at, words)) return;
    if (count_in(words[0])) {
      end_begun();
      add_row(at, words);
    } else if (words.size() == columns_->words && number_in(words[columns_->before])) {
      to_.skip(at, fmt::format("found {}, expected a size in bytes", gccl::quoted(words[0])));
    }
  }

  // A row is printed in pieces, before and behind what is timed, and NCCL's own lines come in between: of
  // "64 16 float sum -1node7:42:42 [0] NCCL INFO ..." the words before its time. Whether the line is such a beginning.
  bool begin_row(const FilePlace& at, const std::vector<std::string_view>& words) {
    const std::size_t before = columns_->before;
    if (before < 3 || words.size() < before || !count_in(words[0]) || !count_in(words[1]) || !measured_dtype(words[2]))
      return false;
    if (words.size() > before && (!columns_->root || number_in(words[before]))) return false;
    end_begun();
    begun_ = BegunRow{at, {words.begin(), words.begin() + std::ptrdiff_t(before)}};
    return true;
  }
  // The measures of the row that was begun above, or those of its calls out of place alone.
  bool complete_begun(const FilePlace& at, const std::vector<std::string_view>& words) {
    if (!begun_) return false;
    const std::size_t rest = columns_->words - columns_->before, first = columns_->checked ? 4 : 3;
    const bool half = words.size() == first && rest == 2 * first;
    if ((words.size() != rest && !half) || !are_measures(*count_in(begun_->words[0]), words)) return false;
    std::vector<std::string_view> row = begun_->words;
    begun_.reset();
    row.insert(row.end(), words.begin(), words.end());
    row.resize(columns_->words, "N/A");
    add_row(at, row);
    return true;
  }
  // A time and two bandwidths that fit it; by old versions both are the bus bandwidth.
  bool are_measures(Count bytes, const std::vector<std::string_view>& words) const {
    const auto time = number_in(words[0]), algbw = number_in(words[1]), busbw = number_in(words[2]);
    if (!time || !algbw || !busbw || *time <= 0) return false;
    const double GBps = double(bytes) / (*time * (columns_->milliseconds ? 1e6 : 1e3));
    constexpr double kRounding = 0.01;
    return *algbw >= 0.4 * GBps - kRounding && *algbw <= 1.05 * GBps + kRounding;
  }
  void end_begun() {
    if (begun_) skip_odd(begun_->at);
    begun_.reset();
  }

  // Without "[0]" at its end: MPICH's mpiexec -l puts it before each piece of a line, not before each line.
  static std::string_view without_tag_behind(std::string_view word) {
    const std::size_t open = word.rfind('[');
    if (!word.ends_with(']') || open == word.npos || open == 0 || open + 2 == word.size()) return word;
    const std::string_view rank = word.substr(open + 1, word.size() - open - 2), number = word.substr(0, open);
    return count_in(rank) && number_in(number) ? number : word;
  }

  // "all_reduce_perf" in a command line, or "# Collective test starting: all_reduce_perf". A line that names several
  // lists programs.
  void name_collective(std::string_view line, const std::vector<std::string_view>& words) {
    if (line.find("Collective test concluded") != line.npos) return;
    if (line.find("Collective test starting:") != line.npos) {
      std::string_view program = words.back();
      program.remove_prefix(program.rfind('/') + 1);
      if (const std::size_t perf = program.find("_perf"); perf != program.npos) program = program.substr(0, perf);
      named(std::string(program), true);
    } else if (const Names found = names_in(line); found.names.size() == 1) {
      named(found.names[0], found.programs);
    }
  }
  void named(const std::string& name, bool program) {
    if (!program && named_ && by_program_) return;
    collective_ = name;
    by_program_ = program;
    named_ = true;
  }

  void read_comment(const std::vector<std::string_view>& words) {
    const auto find = [&](std::string_view word) { return std::find(words.begin(), words.end(), word); };
    if (is_nccl_tests_settings(words)) {  // another test begins
      end_begun();
      rank_lines_ = {};
      rank_lines_.of_process = setting(words, "nThread") * setting(words, "nGpus");
      in_place_ = false;
      columns_.reset();
      if (!named_ && collective_ != only_name_) collective_.clear();
      guessed_ = !named_;
      named_ = false;
      ++test_;
      return;
    }
    if (rank_lines_.read_rank(words)) return;
    // The line above the names: rccl-tests' -O 0 prints the columns of calls in place alone.
    const bool in_place = find("in-place") != words.end(), out_of_place = find("out-of-place") != words.end();
    if (in_place || out_of_place) in_place_ = !out_of_place;
    if (const auto columns = columns_in(words)) {
      end_begun();
      columns_ = columns;
    }
  }

  // 1 where it is not said: "nGpus 8", rccl-tests' "nGpus: 8".
  static Count setting(const std::vector<std::string_view>& words, std::string_view name) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i)
      if (words[i].substr(0, words[i].find(':')) == name) return count_in(words[i + 1]).value_or(1);
    return 1;
  }

  void skip_odd(const FilePlace& at) {
    to_.skip(at, fmt::format("not a line of nccl-tests' table: expected the {} words that its header names",
                             columns_->words));
  }
  void add_row(FilePlace at, const std::vector<std::string_view>& words) {
    std::size_t first = columns_->before;  // of the measures
    if (words.size() + 1 == columns_->words && columns_->redop && number_in(words[*columns_->redop]))
      --first;  // without an operation
    else if (words.size() != columns_->words)
      return skip_odd(at);
    Measurement m;
    m.at = at;
    m.bytes = *count_in(words[0]);
    const auto time = number_in(words[first]), busbw = number_in(words[first + 2]);
    if ((first > 1 && !count_in(words[1])) || !time || !busbw || *time < 0) return skip_odd(at);
    m.time_us = *time;
    if (first > 2) {
      const auto type = measured_dtype(words[2]);
      if (!type) return to_.skip(at, no_dtype(words[2]));
      m.dtype = *type;
    }
    // A number of elements; before, the largest difference, which has an asterisk where it is too large.
    if (columns_->checked)
      if (const auto wrong = number_in(words[first + 3]);
          words[first + 3].ends_with('*') || (columns_->counted && wrong && *wrong > 0))
        return to_.skip(at, "the test found wrong elements");
    if (columns_->cpu) return to_.skip(at, "its time is that of processors (cputime), expected that of the collective");
    if (rank_lines_.several)
      return to_.skip(at,
                      "printed by several processes, each with a rank 0 of its own: was the test built with MPI=1?");
    if (rank_lines_.groups) return to_.skip(at, "measured in several communicators at the same time");
    if (std::string why = rank_lines_.unknown(); !why.empty()) {
      if (!to_.stated().nodes || !to_.stated().cards) return to_.skip(at, std::move(why));
    } else if (!rank_lines_.of_host.empty()) {
      m.nodes = Rank(rank_lines_.of_host.size());
      m.cards = rank_lines_.of_host.begin()->second;
      for (const auto& [host, ranks] : rank_lines_.of_host)
        if (ranks != m.cards) return to_.skip(at, "hosts with different numbers of ranks");
    }
    m.algorithm = kNcclChoice;
    // Behind what may be left out.
    const std::size_t shift = columns_->words - words.size();
    if (columns_->algo) m.algorithm = fmt::format("NCCL_ALGO={}", words[*columns_->algo - shift]);
    if (columns_->proto) m.protocol = words[*columns_->proto - shift];
    const std::string operation(columns_->redop && shift == 0 ? words[*columns_->redop] : "");
    const auto named = measured_collective(collective_);
    if (!guessed_ || !named || !contradicts(operation, *named)) m.collective = collective_;
    if (const auto& stated_kind = to_.stated().collective;
        m.collective.empty() && stated_kind && contradicts(operation, *stated_kind))
      return to_.skip(at, fmt::format("its operation is {}, which --collective is not of", gccl::quoted(operation)));
    m.in_place = in_place_;
    m.source = file_;
    m.test = test_;
    StatedMeasures stated{std::string(words[first]), std::string(words[first + 1]), std::string(words[first + 2])};
    // For some years both were the bus bandwidth for collectives of blocks.
    const auto kind = to_.kind_of(m.collective);
    if ((kind == Collective::allgather || kind == Collective::reduce_scatter) && stated.algbw == stated.busbw)
      stated.algbw.clear();
    if (columns_->milliseconds) {
      m.time_us = *time * 1000;
      stated.time_us = fmt::format("{:.0f}", m.time_us);  // they have three decimals
    }
    to_.add(std::move(m), false, stated);
  }

  // Whether a row's operation says that its test is not of that collective. sendrecv_perf's rows have one, too.
  static bool contradicts(std::string_view operation, Collective kind) {
    if (kind == Collective::sendrecv) return false;
    const bool reduces =
        kind == Collective::allreduce || kind == Collective::reduce || kind == Collective::reduce_scatter;
    return !operation.empty() && reduces == (operation == "none");
  }

  const std::string& file_;
  RowCollector& to_;
  std::string only_name_;  // where the whole file has one
  std::string collective_;
  bool named_ = false, by_program_ = false;  // since the last test began
  bool guessed_ = false;                     // the test has no name of its own
  std::size_t test_ = 0;
  RankLines rank_lines_;
  bool in_place_ = false;
  std::optional<Columns> columns_;
  std::optional<BegunRow> begun_;
};

}  // namespace

bool is_nccl_tests_settings(const std::vector<std::string_view>& words) {
  return std::any_of(words.begin(), words.end(), [](std::string_view word) {
    return word == "nThread" || word == "nGpus" || word == "nThread:" || word == "nGpus:";
  });
}

bool is_bare_nccl_tests(const std::vector<std::string_view>& words) {
  return (words[0] == "nThread" && has(words, "nGpus") && has(words, "minBytes")) ||
         (words[0] == "size" && columns_in(words));
}

bool is_nccl_tests_header(const std::vector<std::string_view>& words) { return columns_in(words).has_value(); }

void read_nccl_tests(std::string_view text, const std::string& file, RowCollector& to) {
  NcclTestsReader(text, file, to);
}

}  // namespace gccl::sim
