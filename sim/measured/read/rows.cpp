// What becomes of a row, whatever its format.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <tuple>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/base/limits.hpp"
#include "libgccl/schedule/definition.hpp"
#include "sim/measured/read/readers.hpp"

namespace gccl::sim {
namespace {

constexpr Count kMeasuredBytesMax = Count(1) << 50;
constexpr double kMeasuredUsMin = 1e-9;

}  // namespace

std::optional<Collective> measured_collective(std::string_view text) {
  std::string plain;
  for (const char c : lower_case(text))
    if (c != '_' && c != '-' && c != ' ') plain += c;
  for (const std::string_view before : {"osui", "osu"})
    if (plain.starts_with(before) && plain != before) {
      if (before == "osui") return std::nullopt;  // overlaps with computing
      plain.erase(0, before.size());
    }
  if (plain.ends_with("perf")) plain.resize(plain.size() - 4);
  static constexpr std::pair<std::string_view, Collective> kOthers[] = {
      {"bcast", Collective::broadcast}, {"reducescatterblock", Collective::reduce_scatter}};
  for (const auto& [other, kind] : kOthers)
    if (plain == other) return kind;
  for (const std::string_view known : collective_names()) {
    std::string name;
    for (const char c : known)
      if (c != '_') name += c;
    if (name == plain) return collective_named(known);
  }
  return std::nullopt;
}

std::optional<Dtype> measured_dtype(std::string_view text) {
  const std::string name = lower_case(text);
  static constexpr std::pair<std::string_view, Dtype> kOthers[] = {
      {"half", Dtype::f16},      {"float", Dtype::f32},   {"double", Dtype::f64},     {"bfloat16", Dtype::bf16},
      {"char", Dtype::i8},       {"int", Dtype::i32},     {"mpi_char", Dtype::i8},    {"mpi_int", Dtype::i32},
      {"f8e4m3", Dtype::u8},     {"f8e5m2", Dtype::u8},   {"fp8_e4m3", Dtype::u8},    {"fp8_e5m2", Dtype::u8},
      {"mpi_float", Dtype::f32}, {"mpi_byte", Dtype::u8}, {"mpi_double", Dtype::f64}, {"mpi_int8_t", Dtype::i8}};
  for (const auto& [other, type] : kOthers)
    if (name == other) return type;
  return dtype_named(name);
}

std::optional<double> number_in(std::string_view word) {
  double v = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), v);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(v)) return std::nullopt;
  return v;
}

std::optional<Count> count_in(std::string_view word) {
  Count v = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), v);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return v;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBlank = " \t\r";
  for (std::size_t at = line.find_first_not_of(kBlank); at != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlank, end);
  }
  return words;
}

