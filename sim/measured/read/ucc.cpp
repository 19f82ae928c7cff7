// What UCC's ucc_perftest prints.
#include <algorithm>

#include "sim/measured/read/readers.hpp"

namespace gccl::sim {
namespace {

class UccReader {
 public:
  UccReader(std::string_view text, const std::string& file, RowCollector& to) : file_(file), to_(to) {
    for (const TextLine& line : lines_of(text)) {
      const std::vector<std::string_view> words = words_of(line.text);
      if (words.empty()) continue;
      const FilePlace at{file, line.number};
      if (is_osu_title(words) || is_osu_header(words) || is_imb_header(words) ||
          (words[0].starts_with('#') && is_nccl_tests_header(words))) {
        if (table_) to.remark(at.text() + ": another program's table begins, which is not read");
        table_ = false;
        other_program_ = true;
      } else if (is_ucc_header(words)) {
        table_ = true;
        other_program_ = false;
        full_ = std::find(words.begin(), words.end(), "Bandwidth,") != words.end();
      } else if (words[0] == "Collective:") {
        begin_test(words);
      } else if (words.size() > 2 && words[0] == "Memory" && words[1] == "type:") {
        on_host_ = words[2] == "host";
      } else if (words.size() > 1 && (words[0] == "Datatype:" || (words[0] == "Data" && words[1] == "type:"))) {
        type_ = words.back();
      } else if (count_in(words[0]) || words[0] == "N/A") {
        if (table_)
          add_row(at, words);
        else if (is_number_row(words))
          to.skip(at, other_program_ ? "of another program's table" : "no line above it names its columns");
      }
    }
  }

 private:
  void begin_test(const std::vector<std::string_view>& words) {
    collective_ = words.size() > 1 ? words[1] : std::string_view();
    type_ = "float32";
    on_host_ = table_ = false;
    ++tests_;
  }

  // Count, size, and the average, the least and the longest time of a rank; the bus bandwidths of these.
  void add_row(FilePlace at, const std::vector<std::string_view>& words) {
    const auto word = [&](std::size_t i) { return i < words.size() ? words[i] : std::string_view(); };
    const bool sizes = words[0] != "N/A";
    if (sizes ? !number_in(word(1)) : word(1) != "N/A") return;  // what a launcher says
    const auto bytes = sizes ? count_in(words[1]) : 0;
    const auto time = number_in(word(4));
    if (!bytes || !number_in(word(2)) || !number_in(word(3)) || !time || *time < 0 || words.size() != (full_ ? 8 : 5))
      return to_.skip(at, "not a line of ucc_perftest's table: expected a count, a size and times");
    const auto dtype = measured_dtype(type_);
    if (!dtype) return to_.skip(at, no_dtype(type_));
    Measurement m;
    m.at = at;
    m.test = tests_;
    m.collective = collective_;
    m.algorithm = on_host_ ? "MPI" : "auto";
    m.bytes = *bytes;
    // GCCL predicts when the last rank is done.
    m.time_us = *time;
    m.dtype = *dtype;
    m.source = file_;
    m.note = "UCC " + collective_;
    const auto kind = to_.kind_of(collective_);
    StatedMeasures stated{std::string(words[4]), {}, {}};
    // Those of a root count otherwise.
    if (full_ && (kind == Collective::allreduce || kind == Collective::allgather || kind == Collective::alltoall ||
                  kind == Collective::reduce_scatter))
      stated.busbw = words[7];
    // A reduce-scatter's size is that of the vector; other sizes are those of what a rank sends to one other.
    to_.add(std::move(m), kind != Collective::reduce_scatter, stated);
  }

  const std::string& file_;
  RowCollector& to_;
  std::size_t tests_ = 0;
  std::string collective_;  // empty: it is to be stated
  std::string type_ = "float32";
  bool on_host_ = false, table_ = false, full_ = false;
  bool other_program_ = false;  // another program's lines come here
};

}  // namespace

bool is_ucc_header(const std::vector<std::string_view>& words) {
  return words.size() >= 4 && words[0] == "Count" && words[1] == "Size" && words[2] == "Time," && words[3] == "us";
}

void read_ucc(std::string_view text, const std::string& file, RowCollector& to) { UccReader(text, file, to); }

}  // namespace gccl::sim
