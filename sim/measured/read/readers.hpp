// What the readers of the formats share.
#pragma once

#include <map>
#include <memory>
#include <string_view>

#include "libgccl/json/reader.hpp"
#include "sim/measured/read/csv.hpp"
#include "sim/measured/read/read.hpp"

namespace gccl::sim {

// The algorithm of rows whose file is of a program that calls NCCL and leaves the choice to it.
inline constexpr const char* kNcclChoice = "NCCL default (auto)";

// What a file says of one point in numbers that follow from each other; empty where it does not.
struct StatedMeasures {
  std::string time_us = {}, algbw = {}, busbw = {};
};
// Half of the last digit's unit over the value.
double rounding_of(const std::string& number, double value);

// Takes rows as a file has them, fills in what the caller states, and keeps those that can be used.
class RowCollector {
 public:
  RowCollector(Measured& to, const StatedOfRows& stated) : to_(to), stated_(stated) {}

  // `row`: what the file says; 0 and "" where it does not. The collective is known by row.collective alone.
  // `per_block`: its bytes are those of one rank's block where the collective has blocks.
  // `measures`: where they contradict each other, remark_contradictions() says so.
  void add(Measurement row, bool per_block = false, const StatedMeasures& measures = {});
  void skip(const FilePlace& at, std::string reason) { to_.skipped.push_back({at, std::move(reason)}); }
  void remark(std::string text) { to_.remarks.push_back(std::move(text)); }
  void remark_contradictions();  // of the rows since the last time
  const StatedOfRows& stated() const { return stated_; }
  // Of a row whose file names its collective so; of one whose file names none ("") the stated one.
  std::optional<Collective> kind_of(std::string_view collective) const {
    return collective.empty() ? stated_.collective : measured_collective(collective);
  }

 private:
  std::string why_not(Measurement& row) const;  // empty where it can be used
  void compare(const Measurement& row, const StatedMeasures& measures);

  Measured& to_;
  const StatedOfRows& stated_;
  std::size_t contradictions_ = 0;
  std::string first_contradiction_;
};

// Without colours, which terminals are sent within lines too, and with a line end for each CR that stands alone, as in
// progress that overwrites itself.
std::string plain_text(std::string_view text);

// The lines of a text without their ends, with their numbers. What job starters and collectors of logs put before one
// is taken away: "[1,0]<stdout>:", "3: ", "node7: ", a time; and as many words as stand before a benchmark's comments.
struct TextLine {
  std::size_t number;
  std::string_view text;
};
std::vector<TextLine> lines_of(std::string_view text);
std::vector<std::string_view> words_of(std::string_view line);
// A number that is the whole word; nothing where it is none.
std::optional<double> number_in(std::string_view word);
std::optional<Count> count_in(std::string_view word);
// A whole number, and more numbers than other words: a row of a table, whatever the table.
bool is_number_row(const std::vector<std::string_view>& words);

// "half", "float", "MPI_INT", "bf16": an element type of a benchmark's own name.
std::optional<Dtype> measured_dtype(std::string_view name);
// Why a row of another type is skipped.
std::string no_dtype(std::string_view name);

// The names of a table's columns, in small letters.
std::vector<std::string> columns_of(std::string_view first_line);
// A table's lines, the first one's names included; comments above it are remarked.
std::vector<CsvRecord> read_table_lines(std::string_view text, const std::string& file, RowCollector& to);
// Whether a line's fields are named as a table's columns are.
bool is_table_header(const TextLine& line);
void read_table(std::string_view text, const std::string& file, RowCollector& to);
bool is_osu_title(const std::vector<std::string_view>& words);   // "# OSU MPI ... Test v7.5", or the same without "#"
bool is_osu_header(std::vector<std::string_view> words);         // "# Size  Avg Latency(us)", or the same without "#"
bool is_imb_header(const std::vector<std::string_view>& words);  // "#bytes #repetitions t_min[usec] ..."
bool is_nccl_tests_header(const std::vector<std::string_view>& words);  // of a line that begins with "#"
// "# nThread 1 nGpus 8 minBytes 8 ...", with which a test begins.
bool is_nccl_tests_settings(const std::vector<std::string_view>& words);
// One of these two lines that has lost its "#".
bool is_bare_nccl_tests(const std::vector<std::string_view>& words);
void read_nccl_tests(std::string_view text, const std::string& file, RowCollector& to);
void read_osu(std::string_view text, const std::string& file, RowCollector& to);
void read_imb(std::string_view text, const std::string& file, RowCollector& to);
bool is_hccl_test_header(const std::vector<std::string_view>& words);  // "data_size(Bytes): | aveg_time(us): | ..."
void read_hccl_test(std::string_view text, const std::string& file, RowCollector& to);
bool is_ucc_header(const std::vector<std::string_view>& words);  // "Count  Size  Time, us"
void read_ucc(std::string_view text, const std::string& file, RowCollector& to);

// How deep in objects and lists a text of JSON is.
struct JsonDepth {
  std::size_t depth = 0;
  bool quoted = false, escaped = false;
  void take(char c) {
    if (escaped)
      escaped = false;
    else if (quoted && c == '\\')
      escaped = true;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '{' || c == '['))
      ++depth;
    else if (!quoted && (c == '}' || c == ']'))
      --depth;
  }
};
// JSON texts one below the other: a line for each, or as many as there are from a line "{" to the end of its object.
struct JsonText {
  std::size_t line;  // on which it begins
  std::string text;
};
std::vector<JsonText> json_texts_of(std::string_view text);
// The numbers of the lines in which that word stands: of a document's runs, say.
std::vector<std::size_t> lines_with(std::string_view text, std::string_view word);

bool is_nccl_tests(const json::Node& document);
void read_nccl_tests(const json::Node& document, std::string_view text, const std::string& file, RowCollector& to);
// rccl-tests' -Z csv, and -Z json: a list, or texts one below the other. Of records, whether there are any.
bool is_rccl_tests_header(const TextLine& line);
void read_rccl_tests_table(std::string_view text, const std::string& file, RowCollector& to);
bool is_rccl_tests(const json::Node& document);
void read_rccl_tests(const json::Node& document, std::string_view text, const std::string& file, RowCollector& to);
bool read_rccl_tests_lines(std::string_view text, const std::string& file, RowCollector& to);

bool is_bench(const json::Node& document);
void read_bench(const json::Node& document, std::string_view text, const std::string& file, RowCollector& to);

bool is_inspector(const json::Node& document);

// Every rank writes a file of its own, so calls are put together once all files are read.
class InspectorRecords {
 public:
  InspectorRecords();
  ~InspectorRecords();
  // `whole`: nothing where the text is several JSON texts. Whether it has any record of a call.
  bool read(const std::optional<json::Node>& whole, std::string_view text, const std::string& file, RowCollector& to);
  void finish(RowCollector& to);

 private:
  struct Calls;
  struct Reading;
  std::unique_ptr<Calls> calls_;
};

}  // namespace gccl::sim
