// What the Intel MPI Benchmarks (IMB-MPI1) print for blocking collectives, and oneCCL's benchmark, whose tables have
// the same columns.
#include <fmt/format.h>

#include <algorithm>

#include "libgccl/base/limits.hpp"
#include "sim/measured/read/readers.hpp"

namespace gccl::sim {
namespace {

// Where a table's lines have what.
struct ImbColumns {
  std::size_t words = 0;  // of a whole line
  bool sizes = false, groups = false;
  std::optional<std::size_t> time, defects;
};

// "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]"; nothing where it is none.
std::optional<ImbColumns> imb_columns_in(const std::vector<std::string_view>& names) {
  const auto place_of = [&](std::string_view name) {
    const auto at = std::find(names.begin(), names.end(), name);
    return at == names.end() ? std::nullopt : std::optional(std::size_t(at - names.begin()));
  };
  const auto repetitions = place_of("#repetitions");
  if (!repetitions) return std::nullopt;
  ImbColumns c;
  c.words = names.size();
  c.sizes = place_of("#bytes").has_value();
  c.groups = names[0] == "Group";
  // GCCL predicts when the last rank is done, which is the slowest process's time.
  c.time = place_of("t_max[usec]");
  c.defects = place_of("defects");
  if (*repetitions != std::size_t(c.sizes) + std::size_t(c.groups)) return std::nullopt;
  return c;
}

class ImbReader {
 public:
  ImbReader(std::string_view text, const std::string& file, RowCollector& to) : file_(file), to_(to) {
    for (const TextLine& line : lines_of(text)) {
      const std::vector<std::string_view> words = words_of(line.text);
      if (words.empty()) continue;
      const FilePlace at{file, line.number};
      if (const auto columns = imb_columns_in(words)) {
        columns_ = columns;
        other_program_ = false;
      } else if (is_osu_title(words) || is_osu_header(words) || is_ucc_header(words) ||
                 (words[0].starts_with('#') && (is_nccl_tests_header(words) || is_nccl_tests_settings(words)))) {
        begin_other_program(at);
      } else if (words[0].starts_with('#') || is_bare_comment(words)) {
        read_comment(words);
      } else if (columns_) {
        add_row(at, words);
      } else if (is_number_row(words)) {
        to_.skip(at, other_program_ ? "of another program's table" : "no line above it names its columns");
      }
    }
  }

 private:
  void begin_other_program(const FilePlace& at) {
    if (columns_) to_.remark(fmt::format("{}: another program's table begins, which is not read", at.text()));
    columns_.reset();
    other_program_ = true;
  }

  // "Benchmarking Allreduce" without its "#", and what oneCCL's benchmark says of a run.
  static bool is_bare_comment(const std::vector<std::string_view>& words) {
    return words.size() == 2 && (words[0] == "Benchmarking" || words[0] == "backend:" || words[0] == "datatype:");
  }

  void read_comment(std::vector<std::string_view> words) {
    if (words[0] != "#") words.insert(words.begin(), "#");
    const auto word = [&](std::size_t i) { return i < words.size() ? words[i] : std::string_view(); };
    if (word(1) == "Benchmarking" || word(1) == "Benchmarking:") {  // "# Benchmarking Allreduce"
      collective_ = word(2);
      one_ccl_ = word(1).ends_with(':');
      // All its blocks are of one size.
      if (one_ccl_ && collective_ == "allgatherv") collective_ = "allgather";
      processes_ = waiting_ = 0;
      columns_.reset();
      other_program_ = false;
      ++tests_;
    } else if (word(1) == "backend:") {
      if (word(2) == "host" || word(2) == "sycl") one_ccl_on_cards_ = word(2) == "sycl";
    } else if (word(1) == "datatype:") {
      one_ccl_type_ = word(2);
    } else if (word(1) == "MPI_Datatype") {  // "# MPI_Datatype for reductions : MPI_FLOAT"
      (word(2) == "for" ? reduced_type_ : type_) = words.back();
    } else if (std::any_of(words.begin(), words.end(),
                           [](std::string_view w) { return w.find("IMB-MPI1-GPU") != w.npos; })) {
      on_cards_ = true;
    } else if (word(1) == "Intel(R)") {  // "#    Intel(R) MPI Benchmarks 2021.6, MPI-1 part": a run begins
      on_cards_ = false;
    }
    // "# #processes = 4", "# #processes = 4; rank order (rowwise): "
    if (const auto name = std::find(words.begin(), words.end(), "#processes"); words.end() - name > 2 && name[1] == "=")
      processes_ = count_in(name[2].substr(0, name[2].find(';'))).value_or(0);
    if (word(1) == "#processes:") processes_ = count_in(word(2)).value_or(0);
    // "# ( 24 additional processes waiting in MPI_Barrier )"
    if (const auto name = std::find(words.begin(), words.end(), "additional");
        name != words.end() && name != words.begin())
      waiting_ = count_in(name[-1].substr(name[-1].starts_with('('))).value_or(0);
  }

