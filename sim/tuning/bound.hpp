// How long a call takes at least, whatever the engine and however it is cut up: what some ranks' own work takes of
// their cards and links.
#pragma once

#include "sim/engine/workload.hpp"

namespace gccl::sim {

// Nanoseconds. Of a few ranks the messages are counted, with their bytes on every link of their routes: no link carries
// them faster than it can, no rank handles or combines several at once. What ranks wait for is left out, so the time is
// never less. 0 beyond the operation's own start where steps go to groups.
double least_ns(const Cluster& cluster, const std::vector<Card>& cards, const Algorithm& algorithm, const Call& call,
                const Layout& layout, unsigned element_bytes, const Protocol& protocol);

}  // namespace gccl::sim
