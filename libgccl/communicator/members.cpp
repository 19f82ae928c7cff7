#include "libgccl/communicator/members.hpp"

#include <fmt/core.h>

namespace gccl {

std::string rank_text(Rank rank, const std::vector<Rank>& world_rank, bool of) {
  std::string text = fmt::format("rank {}", rank);
  if (of) text += fmt::format(" of {}", world_rank.size());
  if (rank < world_rank.size() && world_rank[rank] != rank) text += fmt::format(" (world rank {})", world_rank[rank]);
  return text;
}

}  // namespace gccl
