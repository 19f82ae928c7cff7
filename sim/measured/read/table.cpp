// CSV tables of measurements.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "libgccl/base/nearest.hpp"
#include "libgccl/base/quoted.hpp"
#include "libgccl/base/units.hpp"
#include "libgccl/json/reader.hpp"
#include "libgccl/schedule/definition.hpp"
#include "sim/measured/read/csv.hpp"
#include "sim/measured/read/readers.hpp"

namespace gccl::sim {
namespace {

enum Column : std::size_t {
  in_system,
  in_nodes,
  in_cards,
  in_collective,
  in_algorithm,
  in_protocol,
  in_bytes,
  in_time,
  in_algbw,
  in_busbw,
  in_source,
  in_note
};
constexpr std::array<std::string_view, 12> kColumns = {"system",     "nodes",      "gpus_per_node", "collective",
                                                       "algorithm",  "protocol",   "bytes",         "time_us",
                                                       "algbw_GBps", "busbw_GBps", "source",        "note"};
// A bandwidth that is rounded more coarsely than this says too little about a time.
constexpr double kRoundingMax = 0.05;

// What follows "KEY =" in a note, with or without spaces; each time it does.
std::vector<std::string_view> values_in(std::string_view note, std::string_view key) {
  std::vector<std::string_view> all;
  const auto without_spaces = [](std::string_view s) { return s.substr(std::min(s.find_first_not_of(' '), s.size())); };
  for (std::size_t at = note.find(key); at != note.npos; at = note.find(key, at + key.size())) {
    const std::string_view rest = without_spaces(note.substr(at + key.size()));
    if (rest.starts_with('=')) all.push_back(without_spaces(rest.substr(1)));
  }
  return all;
}

// The element type that a note names; empty where it names none.
std::string_view dtype_in(std::string_view note) {
  constexpr std::string_view kWord = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
  for (const std::string_view value : values_in(note, "dtype"))
    if (const std::string_view word = value.substr(0, std::min(value.find_first_not_of(kWord), value.size()));
        !word.empty())
      return word;
  return {};
}

// Whether a note says that sizes are those of a block: "bytes = per-destination", "bytes=per rank".
bool per_block(std::string_view note) {
  for (const std::string_view value : values_in(note, "bytes"))
    for (const std::string_view what : {"destination", "message", "rank", "block", "peer"})
      if ((value.starts_with("per-") || value.starts_with("per ")) && value.substr(4).starts_with(what)) return true;
  return false;
}

// Whether a column is a time or a bandwidth in another unit than is read: the right name would be wrong by a factor.
bool is_in_another_unit(const std::string& name) {
  const std::size_t end = name.find('_');
  if (end == name.npos) return false;
  const std::string quantity = name.substr(0, end), unit = name.substr(end + 1);
  const auto is_one_of = [&](std::initializer_list<std::string_view> units) {
    return std::find(units.begin(), units.end(), unit) != units.end();
  };
  if (quantity == "time") return is_one_of({"s", "ms", "ns", "sec", "msec", "nsec"});
  return (quantity == "algbw" || quantity == "busbw") &&
         is_one_of({"Gbps", "Gbit", "Gbits", "Mbps", "MBps", "GiBps", "MiBps", "TBps"});
}

class TableReader {
 public:
  TableReader(const std::vector<CsvRecord>& records, const std::string& file, RowCollector& to)
      : file_(file), to_(to), first_(records.at(0)) {
    find_columns();
    for (std::size_t i = 1; i < records.size(); ++i)
      if (!is_passed_over(records[i])) add(records[i]);
  }

 private:
  [[noreturn]] void fail(std::size_t line, const std::string& what) const {
    throw json::InputError(fmt::format("{}:{}: {}", file_, line, what));
  }

  // Blanks, a comment, or the first line once more, of tables that were joined.
  bool is_passed_over(const CsvRecord& r) const {
    const std::string& field = r.fields[0];
    return r.fields == first_.fields || field.starts_with('#') ||
           (r.fields.size() == 1 && field.find_first_not_of(" \t\r") == field.npos);
  }