  void add_row(FilePlace at, const std::vector<std::string_view>& words) {
    if (!number_in(words[0])) return;  // what a launcher says
    const auto us = columns_->time && *columns_->time < words.size() ? number_in(words[*columns_->time]) : std::nullopt;
    const auto bytes = columns_->sizes ? count_in(words[0]) : 0;
    if (columns_->groups) return to_.skip(at, "measured in several communicators at the same time");
    if (!columns_->time) return to_.skip(at, "its table has no column t_max[usec]");
    // "out-of-mem.; needed X= 4.001 GB; use flag ..." stands behind a size, too.
    if (words.size() != columns_->words || !us || !bytes || *us < 0)
      return to_.skip(
          at, fmt::format("not a line of IMB's table: expected the {} numbers that its header names", columns_->words));
    if (const auto defects = columns_->defects ? number_in(words[*columns_->defects]) : 0; !defects || *defects > 0)
      return to_.skip(at, "the test found wrong elements");
    const auto kind = to_.kind_of(collective_);
    const std::string& type = one_ccl_ ? one_ccl_type_ : kind && reduces(*kind) ? reduced_type_ : type_;
    const auto dtype = measured_dtype(type);
    if (!dtype) return to_.skip(at, no_dtype(type));
    Measurement m;
    m.at = at;
    m.test = tests_;
    m.collective = collective_;
    // On host buffers, unless by IMB-MPI1-GPU or with oneCCL's backend sycl.
    m.algorithm = (one_ccl_ ? one_ccl_on_cards_ : on_cards_) ? "auto" : "MPI";
    m.bytes = *bytes;
    m.time_us = *us;
    m.dtype = *dtype;
    m.source = file_;
    m.note = fmt::format("{} {}", one_ccl_ ? "oneCCL" : "IMB", collective_);
    if (std::string why = place(m); !why.empty()) return to_.skip(at, std::move(why));
    // Reduce_scatter's size is that of the vector, Reduce_scatter_block's that of a block, as the others'.
    const bool vector = kind == Collective::reduce_scatter && lower_case(collective_) != "reduce_scatter_block";
    to_.add(std::move(m), !vector);
  }

  // Nodes and cards of each, of as many processes as a test says it has: the first ones of all, whose nodes are full.
  // What is wrong, or nothing.
  std::string place(Measurement& m) const {
    const Rank nodes = to_.stated().nodes.value_or(0), cards = to_.stated().cards.value_or(0);
    if (processes_ == 0) return {};  // both are to be stated
    if (processes_ > kRanksMax || waiting_ > kRanksMax) return fmt::format("on more than {} ranks", kRanksMax);
    if (nodes == 0 && cards == 0)
      return "on ranks of nodes that the file does not name; state --nodes or --cards-per-node";
    if (nodes > 0 && cards > 0 && Count(nodes) * cards != processes_)
      return fmt::format("on other than {} ranks (--nodes and --cards-per-node)", Count(nodes) * cards);
    if (cards == 0 && (processes_ + waiting_) % nodes != 0) return "nodes with different numbers of ranks";
    const Count each = cards > 0 ? cards : (processes_ + waiting_) / nodes;
    if (processes_ % each != 0)
      return fmt::format("on other than {} cards of a node ({})", each,
                         cards > 0 ? "--cards-per-node" : "all processes, on --nodes");
    m.nodes = Rank(processes_ / each);
    m.cards = Rank(each);
    return {};
  }

  const std::string& file_;
  RowCollector& to_;
  std::size_t tests_ = 0;
  std::string collective_;                                      // empty: it is to be stated
  std::string type_ = "MPI_BYTE", reduced_type_ = "MPI_FLOAT";  // where a file does not say
  Count processes_ = 0;                                         // 0: not said
  Count waiting_ = 0;                                           // of the job, and not of the test
  bool on_cards_ = false, other_program_ = false;
  bool one_ccl_ = false;  // the table is oneCCL's, of which these are
  std::string one_ccl_type_ = "float32";
  bool one_ccl_on_cards_ = false;
  std::optional<ImbColumns> columns_;
};

}  // namespace

bool is_imb_header(const std::vector<std::string_view>& words) { return imb_columns_in(words).has_value(); }

void read_imb(std::string_view text, const std::string& file, RowCollector& to) { ImbReader(text, file, to); }

}  // namespace gccl::sim
