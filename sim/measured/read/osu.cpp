// What the OSU micro-benchmarks print for blocking collectives.
#include <fmt/format.h>

#include <algorithm>

#include "sim/measured/read/readers.hpp"

namespace gccl::sim {
namespace {

// Longer titles before those that they begin with.
constexpr std::pair<std::string_view, std::string_view> kTitles[] = {
    {"All-to-All Personalized Exchange", "alltoall"},
    {"All-to-Allv Personalized Exchange", "alltoallv"},
    {"Allgatherv", "allgatherv"},
    {"Allgather", "allgather"},
    {"Allreduce", "allreduce"},
    {"Alltoallv", "alltoallv"},
    {"Alltoall", "alltoall"},
    {"Barrier", "barrier"},
    {"Broadcast", "broadcast"},
    {"Gatherv", "gatherv"},
    {"Gather", "gather"},
    {"Scatterv", "scatterv"},
    {"Scatter", "scatter"},
    {"Reduce_scatter", "reduce_scatter"},
    {"Reduce-Scatter", "reduce_scatter"},
    {"Reduce", "reduce"},
};

// What these tests time is no blocking collective of all ranks.
constexpr std::string_view kOtherTests[] = {"non-blocking", "nonblocking", "persistent", "neighbor"};

class OsuReader {
 public:
  OsuReader(std::string_view text, const std::string& file, RowCollector& to) : file_(file), to_(to) {
    for (const TextLine& line : lines_of(text)) {
      const std::vector<std::string_view> words = words_of(line.text);
      if (words.empty()) continue;
      line_ = line.number;
      if (is_osu_title(words))
        begin_test(line.text);
      else if (test_.empty() && is_osu_header(words))
        begin_untitled();
      else if (words[0].starts_with('#') || is_imb_header(words) || is_ucc_header(words))
        read_comment(words);
      else if (!test_.empty())
        add_row({file_, line.number}, words);
      else if (is_number_row(words))
        to_.skip({file_, line.number},
                 other_program_ ? "of another program's table" : "no title of a test stands above it");
    }
  }

 private:
  void begin_untitled() {  // the collective is to be stated
    test_ = "OSU";
    collective_.clear();
    type_ = Dtype::f32;
    unknown_type_.clear();
    other_program_ = false;
    ++tests_;
  }

  // "# OSU MPI-CUDA Allreduce Latency Test v7.5"
  void begin_test(std::string_view line) {
    begin_untitled();
    test_ = std::string(line.substr(line.find("OSU")));
    const std::size_t version = test_.rfind(" v");
    if (version != test_.npos) test_.resize(version);
    while (!test_.empty() && (test_.back() == '\r' || test_.back() == ' ')) test_.pop_back();
    collective_ = test_;
    const std::string plain = lower_case(test_);
    const bool other = std::any_of(std::begin(kOtherTests), std::end(kOtherTests),
                                   [&](std::string_view word) { return plain.find(word) != plain.npos; });
    for (const auto& [title, name] : kTitles)
      if (!other && test_.find(title) != test_.npos && test_.find("Latency") != test_.npos) {
        collective_ = name;
        break;
      }
  }

  void read_comment(const std::vector<std::string_view>& words) {
    if (is_nccl_tests_header(words) || is_nccl_tests_settings(words) || is_imb_header(words) || is_ucc_header(words)) {
      if (!test_.empty())
        to_.remark(fmt::format("{}:{}: another program's table begins, which is not read", file_, line_));
      test_.clear();
      other_program_ = true;
      return;
    }
    if (const auto type = std::find(words.begin(), words.end(), "Datatype:");
        type != words.end() && type + 1 != words.end()) {
      std::string name(type[1]);
      if (name.ends_with('.')) name.pop_back();
      const auto known = measured_dtype(name);
      if (known) type_ = *known;
      unknown_type_ = known ? "" : name;
    }
  }

  void add_row(FilePlace at, const std::vector<std::string_view>& words) {
    const bool sizes = collective_ != "barrier";
    const std::size_t time = sizes ? 1 : 0;
    if (!number_in(words[0])) return;  // what a launcher says
    Measurement m;
    m.at = at;
    m.collective = collective_;
    m.dtype = type_;
    m.source = file_;
    m.note = test_;
    // "OSU MPI" is on host buffers, "OSU MPI-CUDA" on those of cards, where nobody knows the library's rules.
    m.algorithm = test_.starts_with("OSU MPI ")             ? "MPI"
                  : test_.find("NCCL") != std::string::npos ? kNcclChoice
                                                            : "auto";
    const auto us = time < words.size() ? number_in(words[time]) : std::nullopt;
    const auto bytes = sizes ? count_in(words[0]) : 0;
    // A launcher's "3 processes killed" looks like a barrier's time, another table's "64 16 float" like a size and one.
    const auto of_table = [](std::string_view word) { return number_in(word) || word == "Pass" || word == "Fail"; };
    if (!us || !bytes || *us < 0 || !std::all_of(words.begin(), words.end(), of_table))
      return to_.skip(at, "not a line of OSU's table: expected a size and a latency");
    if (std::find(words.begin(), words.end(), "Fail") != words.end())
      return to_.skip(at, "the test found wrong elements");
    if (!unknown_type_.empty()) return to_.skip(at, no_dtype(unknown_type_));
    m.test = tests_;
    m.bytes = *bytes;
    m.time_us = *us;
    // A reduce-scatter's size is that of the vector; other sizes are those of what a rank sends to one other.
    const auto kind = to_.kind_of(collective_);
    to_.add(std::move(m), kind != Collective::reduce_scatter);
  }

  const std::string& file_;
  RowCollector& to_;
  std::size_t line_ = 0, tests_ = 0;
  std::string test_, collective_;  // empty: no test's lines come here; it is to be stated
  bool other_program_ = false;     // another program's lines come here
  Dtype type_ = Dtype::f32;
  std::string unknown_type_;
};

}  // namespace

bool is_osu_title(const std::vector<std::string_view>& words) {
  if (words[0] == "OSU") {  // "OSU MPI Allreduce Latency Test v7.5", and no other sentence
    const auto test = std::find(words.begin(), words.end(), "Test");
    return words.size() > 1 && words[1].starts_with("MPI") && words.end() - test == 2 && test[1].starts_with('v');
  }
  return words[0] == "#OSU" || (words[0] == "#" && words.size() > 1 && words[1] == "OSU");
}

bool is_osu_header(std::vector<std::string_view> words) {
  if (words[0].starts_with('#')) words[0].remove_prefix(1);
  if (words[0].empty()) words.erase(words.begin());
  return words.size() > 2 && words[0] == "Size" && words[1] == "Avg" && words[2].starts_with("Latency");
}

void read_osu(std::string_view text, const std::string& file, RowCollector& to) { OsuReader(text, file, to); }

}  // namespace gccl::sim
