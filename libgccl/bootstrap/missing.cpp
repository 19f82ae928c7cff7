#include "libgccl/bootstrap/missing.hpp"

#include <cassert>

namespace gccl {

std::string ranks_text(const std::vector<Rank>& ranks, Rank size) {
  assert(!ranks.empty());
  constexpr int kRangesMax = 12;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  int ranges = 0;
  for (std::size_t i = 0, end; i < ranks.size(); i = end) {
    if (++ranges > kRangesMax) {
      text += " and " + std::to_string(ranks.size() - i) + " more";
      break;
    }
    for (end = i + 1; end < ranks.size() && ranks[end] == ranks[end - 1] + 1;) ++end;
    if (i > 0) text += ", ";
    text += std::to_string(ranks[i]);
    if (end - i > 1) text += (end - i == 2 ? ", " : "-") + std::to_string(ranks[end - 1]);
  }
  return text + " of " + std::to_string(size);
}

std::string duration_text(std::int64_t ms) {
  if (ms < 1000) return std::to_string(ms) + " ms";
  const std::int64_t tenths = ms % 1000 / 100;
  return std::to_string(ms / 1000) + (tenths ? "." + std::to_string(tenths) : "") + " s";
}

std::string missing_text(const std::vector<Rank>& ranks, Rank size, std::int64_t ms) {
  return ranks_text(ranks, size) + " did not come within " + duration_text(ms);
}

}  // namespace gccl
