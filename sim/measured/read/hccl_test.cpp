// What Ascend's hccl_test prints: a table of sizes and times, separated by bars.
#include <algorithm>
#include <set>
#include <utility>

#include "sim/measured/read/readers.hpp"

namespace gccl::sim {
namespace {

constexpr std::string_view kOther = "alltoallvc";  // GCCL has no counterpart of

class HcclTestReader {
 public:
  HcclTestReader(std::string_view text, const std::string& file, RowCollector& to) : file_(file), to_(to) {
    const std::vector<TextLine> lines = lines_of(text);
    for (const TextLine& line : lines) note_failure(line.text);
    tests_ = 0;
    for (const TextLine& line : lines) {
      const std::vector<std::string_view> words = words_of(line.text);
      if (words.empty()) continue;
      name_collective(words);
      if (is_hccl_test_header(words))
        begin_table(words);
      else if (count_in(words[0]) && words.size() > 1 && words[1] == "|")
        add_row({file, line.number}, words);
      else if (is_number_row(words))
        to.skip({file, line.number}, "of another program's table");
    }
  }

 private:
  // "local rank_id 3, check result failed, 8192 | 764.55 | ..." of any rank; rank 0 says how its own check went.
  void note_failure(std::string_view line) {
    if (is_hccl_test_header(words_of(line))) ++tests_;
    constexpr std::string_view kFailed = "check result failed,";
    const std::size_t at = line.find(kFailed);
    if (at == line.npos) return;
    const std::vector<std::string_view> words = words_of(line.substr(at + kFailed.size()));
    if (!words.empty())
      if (const auto bytes = count_in(words[0])) failed_.emplace(tests_, *bytes);
  }

  // "./bin/all_reduce_test -b 8K -e 1G" in a command line. A line that names several lists programs.
  void name_collective(const std::vector<std::string_view>& words) {
    std::string found;
    for (std::string_view word : words) {
      word.remove_prefix(word.rfind('/') + 1);
      if (!word.ends_with("_test") || word == "hccl_test") continue;
      word.remove_suffix(5);
      if (word != kOther && !measured_collective(word)) continue;
      if (!found.empty() && found != word) return;
      found = word;
    }
    if (!found.empty()) named_ = std::move(found);
  }

  void begin_table(const std::vector<std::string_view>& words) {
    columns_.clear();
    for (const std::string_view word : words)
      if (word != "|") columns_.push_back(word);
    collective_ = std::move(named_);
    named_.clear();
    ++tests_;
  }

  // "8192  |  764.55  |  0.00998  | success"
  void add_row(FilePlace at, const std::vector<std::string_view>& words) {
    if (columns_.empty()) return to_.skip(at, "no line above it names its columns");
    std::vector<std::string_view> cells;
    for (const std::string_view word : words)
      if (word != "|") cells.push_back(word);
    if (cells.size() != columns_.size() || words.size() != 2 * cells.size() - 1)
      return to_.skip(at, "not a line of hccl_test's table: expected a cell for each name in its header");
    const auto cell = [&](std::string_view part) {
      const auto name = std::find_if(columns_.begin(), columns_.end(),
                                     [&](std::string_view column) { return column.find(part) != column.npos; });
      return name == columns_.end() ? std::string_view() : cells[std::size_t(name - columns_.begin())];
    };
    const std::string_view time = cell("_time(us)"), algbw = cell("alg_bandwidth(GB/s)");
    const auto us = number_in(time);
    if (!us || *us < 0) return to_.skip(at, "not a line of hccl_test's table: expected a time");
    const Count bytes = *count_in(cells[0]);  // of the vector, or of all blocks
    if (cell("check_result") == "failed" || failed_.contains({tests_, bytes}))
      return to_.skip(at, "the test found wrong elements");
    Measurement m;
    m.at = at;
    m.test = tests_;
    m.collective = collective_;
    m.algorithm = "auto";
    m.bytes = bytes;
    m.time_us = *us;
    m.dtype = Dtype::f32;
    m.source = file_;
    m.note = "hccl_test";
    to_.add(std::move(m), false, {std::string(time), std::string(algbw), {}});
  }

  const std::string& file_;
  RowCollector& to_;
  std::vector<std::string_view> columns_;
  std::string named_, collective_;  // since the last table began; of that table, empty where it is to be stated
  std::set<std::pair<std::size_t, Count>> failed_;  // of which test, and which size
  std::size_t tests_ = 0;
};

}  // namespace

bool is_hccl_test_header(const std::vector<std::string_view>& words) {
  return words.size() >= 3 && words[0] == "data_size(Bytes):" && words[1] == "|" && words[2].ends_with("_time(us):");
}

void read_hccl_test(std::string_view text, const std::string& file, RowCollector& to) {
  HcclTestReader(text, file, to);
}

}  // namespace gccl::sim
