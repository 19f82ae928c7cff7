#include "libgccl/communicator/members.hpp"

namespace gccl {

std::string rank_text(Rank rank, const std::vector<Rank>& world_rank, bool of) {
  std::string text = "rank " + std::to_string(rank);
  if (of) text += " of " + std::to_string(world_rank.size());
  if (rank < world_rank.size() && world_rank[rank] != rank)
    text += " (world rank " + std::to_string(world_rank[rank]) + ")";
  return text;
}

}  // namespace gccl