namespace {

constexpr std::string_view kDigits = "0123456789", kDate = "Mon Jan  1 12:00:00 2026";

// Colours at the beginning, "\x1b[0m".
std::string_view without_colours(std::string_view line) {
  while (line.starts_with("\x1b[")) {
    const std::size_t end = line.find('m');
    if (end == line.npos || line.substr(2, end - 2).find_first_not_of("0123456789;") != line.npos) break;
    line.remove_prefix(end + 1);
  }
  return line;
}

// "2026-11-28T07:22:10.123456789Z " of kubectl logs --timestamps and of CI systems, with "stdout F " behind it where
// the file is a container runtime's own; "2026-11-28 07:22:10,123 INFO " of Python's logging.
std::string_view without_time(std::string_view line) {
  constexpr std::string_view kForm = "dddd-dd-dd?dd:dd:dd";
  if (line.size() < kForm.size()) return line;
  for (std::size_t i = 0; i < kForm.size(); ++i)
    if (kForm[i] == 'd'   ? kDigits.find(line[i]) == kDigits.npos
        : kForm[i] == '?' ? line[i] != 'T' && line[i] != ' '
                          : line[i] != kForm[i])
      return line;
  const std::size_t end = line.find(' ', kForm.size());
  if (end == line.npos ||
      line.substr(kForm.size(), end - kForm.size()).find_first_not_of("0123456789-:.,+Z") != line.npos)
    return line;
  line.remove_prefix(end + 1);
  for (const std::string_view word : {"stdout F ", "stderr F ", "DEBUG ", "INFO ", "WARNING ", "ERROR "})
    if (line.starts_with(word)) line.remove_prefix(word.size());
  return line;
}

// Behind "node7: " of pdsh and clush, "node7 0: " of PALS' mpiexec and "launcher-1  | " of docker compose: where the
// tag ends, 0: there is none.
std::size_t end_of_host(std::string_view line) {
  const std::size_t end = line.find_first_of(": |");
  if (end == 0 || end == line.npos || line.substr(0, end).find_first_of("#=\"[<") != line.npos) return 0;
  if (line[end] == ':') return end + 1;
  if (const std::size_t rank_end = line.find_first_not_of(kDigits, end + 1);
      line[end] == ' ' && rank_end > end + 1 && rank_end != line.npos && line[rank_end] == ':')
    return rank_end + 1;
  const std::size_t bar = line.find_first_not_of(' ', end);
  return bar != line.npos && line[bar] == '|' ? bar + 1 : 0;
}

// Of mpirun ("[1,0]<stdout>:", "[job@1,0]<stdout>: ", by PRRTE's tag-detailed "[1,0][host:4711]<stdout>: ", with
// --timestamp-output "Mon Jan  1 12:00:00 2026<stdout>:"),
// MPICH's mpiexec ("[0] "), torchrun ("[default0]:"), kubectl logs --prefix ("[pod/name/container] ") and srun ("0: ",
// " 0: ").
std::string_view without_tag(std::string_view line) {
  const auto trim = [&] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
  const std::string_view whole = line;
  trim();
  if (const std::size_t end = line.starts_with('[') ? line.find(']') : line.npos; end != line.npos) {
    const std::string_view behind = line.substr(end + 1);
    const bool detailed = behind.starts_with('[') && behind.find("]<std") == behind.find(']');
    if (const std::size_t tag = behind.find(">:"); (behind.starts_with("<std") || detailed) && tag != behind.npos)
      line = behind.substr(tag + 2);
    else if (behind.starts_with(": ") || behind.starts_with(":#") || behind.starts_with(' '))
      line = behind.substr(1);
    else
      return whole;
  } else if (const std::size_t stamped = line.find("<stdout>:"); stamped == kDate.size()) {
    line.remove_prefix(stamped + 9);
  } else {
    const std::size_t digits = line.find_first_not_of(kDigits);
    if (digits == 0 || digits == line.npos || line[digits] != ':') return whole;
    line.remove_prefix(digits + 1);
  }
  trim();
  return line;
}

}  // namespace

std::vector<TextLine> lines_of(std::string_view text) {
  std::vector<TextLine> lines;
  // Any word may stand before a colon: one that also stands before a comment is a host's name.
  std::set<std::string_view> hosts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = without_tag(without_time(without_colours(text.substr(at, end - at))));
    const std::size_t tag = end_of_host(line), behind = line.find_first_not_of(" \t", tag);
    if (tag > 0 && behind != line.npos && line[behind] == '#') hosts.insert(line.substr(0, tag));
    lines.push_back({lines.size() + 1, line});
    at = end + 1;
  }
  if (hosts.empty()) return lines;
  for (TextLine& line : lines)
    if (const std::size_t tag = end_of_host(line.text); tag > 0 && hosts.contains(line.text.substr(0, tag))) {
      line.text.remove_prefix(tag);
      line.text.remove_prefix(std::min(line.text.find_first_not_of(" \t"), line.text.size()));
    }
  return lines;
}

std::vector<std::size_t> lines_with(std::string_view text, std::string_view word) {
  std::vector<std::size_t> all;
  for (const TextLine& line : lines_of(text))
    if (line.text.find(word) != line.text.npos) all.push_back(line.number);
  return all;
}

