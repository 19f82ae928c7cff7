// What rccl-tests write with -x FILE and -Z csv or -Z json (its src/common.cu), and tables of nccl-tests' columns that
// others made to CSV: a line for each time, in place or out of place.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "libgccl/base/limits.hpp"
#include "libgccl/base/quoted.hpp"
#include "libgccl/schedule/definition.hpp"
#include "sim/measured/read/readers.hpp"

namespace gccl::sim {
namespace {

// By their names in small letters; the JSON's "name" and "wrong" are the CSV's "collective" and "#wrong".
using Fields = std::map<std::string, std::string, std::less<>>;

struct RcclRecord {
  FilePlace at;
  Fields fields;

  // Empty where there is none.
  std::string text(std::string_view name) const {
    const auto found = fields.find(name);
    return found == fields.end() ? "" : found->second;
  }
  Count count(std::string_view name, Count absent, Count most) const {
    const std::string word = text(name);
    if (word.empty()) return absent;
    const auto n = count_in(word);
    if (!n || *n > most)
      throw json::InputError(fmt::format("{}: {}: found {}, expected a whole number of at most {}", at.text(), name,
                                         gccl::quoted(word), most));
    return *n;
  }
};

class RcclTestsReader {
 public:
  RcclTestsReader(std::string file, RowCollector& to) : file_(std::move(file)), to_(to) {}

  void read(const std::vector<RcclRecord>& records) {
    out_of_place_ = std::any_of(records.begin(), records.end(), [](const RcclRecord& r) { return !in_place(r); });
    for (const RcclRecord& record : records) add(record);
    if (one_node_)
      to_.remark(fmt::format(
          "{}: rccl-tests count all ranks of a communicator as one node's; where they were on several, state "
          "--nodes or --cards-per-node",
          file_));
    to_.remark_contradictions();
  }

 private:
  static bool in_place(const RcclRecord& r) { return r.text("inplace") == "1"; }

  void add(const RcclRecord& r) {
    const auto time = number_in(r.text("time")), wrong = number_in(r.text("#wrong"));
    const std::string type = r.text("type");
    const auto dtype = type.empty() ? Dtype::f32 : measured_dtype(type);
    if (in_place(r) && out_of_place_) return to_.skip(r.at, "in place, where the file has times out of place");
    if (!dtype) return to_.skip(r.at, no_dtype(type));
    if (!time || *time < 0 || *time > 1e15) return to_.skip(r.at, "its time is no number");
    if (wrong && *wrong > 0) return to_.skip(r.at, "the test found wrong elements");
    Measurement m;
    m.at = r.at;
    m.test = r.count("numcycle", 0, Count(1) << 32);
    m.collective = r.text("collective");
    m.algorithm = kNcclChoice;
    m.bytes = r.count("size", 0, Count(1) << 60);
    m.time_us = *time;
    m.dtype = *dtype;
    m.in_place = in_place(r);
    m.source = file_;
    if (std::string why = place(r, m); !why.empty()) return to_.skip(r.at, std::move(why));
    const bool blocks = is_of_blocks(r, m);
    StatedMeasures stated{r.text("time"), r.text("algbw"), r.text("busbw")};
    if (blocks) stated = {};  // by which the blocks are known
    to_.add(std::move(m), blocks, stated);
  }

  // Nodes and cards of each. Built with MPI, the number of ranks on a node is that of the communicator's processes, on
  // however many nodes these are. What is wrong, or nothing.
  std::string place(const RcclRecord& r, Measurement& m) {
    m.nodes = Rank(r.count("nodes", 0, kRanksMax));
    m.cards = Rank(r.count("gpus_per_node", 0, kRanksMax));
    if (const Count cards = r.count("gpus", 0, kRanksMax); cards > 0) {
      m.nodes = 1;
      m.cards = Rank(cards);
    }
    const Count processes = r.count("ranks", 0, kRanksMax), of_node = r.count("rankspernode", processes, kRanksMax);
    if (processes == 0) return {};
    const Count ranks = processes * r.count("gpusperrank", 1, kRanksMax);
    if (of_node == 0 || processes % of_node != 0) return "nodes with different numbers of ranks";
    if (ranks > kRanksMax) return fmt::format("on more than {} ranks", kRanksMax);
    m.nodes = Rank(processes / of_node);
    m.cards = Rank(ranks) / m.nodes;
    if (m.nodes > 1) return {};
    const Rank cards = to_.stated().cards.value_or(0), nodes = to_.stated().nodes.value_or(cards ? m.cards / cards : 0);
    if (nodes == 0) one_node_ = true;
    if (nodes > 1 && m.cards % nodes == 0) {
      m.nodes = nodes;
      m.cards /= nodes;
    }
    return {};
  }

