// Where the members of a group meet in a step to it (libgccl/schedule/group_step.hpp): the k-th one of a lane on each.
#pragma once

#include <unordered_map>
#include <vector>

#include "libgccl/schedule/lane.hpp"

namespace gccl::sim {

class GroupSteps {
 public:
  struct Member {
    std::uint32_t lane;
    Token token;
  };
  struct Meeting {
    std::vector<Member> members;  // by position in the group
    Rank arrived = 0;
    Rank in_flight = 0;  // messages
    std::uint64_t key = 0;

    bool all_here() const { return arrived == members.size(); }
    bool over() const { return all_here() && in_flight == 0; }
  };

  // A member has come to its k-th step with the group whose first member's lane is `first`.
  std::uint32_t arrive(std::uint32_t first, Scope scope, std::uint32_t k, Rank position, Rank size, Member who) {
    const std::uint64_t key = std::uint64_t(first) << 32 | std::uint64_t(scope) << 31 | k;
    const auto [at, fresh] = by_key_.try_emplace(key, 0);
    if (fresh) {
      at->second = acquire();
      Meeting& m = meetings_[at->second];
      m.members.assign(size, {});
      m.arrived = m.in_flight = 0;
      m.key = key;
    }
    Meeting& m = meetings_[at->second];
    m.members[position] = who;
    ++m.arrived;
    return at->second;
  }
  Meeting& operator[](std::uint32_t i) { return meetings_[i]; }
  // Ends the meeting and returns its members.
  std::vector<Member> end(std::uint32_t i) {
    by_key_.erase(meetings_[i].key);
    free_.push_back(i);
    return std::move(meetings_[i].members);
  }

 private:
  std::uint32_t acquire() {
    if (free_.empty()) {
      meetings_.emplace_back();
      return std::uint32_t(meetings_.size() - 1);
    }
    const std::uint32_t i = free_.back();
    free_.pop_back();
    return i;
  }

  std::unordered_map<std::uint64_t, std::uint32_t> by_key_;
  std::vector<Meeting> meetings_;
  std::vector<std::uint32_t> free_;
};

}  // namespace gccl::sim
