// What nccl-tests and rccl-tests print, of any version: the columns are found by the line that names them.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/measured/read/readers.hpp"

namespace gccl::sim {
namespace {

class NcclTestsReader {
 public:
  NcclTestsReader(std::string_view text, const std::string& file, RowCollector& to) : file_(file), to_(to) {
    for (const TextLine& line : lines_of(text)) read(line);
  }

 private:
  void read(const TextLine& line) {
    const std::vector<std::string_view> words = words_of(line.text);
    if (words.empty()) return;
    name_collective(line.text);
    if (words[0].starts_with('#')) return read_comment(words);
    if (!measures_ || !count_in(words[0]) || words.size() < 5) return;
    add_row({file_, line.number}, words);
  }

  // "all_reduce_perf" in a command line, or "# Collective test starting: all_reduce_perf".
  void name_collective(std::string_view line) {
    for (std::size_t at = line.find("_perf"); at != line.npos; at = line.find("_perf", at + 5)) {
      std::size_t begin = at;
      while (begin > 0 && (std::islower(static_cast<unsigned char>(line[begin - 1])) || line[begin - 1] == '_'))
        --begin;
      if (begin < at && measured_collective(line.substr(begin, at - begin)))
        collective_ = std::string(line.substr(begin, at - begin));
    }
  }

  void read_comment(const std::vector<std::string_view>& words) {
    const auto find = [&](std::string_view word) { return std::find(words.begin(), words.end(), word); };
    if (find("nThread") != words.end() || find("nGpus") != words.end()) {  // another test begins
      ranks_of_host_.clear();
      groups_ = false;
      measures_ = 0;
      return;
    }
    // # Rank 0 Group 0 Pid 1234 on HOST device 0 [0x07] NVIDIA A100
    const auto rank = find("Rank"), on = find("on"), group = find("Group");
    if (rank != words.end() && on != words.end() && on + 1 != words.end() && rank + 1 != words.end() &&
        count_in(rank[1])) {
      ++ranks_of_host_[std::string(on[1])];
      if (group != words.end() && group + 1 != words.end() && group[1] != "0") groups_ = true;
      return;
    }
    // #  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong
    const auto time = find("time");
    if (time == words.end() || find("busbw") == words.end()) return;
    measures_ = std::size_t(words.end() - time);
    each_ = std::size_t(std::find(time + 1, words.end(), "time") - time);
    checked_ = each_ > 3 && time[3] == "#wrong";
  }

  void add_row(FilePlace at, const std::vector<std::string_view>& words) {
    // size, count and type, then perhaps operation and root, then the measures.
    const auto odd = [&] {
      to_.skip(at, fmt::format("not a line of nccl-tests' table: expected a size, a count, a type and {} measures",
                               measures_));
    };
    if (words.size() < measures_ + 2) return odd();
    const std::size_t first = words.size() - measures_;
    Measurement m;
    m.at = at;
    m.bytes = *count_in(words[0]);
    const auto time = number_in(words[first]), busbw = number_in(words[first + 2]);
    if (!count_in(words[1]) || !time || !busbw || *time < 0) return odd();
    m.time_us = *time;
    if (first > 2) {
      const auto type = measured_dtype(words[2]);
      if (!type) return to_.skip(at, fmt::format("GCCL has no element type \"{}\"", words[2]));
      m.dtype = *type;
    }
    if (checked_)
      if (const auto wrong = number_in(words[first + 3]); wrong && *wrong > 0)
        return to_.skip(at, "the test found wrong elements");
    if (groups_) return to_.skip(at, "measured in several communicators at the same time");
    if (!ranks_of_host_.empty()) {
      m.nodes = Rank(ranks_of_host_.size());
      m.cards = ranks_of_host_.begin()->second;
      for (const auto& [host, ranks] : ranks_of_host_)
        if (ranks != m.cards) return to_.skip(at, "hosts with different numbers of ranks");
    }
    m.collective = collective_;
    m.source = file_;
    to_.add(std::move(m));
  }

  const std::string& file_;
  RowCollector& to_;
  std::string collective_;
  std::map<std::string, Rank> ranks_of_host_;
  bool groups_ = false, checked_ = false;
  std::size_t measures_ = 0, each_ = 0;  // numbers at the end of a line; those of them out of place
};

}  // namespace

void read_nccl_tests(std::string_view text, const std::string& file, RowCollector& to) {
  NcclTestsReader(text, file, to);
}

}  // namespace gccl::sim
