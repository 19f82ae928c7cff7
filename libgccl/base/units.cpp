#include "libgccl/base/units.hpp"

#include <charconv>
#include <cmath>
#include <span>
#include <utility>

namespace gccl {
namespace {

using Units = std::span<const std::pair<std::string_view, double>>;

constexpr std::pair<std::string_view, double> kSizes[] = {{"", 1},
                                                          {"B", 1},
                                                          {"K", 1024},
                                                          {"M", 1048576},
                                                          {"G", 1073741824.0},
                                                          {"KiB", 1024},
                                                          {"MiB", 1048576},
                                                          {"GiB", 1073741824.0},
                                                          {"TiB", 1099511627776.0},
                                                          {"PiB", 1125899906842624.0},
                                                          {"EiB", 1152921504606846976.0},
                                                          {"kB", 1e3},
                                                          {"KB", 1e3},
                                                          {"MB", 1e6},
                                                          {"GB", 1e9},
                                                          {"TB", 1e12},
                                                          {"PB", 1e15},
                                                          {"EB", 1e18}};
constexpr std::pair<std::string_view, double> kTimes[] = {
    {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 6e10}};

// A number of at least 0 with a unit, in the unit whose factor is 1.
std::optional<double> scaled(std::string_view t, Units units) {
  while (!t.empty() && t.front() == ' ') t.remove_prefix(1);
  double v = 0;
  const auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), v);
  if (error != std::errc() || !std::isfinite(v) || std::signbit(v)) return std::nullopt;
  t.remove_prefix(std::size_t(end - t.data()));
  while (!t.empty() && t.front() == ' ') t.remove_prefix(1);
  while (!t.empty() && t.back() == ' ') t.remove_suffix(1);
  for (const auto& [unit, factor] : units)
    if (unit == t) return v * factor;
  return std::nullopt;
}

}  // namespace

std::optional<double> size_of_text(std::string_view text) {
  const auto v = scaled(text, kSizes);
  // With a unit a part of a byte is rounded off; without one it is a mistake.
  if (v && *v != std::floor(*v) && text.find_first_not_of("0123456789.eE+- ") == text.npos) return std::nullopt;
  return v;
}
std::optional<double> time_of_text(std::string_view text) { return scaled(text, kTimes); }

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  const auto v = size_of_text(text);
  return v && *v < kSizesEnd ? std::optional(std::uint64_t(std::llround(*v))) : std::nullopt;
}

std::optional<std::int64_t> parse_nanos(std::string_view text) {
  const auto v = time_of_text(text);
  return v && *v < kTimesEnd ? std::optional(std::int64_t(std::llround(*v))) : std::nullopt;
}

}  // namespace gccl
