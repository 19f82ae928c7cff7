#include "sim/json/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace gccl {
namespace {

// Levenshtein distance; typed text is cut first so that a huge name costs nothing.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

std::string suggestion(std::string_view typed, std::span<const std::string_view> candidates) {
  if (candidates.empty()) return "";
  typed = typed.substr(0, 64);
  std::vector<std::pair<std::size_t, std::string_view>> near;
  for (std::string_view c : candidates) near.emplace_back(distance(typed, c.substr(0, 64)), c);
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto [least, best] = near[0];
  if (least <= std::max<std::size_t>(2, best.size() / 3)) return fmt::format("; did you mean \"{}\"?", best);
  constexpr std::size_t kShown = 64;  // more than any object has keys; a fabric may have thousands of switches
  std::string text = "; expected one of ";
  for (std::size_t i = 0; i < std::min(near.size(), kShown); ++i)
    text += fmt::format("{}{}", i ? ", " : "", near[i].second);
  if (near.size() > kShown) text += fmt::format(" and {} more", near.size() - kShown);
  return text;
}

}  // namespace gccl
