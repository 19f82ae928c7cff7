// What steps to a node's switch cost (group_step.hpp): the closed forms of NVLS algorithms.
#pragma once

#include <algorithm>

#include "libgccl/cost/cost_model.hpp"
#include "libgccl/schedule/group_step.hpp"

namespace gccl {

// From the end of one chunk to the end of the next where chunks reduce while the ones before them multicast: a link
// carries a whole chunk for the one and a part for the other. A lane has one chunk of each on its way. Lanes are in
// step: while the last two are in their latency, the link has the others' chunks at most (in_step.hpp).
inline Cost switch_interval(const Hop& hop, double members, double bytes, Count lanes, double gap_ns) {
  const Cost links = (1 + 1 / members) * bytes * hop.beta_ns_per_byte;
  const Cost idle = lanes < 2 ? 0 : std::max(0.0, hop.alpha_ns - gap_ns - double(lanes - 2) * links) / double(lanes);
  return std::max({links + idle, 2 * gap_ns, (hop.alpha_ns + links) / double(lanes)});
}

// For plain steps, of which every member has one for each other one.
constexpr std::string_view kOneNodeLimit = "it is for at most 256 ranks on one node";
inline bool one_node(const Call&, const View& v) { return v.nodes == 1 && v.all.size <= 256; }

}  // namespace gccl
