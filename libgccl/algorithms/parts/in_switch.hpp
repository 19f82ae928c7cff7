// What steps to a node's switch cost (group_step.hpp): the closed forms of NVLS algorithms.
#pragma once

#include <algorithm>

#include "libgccl/cost/cost_model.hpp"
#include "libgccl/cost/pipelined.hpp"
#include "libgccl/schedule/group_step.hpp"

namespace gccl {

// What a link carries for one chunk where chunks reduce while the ones before them multicast: a whole one for the one,
// and a part for the other.
inline Cost switch_links(const Hop& hop, double members, double bytes) {
  return (1 + 1 / members) * bytes * hop.beta_ns_per_byte;
}

// From the end of one chunk to the end of the next. A lane has one chunk of each on its way. Lanes are in step, and all
// of them in their latency at once for a while: on the flow engine, 8 x H100 and chunks of 0.3 to 20 MB, two lose the
// whole of it in each round of all lanes, four a third and eight a tenth.
inline Cost switch_interval(const Hop& hop, double members, double bytes, Count lanes, double gap_ns) {
  const Cost links = switch_links(hop, members, bytes);
  const Cost idle = lanes < 2 ? 0 : hop.alpha_ns / double(lanes - 1) / double(lanes);
  return std::max({links + idle, 2 * gap_ns, (hop.alpha_ns + links) / double(lanes)});
}

// For plain steps, of which every member has one for each other one.
constexpr std::string_view kOneNodeLimit = "it is for at most 256 ranks on one node";
inline bool one_node(const Call&, const View& v) { return v.nodes == 1 && v.all.size <= 256; }

}  // namespace gccl