  void find_columns() {
    place_.fill(first_.fields.size());
    for (std::size_t i = 0; i < first_.fields.size(); ++i) {
      const std::string& name = first_.fields[i];
      const auto known = std::find(kColumns.begin(), kColumns.end(), name);
      if (known == kColumns.end()) continue;
      std::size_t& place = place_[std::size_t(known - kColumns.begin())];
      if (place != first_.fields.size()) fail(first_.line, fmt::format("column {} appears twice", gccl::quoted(name)));
      place = i;
    }
    for (const std::string& name : first_.fields) {
      if (std::find(kColumns.begin(), kColumns.end(), name) != kColumns.end()) continue;
      if (is_in_another_unit(name))
        fail(first_.line, fmt::format("column {}: expected \"time_us\", in microseconds, \"algbw_GBps\" or "
                                      "\"busbw_GBps\", in GB/s",
                                      gccl::quoted(name)));
      const std::string_view meant = nearest(name, kColumns, 1);  // "date" is no misspelled "note"
      const auto at = std::find(kColumns.begin(), kColumns.end(), meant);
      if (at != kColumns.end() && !has(Column(at - kColumns.begin())))
        fail(first_.line, fmt::format("unknown column {}; did you mean \"{}\"?", gccl::quoted(name), meant));
      to_.remark(fmt::format("{}:{}: column {} is not used", file_, first_.line, gccl::quoted(name)));
    }
    for (const Column needed : {in_collective, in_bytes})
      if (!has(needed)) fail(first_.line, fmt::format("there is no column \"{}\"", kColumns[needed]));
    if (!has(in_time) && !has(in_algbw) && !has(in_busbw))
      fail(first_.line, "there is no column \"time_us\", \"algbw_GBps\" or \"busbw_GBps\"");
  }
  bool has(Column c) const { return place_[c] < first_.fields.size(); }

  std::string text(const CsvRecord& r, Column c) const { return has(c) ? r.fields[place_[c]] : std::string(); }
  // Empty where nothing was published, however a program writes that.
  std::string number_text(const CsvRecord& r, Column c) const {
    const std::string word = text(r, c), plain = lower_case(word);
    return plain == "nan" || plain == "na" || plain == "n/a" || plain == "null" || plain == "-" ? std::string() : word;
  }
  // 0 where the cell is empty. Programs that keep columns with empty cells as floats write 4.0.
  Count count(const CsvRecord& r, Column c) const {
    const std::string word = number_text(r, c);
    if (word.empty()) return 0;
    if (const auto n = count_in(word)) return *n;
    if (const auto n = number_in(word); n && *n >= 0 && *n < 1e15 && *n == std::floor(*n)) return Count(*n);
    if (const auto n = c == in_bytes ? parse_bytes(word) : std::nullopt) return *n;
    fail(r.line, fmt::format("{}: found {}, expected a whole number{}", kColumns[c], gccl::quoted(word),
                             c == in_bytes ? ", or one with a unit such as \"64KiB\"" : ""));
  }
  double measure(const CsvRecord& r, Column c) const {
    const std::string word = number_text(r, c);
    if (word.empty()) return 0;
    if (const auto n = number_in(word); n && *n >= 0 && *n < 1e15) return *n;
    fail(r.line, fmt::format("{}: found {}, expected a number from 0 to below 1e15", kColumns[c], gccl::quoted(word)));
  }

  void add(const CsvRecord& r) {
    if (r.fields.size() != first_.fields.size())
      fail(r.line,
           fmt::format("has {} fields, expected {} as in the first line", r.fields.size(), first_.fields.size()));
    Measurement m;
    m.at = {file_, r.line};
    m.system = text(r, in_system);
    m.nodes = ranks(r, in_nodes);
    m.cards = ranks(r, in_cards);
    m.collective = text(r, in_collective);
    m.algorithm = text(r, in_algorithm);
    m.protocol = text(r, in_protocol);
    m.bytes = count(r, in_bytes);
    m.source = text(r, in_source);
    m.note = text(r, in_note);
    m.time_us = measure(r, in_time);
    if (const std::string_view named = dtype_in(m.note); !named.empty()) {
      const auto type = measured_dtype(named);
      if (!type) return to_.skip(m.at, no_dtype(named));
      m.dtype = *type;
    }
    m.in_place = m.note.find("place=in_place") != m.note.npos;
    if (m.time_us == 0)
      if (std::string why = derive(r, m); !why.empty()) return to_.skip(m.at, std::move(why));
    const bool blocks = per_block(m.note), old = m.note.find("old nccl-tests") != m.note.npos;
    StatedMeasures stated{number_text(r, in_time), old ? "" : number_text(r, in_algbw), number_text(r, in_busbw)};
    if (blocks) stated = {};  // counted in many ways
    to_.add(std::move(m), blocks, stated);
  }

