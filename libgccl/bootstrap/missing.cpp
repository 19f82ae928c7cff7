#include "libgccl/bootstrap/missing.hpp"

#include <fmt/core.h>

#include <cassert>

namespace gccl {

std::string ranks_text(const std::vector<Rank>& ranks, Rank size) {
  assert(!ranks.empty());
  constexpr int kRangesMax = 12;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  int ranges = 0;
  for (std::size_t i = 0, end; i < ranks.size(); i = end) {
    if (++ranges > kRangesMax) {
      text += fmt::format(" and {} more", ranks.size() - i);
      break;
    }
    for (end = i + 1; end < ranks.size() && ranks[end] == ranks[end - 1] + 1;) ++end;
    text += fmt::format("{}{}", i > 0 ? ", " : "", ranks[i]);
    if (end - i > 1) text += fmt::format("{}{}", end - i == 2 ? ", " : "-", ranks[end - 1]);
  }
  return fmt::format("{} of {}", text, size);
}

std::string duration_text(std::int64_t ms) {
  if (ms < 1000) return fmt::format("{} ms", ms);
  const std::int64_t tenths = ms % 1000 / 100;
  return fmt::format("{}{} s", ms / 1000, tenths ? fmt::format(".{}", tenths) : "");
}

std::string missing_text(const std::vector<Rank>& ranks, Rank size, std::int64_t ms) {
  return fmt::format("{} did not come within {}", ranks_text(ranks, size), duration_text(ms));
}

}  // namespace gccl
