// The links of messages to and from a whole group, read off a cluster's routes.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "sim/engine/network.hpp"

namespace gccl::sim {

// Keeps each set, so that messages may point to it.
class LinkSets {
 public:
  explicit LinkSets(const Cluster& cluster) : cluster_(cluster) {}

  // The routes between members[root] and all the others, each link once, and the root's own way to the switch and back:
  // what it sends comes back to it, and what it adds goes through the switch. Towards the root where `reduces`.
  // Requires two members or more.
  const LinkSet& of(const std::vector<Card>& members, Rank root, bool reduces);

 private:
  using Key = std::pair<std::vector<Card>, std::pair<Rank, bool>>;
  LinkSet make(const std::vector<Card>& members, Rank root, bool reduces) const;

  const Cluster& cluster_;
  std::map<Key, LinkSet> sets_;
};

}  // namespace gccl::sim
