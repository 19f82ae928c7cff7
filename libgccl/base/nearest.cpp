#include "libgccl/base/nearest.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace gccl {
namespace {

// Capital letters make no difference to what was meant.
char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; }

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

// By distance from what was typed.
std::vector<std::pair<std::size_t, std::string_view>> sorted(std::string_view typed,
                                                             std::span<const std::string_view> candidates) {
  constexpr std::size_t kLongest = 64;
  std::vector<std::pair<std::size_t, std::string_view>> near;
  for (const std::string_view c : candidates)
    near.emplace_back(distance(typed.substr(0, kLongest), c.substr(0, kLongest)), c);
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return near;
}

// A few letters off, but not all of them.
bool close(const std::pair<std::size_t, std::string_view>& candidate, std::size_t letters = 2) {
  return candidate.first <= std::max(letters, candidate.second.size() / 3) && candidate.first < candidate.second.size();
}

}  // namespace

std::string_view nearest(std::string_view typed, std::span<const std::string_view> candidates, std::size_t letters) {
  const auto near = sorted(typed, candidates);
  return !near.empty() && close(near[0], letters) ? near[0].second : std::string_view();
}

std::string suggestion(std::string_view typed, std::span<const std::string_view> candidates) {
  const auto near = sorted(typed, candidates);
  if (near.empty()) return "";
  if (close(near[0])) return fmt::format("; did you mean \"{}\"?", near[0].second);
  constexpr std::size_t kShown = 64;  // more than any object has keys; a fabric may have thousands of switches
  const std::size_t shown = std::min(near.size(), kShown);
  std::string text = "; expected one of ";
  for (std::size_t i = 0; i < shown; ++i) {
    const std::string_view one = shown < near.size() ? near[i].second : candidates[i];
    text.append(i > 0 ? ", " : "").append(one);
  }
  if (shown < near.size()) text += fmt::format(" and {} more", near.size() - shown);
  return text;
}

}  // namespace gccl