  Rank ranks(const CsvRecord& r, Column c) const {
    const Count n = count(r, c);
    if (n > 1u << 20) fail(r.line, fmt::format("{}: found {}, expected at most {}", kColumns[c], n, 1u << 20));
    return Rank(n);
  }

  // The time from a bandwidth, by nccl-tests' formulas. What is wrong with it, or nothing.
  std::string derive(const CsvRecord& r, Measurement& m) const {
    const double algbw = measure(r, in_algbw), busbw = measure(r, in_busbw);
    if (algbw == 0 && busbw == 0) return "no time and no bandwidth";
    const auto kind = measured_collective(m.collective);
    if (!kind || m.bytes == 0) return {};  // said later
    if (per_block(m.note)) return "a bandwidth of sizes per rank: no time can be derived from it";
    const Rank nodes = m.nodes ? m.nodes : to_.stated().nodes.value_or(0);
    const Rank cards = m.cards ? m.cards : to_.stated().cards.value_or(0);
    if (nodes * cards == 0) return {};
    // Old nccl-tests gave all-gather's and reduce-scatter's bus bandwidth under both names.
    const bool old = m.note.find("old nccl-tests") != m.note.npos &&
                     (*kind == Collective::allgather || *kind == Collective::reduce_scatter);
    const double factor = bus_factor(*kind, nodes * cards);
    const bool by_bus = busbw > 0 && factor > 0 &&
                        (algbw == 0 || rounding_of(text(r, in_busbw), busbw) <= rounding_of(text(r, in_algbw), algbw));
    const double rounding = by_bus ? rounding_of(text(r, in_busbw), busbw) : rounding_of(text(r, in_algbw), algbw);
    if (!by_bus && algbw == 0) return "no time and no bandwidth";
    if (rounding > kRoundingMax) return "no time, and a bandwidth of too few digits";
    m.time_us = double(m.bytes) * (by_bus || old ? factor : 1) / (by_bus ? busbw : algbw) / 1e3;
    m.derived = true;
    return {};
  }

  const std::string& file_;
  RowCollector& to_;
  const CsvRecord& first_;
  std::array<std::size_t, kColumns.size()> place_{};
};

}  // namespace

std::vector<std::string> columns_of(std::string_view line) {
  const char separator = separator_of(line);
  std::vector<std::string> names(1);
  for (const char c : lower_case(line))
    if (c == separator)
      names.emplace_back();
    else if (std::string_view("\" \t\r").find(c) == std::string_view::npos)
      names.back() += c;
  return names;
}

bool is_table_header(const TextLine& line) {
  const std::vector<std::string> names = columns_of(line.text);
  constexpr std::ptrdiff_t kSurely = 2;
  return std::count_if(names.begin(), names.end(), [](const std::string& name) {
           return std::any_of(kColumns.begin(), kColumns.end(),
                              [&](std::string_view column) { return lower_case(column) == name; });
         }) >= kSurely;
}

std::vector<CsvRecord> read_table_lines(std::string_view text, const std::string& file, RowCollector& to) {
  std::size_t line = 1;
  for (; !text.empty(); ++line) {
    const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size() - 1);
    if (text[begin] != '#' && text[begin] != '\n') break;
    if (text[begin] == '#') to.remark(fmt::format("{}:{}: a comment, which is not read", file, line));
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  return read_csv(text, file, line, separator_of(text.substr(0, text.find('\n'))));
}

void read_table(std::string_view text, const std::string& file, RowCollector& to) {
  TableReader(read_table_lines(text, file, to), file, to);
}

}  // namespace gccl::sim
