// Groups and views: which ranks an algorithm talks to, in an order that suits the machine.
#pragma once

#include <algorithm>

#include "libgccl/schedule/types.hpp"

namespace gccl {

// An ordered set of ranks of one communicator, and this rank's place in it. Affine (first, stride) where the machine is
// regular, else backed by a table that outlives the schedule. Algorithms never notice which.
struct Group {
  Rank size = 0, rank = 0;  // `rank` is this rank's position in the group
  Rank first = 0, stride = 1;
  const Rank* table = nullptr;

  // The member at position i, cyclically: any i from -2^62 to 2^62. Requires size > 0.
  Rank operator[](std::int64_t i) const {
    if (i < 0 || i >= std::int64_t(size)) i = wrap(i);
    return table ? table[i] : first + Rank(i) * stride;
  }
  // The position k after this rank's, and the one k before it, cyclically. Require k <= size.
  Rank ahead(Rank k) const { return k < size - rank ? rank + k : rank + k - size; }
  Rank behind(Rank k) const { return k <= rank ? rank - k : rank + size - k; }
  // i reduced to 0 .. size-1.
  std::int64_t wrap(std::int64_t i) const {
    const std::int64_t n = size;
    if (i >= n && i < 2 * n) return i - n;
    if (i < 0 && i >= -n) return i + n;
    return ((i % n) + n) % n;
  }
};

// What a topology offers to the algorithms of one rank.
// - all:  every rank of the communicator, all[i] == i
// - node: the ranks of my node, by rank; node.rank is my place on it
// - rail: the ranks with my place on their nodes, one for each node, rail.rank is my node. Only the places that every
//   node has make a rail: on nodes of different sizes rail.size is 0 for ranks with node.rank >= rails.
// - columns: row length of the rank grid (all.size is a multiple of it); row r holds ranks r*columns ...
struct View {
  Group all, node, rail;
  Rank nodes = 1;       // nodes that hold ranks of this communicator
  Rank rails = 1;       // the smallest node's number of ranks
  Rank fullest = 1;     // the fullest node's
  Rank columns = 1;     // 2-D grid
  bool by_node = true;  // the ranks of each node follow each other, so distances in rank say which hops cross nodes
  // Where the other nodes' ranks are, for node_at: node k begins at rank k * per_node, or, with tables that outlive the
  // schedule, holds members[begin[k]] .. members[begin[k + 1] - 1].
  Rank per_node = 0;
  const Rank* members = nullptr;
  const Rank* begin = nullptr;
  const Rank* index = nullptr;         // where rank r is among members
  const Rank* rail_members = nullptr;  // the rank at place j of node k, j < rails: [j * nodes + k]
  // How the ranks of a node are joined, as far as channels turn their order by it (channel.hpp): in a way that says
  // nothing about orders, such as a torus; all to all through a switch; or each pair by links of its own.
  enum class Wiring : std::uint8_t { unknown, crossbar, mesh };
  Wiring wiring = Wiring::crossbar;
  // Whether the switch that joins my node, or my rail, takes steps to that group whole (group_step.hpp).
  bool node_switch = false, rail_switch = false;
  // Orders that channels take instead of those that follow from the nodes, one of `orders` after the other, and where
  // each rank stands in them, with tables that outlive the schedule: [i * all.size + place or rank].
  const Rank *order = nullptr, *order_place = nullptr;
  Rank orders = 0;
  Rank channel = 0;   // for which a schedule is made, one of its lanes
  Rank channels = 1;  // how many there are; of a closed form, that are asked for at once

  // The ranks of node k by rank, k < nodes; the group's own `rank` has a meaning only when k is my node (rail.rank).
  Group node_at(Rank k) const {
    if (k == rail.rank) return node;
    if (members) return {.size = begin[k + 1] - begin[k], .table = members + begin[k]};
    const Rank first = k * per_node;
    return {.size = std::min(per_node, all.size - first), .first = first};
  }
  bool uniform() const { return Count(rails) * nodes == all.size; }  // every node holds the same number of ranks
};

// The same, of which a closed form is asked so many channels at once.
inline View with_channels(View v, Count channels) {
  v.channels = Rank(channels);
  return v;
}

}  // namespace gccl
