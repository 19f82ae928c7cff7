#include "libgccl/runtime/nearest.hpp"

#include <algorithm>
#include <cstdint>
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

std::string_view nearest(std::string_view typed, std::span<const std::string_view> candidates) {
  typed = typed.substr(0, 64);
  std::string_view best;
  std::size_t best_distance = SIZE_MAX;
  for (const std::string_view c : candidates)
    if (const std::size_t d = distance(typed, c.substr(0, 64)); d < best_distance) best_distance = d, best = c;
  return best_distance <= std::max<std::size_t>(2, best.size() / 3) ? best : std::string_view();
}

std::string suggestion(std::string_view typed, std::span<const std::string_view> candidates) {
  if (candidates.empty()) return "";
  if (const std::string_view best = nearest(typed, candidates); !best.empty())
    return "; did you mean \"" + std::string(best) + "\"?";
  const std::size_t shown = std::min<std::size_t>(candidates.size(), 12);
  std::string text = "; expected one of ";
  for (std::size_t i = 0; i < shown; ++i) text.append(i > 0 ? ", " : "").append(candidates[i]);
  if (shown < candidates.size()) text += " and " + std::to_string(candidates.size() - shown) + " more";
  return text;
}

}  // namespace gccl