  // Until 2025 a size was that of what a rank receives, a block's of a reduce-scatter; the bandwidth is of all of them.
  static bool is_of_blocks(const RcclRecord& r, const Measurement& m) {
    const auto kind = measured_collective(m.collective);
    const auto algbw = number_in(r.text("algbw"));
    return kind && counts_blocks(*kind) && algbw && m.bytes > 0 && m.ranks() > 1 &&
           *algbw * m.time_us * 1e3 / double(m.bytes) > std::sqrt(double(m.ranks()));
  }

  std::string file_;
  RowCollector& to_;
  bool out_of_place_ = false;
  bool one_node_ = false;  // some record's ranks were taken to be on one node
};

RcclRecord rccl_record(const json::Node& object, FilePlace at) {
  RcclRecord record{std::move(at), {}};
  for (const auto& [key, value] : object.members()) {
    std::string name = lower_case(key);
    if (name == "name") name = "collective";
    if (name == "wrong") name = "#wrong";
    record.fields[name] = value.is_string() ? value.string() : value.raw().dump();
  }
  return record;
}

bool has_rccl_keys(const json::Node& record) {
  return record.is_object() && record.has("size") && record.has("time") && record.has("algBw");
}

}  // namespace

bool is_rccl_tests_header(const TextLine& line) {
  const std::vector<std::string> names = columns_of(line.text);
  const auto has = [&](std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  return has("size") && has("time") && has("algbw") && has("busbw");
}

void read_rccl_tests_table(std::string_view text, const std::string& file, RowCollector& to) {
  const std::vector<CsvRecord> lines = read_table_lines(text, file, to);
  std::vector<std::string> names = lines.at(0).fields;
  for (std::string& name : names) name = lower_case(name);
  // For some years the names left out that of the nodes, and the lines did not.
  if (const auto ranks = std::find(names.begin(), names.end(), "ranks");
      lines.size() > 1 && lines[1].fields.size() == names.size() + 1 && ranks != names.end())
    names.insert(ranks, "nodes");
  std::vector<RcclRecord> records;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const CsvRecord& line = lines[i];
    if (line.fields == lines[0].fields || line.fields[0].starts_with('#')) continue;  // of files that were joined
    if (line.fields.size() != names.size())
      throw json::InputError(fmt::format("{}:{}: has {} fields, expected {} as in the first line", file, line.line,
                                         line.fields.size(), names.size()));
    RcclRecord& record = records.emplace_back(RcclRecord{{file, line.line}, {}});
    // Times out of place come first where the columns are those of a whole line that nccl-tests print.
    for (std::size_t f = 0; f < names.size(); ++f) record.fields.emplace(names[f], line.fields[f]);
  }
  RcclTestsReader(file, to).read(records);
}

bool is_rccl_tests(const json::Node& document) {
  if (!document.is_array()) return has_rccl_keys(document);
  const std::vector<json::Node> items = document.items();
  return !items.empty() && has_rccl_keys(items[0]);
}

void read_rccl_tests(const json::Node& document, std::string_view text, const std::string& file, RowCollector& to) {
  const std::vector<json::Node> items = document.is_array() ? document.items() : std::vector{document};
  const std::vector<std::size_t> lines = lines_with(text, "\"algBw\"");
  std::vector<RcclRecord> records;
  for (std::size_t i = 0; i < items.size(); ++i)
    records.push_back(rccl_record(items[i], {file, lines.size() == items.size() ? lines[i] : 1}));
  RcclTestsReader(file, to).read(records);
}

bool read_rccl_tests_lines(std::string_view text, const std::string& file, RowCollector& to) {
  std::vector<RcclRecord> records;
  for (const JsonText& each : json_texts_of(text)) {
    const FilePlace at{file, each.line};
    const json::Node record = json::Node::parse(each.text, at.text());
    if (records.empty() && !has_rccl_keys(record)) return false;
    records.push_back(rccl_record(record, at));
  }
  RcclTestsReader(file, to).read(records);
  return true;
}

}  // namespace gccl::sim
