#include "libgccl/communicator/recovery/members.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>

namespace gccl {

std::string rank_text(Rank rank, const std::vector<Rank>& world_rank, bool of) {
  std::string text = fmt::format("rank {}", rank);
  if (of) text += fmt::format(" of {}", world_rank.size());
  if (rank < world_rank.size() && world_rank[rank] != rank) text += fmt::format(" (world rank {})", world_rank[rank]);
  return text;
}

Members Members::part(std::span<const Rank> ranks) const {
  Members m;
  std::vector<Rank> numbers;  // of the nodes here, in the order in which they appear there
  for (const Rank r : ranks) {
    assert(r < size());
    if (r == rank) m.rank = m.size();
    m.world_rank.push_back(world_rank[r]);
    auto it = std::ranges::find(numbers, node[r]);
    if (it == numbers.end()) it = numbers.insert(numbers.end(), node[r]);
    m.node.push_back(Rank(it - numbers.begin()));
  }
  assert(std::ranges::count(ranks, rank) == 1 && m.sound());
  return m;
}

bool Members::sound() const {
  if (rank >= size() || node.size() != size()) return false;
  Rank nodes = 0;
  for (const Rank n : node) {
    if (n > nodes) return false;
    if (n == nodes) ++nodes;
  }
  std::vector<Rank> sorted = world_rank;
  std::ranges::sort(sorted);
  return std::ranges::adjacent_find(sorted) == sorted.end();
}

}  // namespace gccl