std::string RowCollector::why_not(Measurement& row) const {
  const auto kind = measured_collective(row.collective);
  if (!kind && !row.collective.empty())
    return fmt::format("GCCL has no counterpart of the collective \"{}\"", row.collective);
  if (!kind && !stated_.collective) return "the file does not say which collective; state --collective";
  if (kind && stated_.collective && *kind != *stated_.collective)
    return fmt::format("another collective than --collective {}", name(*stated_.collective));
  row.kind = kind ? *kind : *stated_.collective;
  if (row.collective.empty()) row.collective = name(row.kind);
  if (!stated_.system.empty() && row.system.empty()) row.system = stated_.system;
  if (lower_case(row.system).find(lower_case(stated_.system)) == std::string::npos)
    return fmt::format("another system than --system {}", stated_.system);
  const auto fill = [&](Rank& have, const std::optional<Rank>& given, std::string_view what) -> std::string {
    const std::string option = what == "nodes" ? "--nodes" : "--cards-per-node";
    if (have == 0 && !given) return fmt::format("the file does not say on how many {}; state {}", what, option);
    if (have != 0 && given && have != *given) return fmt::format("on other than {} {} ({})", *given, what, option);
    if (have == 0) have = *given;
    return {};
  };
  if (std::string why = fill(row.nodes, stated_.nodes, "nodes"); !why.empty()) return why;
  if (std::string why = fill(row.cards, stated_.cards, "cards of a node"); !why.empty()) return why;
  if (row.nodes * row.cards == 1) return "on one rank, where nothing is sent";
  if (Count(row.nodes) * row.cards > kRanksMax) return fmt::format("on more than {} ranks", kRanksMax);
  if (row.bytes == 0 && row.kind != Collective::barrier) return "of 0 bytes, or of a size that is not given";
  if (row.bytes > kMeasuredBytesMax) return "of more than 1 PiB";
  if (row.time_us == 0) return "its time is 0";
  if (!(row.time_us >= kMeasuredUsMin)) return "it took less than a femtosecond";
  return {};
}

// Half of the last digit's unit over the value.
double rounding_of(const std::string& number, double value) {
  const auto point = number.find('.');
  const auto digits = point == number.npos ? 0
                      : number.find_first_not_of("0123456789", point + 1) == number.npos
                          ? number.size() - point - 1
                          : 17;  // with an exponent: as exact as it can be
  return 0.5 * std::pow(10.0, -double(digits)) / value;
}

// Times and bandwidths of 6,000 published rows of nccl-tests and rccl-tests differ by no more than their roundings, so
// this finds gigabytes that are gibibytes (7 %), and a rank that is not counted.
void RowCollector::compare(const Measurement& row, const StatedMeasures& measures) {
  constexpr double kApart = 0.01;
  if (row.derived || measures.time_us.empty() || has_counts(row.kind) || row.bytes == 0) return;
  const double algbw = double(row.bytes) / row.time_us / 1e3, rounding = rounding_of(measures.time_us, row.time_us);
  for (const auto& [name, stated, follows] :
       {std::tuple("algbw", &measures.algbw, algbw),
        std::tuple("busbw", &measures.busbw, algbw * bus_factor(row.kind, row.ranks()))}) {
    const std::optional<double> GBps = number_in(*stated);
    if (!GBps || *GBps <= 0 || std::abs(follows / *GBps - 1) <= kApart + rounding + rounding_of(*stated, *GBps))
      continue;
    if (contradictions_++ == 0)
      first_contradiction_ =
          fmt::format("{}: {} bytes in {} us by {} on {} ranks are {} {:.4g} GB/s, found {}", row.at.text(), row.bytes,
                      measures.time_us, row.collective, row.ranks(), name, follows, *stated);
    return;
  }
}

void RowCollector::remark_contradictions() {
  if (contradictions_ > 0)
    remark(fmt::format("{}{}. Times are used: are bytes, units and ranks what they should be?", first_contradiction_,
                       contradictions_ == 1 ? "" : fmt::format(", and so in {} rows", contradictions_)));
  contradictions_ = 0;
}

void RowCollector::add(Measurement row, bool per_block, const StatedMeasures& measures) {
  std::string why = why_not(row);
  if (!why.empty()) return skip(row.at, std::move(why));
  if (per_block && counts_blocks(row.kind)) {
    if (row.bytes > kMeasuredBytesMax / row.ranks()) return skip(row.at, "of more than 1 PiB");
    row.bytes *= row.ranks();
  }
  // As benchmarks round sizes down, nothing was sent.
  if (!per_block && counts_blocks(row.kind) && row.bytes < Count(row.ranks()) * size_of(row.dtype))
    return skip(row.at, "of less than one element for each rank");
  if (!per_block) compare(row, measures);
  if (row.algorithm.empty()) row.algorithm = kNcclChoice;
  to_.rows.push_back(std::move(row));
}

}  // namespace gccl::sim
