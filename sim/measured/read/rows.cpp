// What becomes of a row, whatever its format.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/base/limits.hpp"
#include "libgccl/base/quoted.hpp"
#include "libgccl/schedule/definition.hpp"
#include "sim/measured/read/readers.hpp"

namespace gccl::sim {
namespace {

constexpr Count kMeasuredBytesMax = Count(1) << 50;
constexpr double kMeasuredUsMin = 1e-9;

// "a, b and c".
std::string listed(const std::vector<std::string_view>& all) {
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == all.size() ? " and " : ", ", all[i]);
  return text;
}

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

std::string no_dtype(std::string_view name) { return fmt::format("GCCL has no element type {}", gccl::quoted(name)); }

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

bool is_number_row(const std::vector<std::string_view>& words) {
  const auto numbers = std::size_t(
      std::count_if(words.begin(), words.end(), [](std::string_view word) { return number_in(word).has_value(); }));
  return words.size() > 1 && count_in(words[0]) && 2 * numbers > words.size();
}

std::string RowCollector::why_not(Measurement& row) const {
  const auto kind = measured_collective(row.collective);
  if (!kind && !row.collective.empty())
    return fmt::format("GCCL has no counterpart of the collective {}", gccl::quoted(row.collective));
  std::vector<std::string_view> missing, options;
  const auto needed = [&](bool is_there, std::string_view what, std::string_view option) {
    if (is_there) return;
    missing.push_back(what);
    options.push_back(option);
  };
  needed(kind || stated_.collective, "which collective", "--collective");
  needed(row.nodes || stated_.nodes, "on how many nodes", "--nodes");
  needed(row.cards || stated_.cards, "on how many cards of a node", "--cards-per-node");
  if (!missing.empty()) return fmt::format("the file does not say {}; state {}", listed(missing), listed(options));
  if (kind && stated_.collective && *kind != *stated_.collective)
    return fmt::format("another collective than --collective {}", name(*stated_.collective));
  row.kind = kind ? *kind : *stated_.collective;
  if (row.collective.empty()) row.collective = name(row.kind);
  if (!stated_.system.empty() && row.system.empty()) row.system = stated_.system;
  if (lower_case(row.system).find(lower_case(stated_.system)) == std::string::npos)
    return fmt::format("another system than --system {}", stated_.system);
  const auto fill = [&](Rank& have, const std::optional<Rank>& given, std::string_view what) -> std::string {
    const std::string_view option = what == "nodes" ? "--nodes" : "--cards-per-node";
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
  compare(row, measures);
  if (row.algorithm.empty()) row.algorithm = kNcclChoice;
  to_.rows.push_back(std::move(row));
}

}  // namespace gccl::sim
