// Who the ranks of a communicator are, and what sentences call them.
#pragma once

#include <fmt/core.h>

#include <span>
#include <string>
#include <vector>

#include "libgccl/base/status.hpp"
#include "libgccl/communicator/descriptor.hpp"

namespace gccl {

// "rank 1", with `of` "rank 1 of 4"; and which rank of the world that is where the numbers differ.
std::string rank_text(Rank rank, const std::vector<Rank>& world_rank, bool of = false);

struct Members {
  Rank rank = 0;
  std::vector<Rank> world_rank;  // by rank
  std::vector<Rank> node;        // by rank, numbered from 0 in the order of their lowest ranks
  std::uint64_t id = 0;
  bool world = false;  // of all ranks of the job, made by create_world

  Rank size() const { return Rank(world_rank.size()); }
  // Some of them, of whom this rank is one, in that order. The caller gives them an id.
  Members part(std::span<const Rank> ranks) const;
  // As stated above, and no rank twice. For assertions.
  bool sound() const;
  std::string name(Rank r) const { return rank_text(r, world_rank); }
  // "rank 1, rank 3".
  std::string names(const auto& ranks) const {
    std::string text;
    for (const Rank r : ranks) text += (text.empty() ? "" : ", ") + name(r);
    return text;
  }
  // "rank 1 of 4, allreduce #17 of 1024 x f32, sum: " and why.
  Status in_context(const std::string& call, const Status& why) const {
    return Status::error(fmt::format("{}, {}: {}", rank_text(rank, world_rank, true), call, why.text()), why.code());
  }
  Status in_context(const Descriptor& call, const Status& why) const { return in_context(call.text(), why); }
};

}  // namespace gccl
