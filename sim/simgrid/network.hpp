// The SimGrid engine's network.
#pragma once

#include "sim/engine/shared_network.hpp"
#include "sim/simgrid/flows.hpp"

namespace gccl::sim {

// At most one in the life of a process: the constructor throws std::logic_error the second time.
using SimGridNetwork = SharedNetwork<Flows>;
static_assert(Network<SimGridNetwork>);

}  // namespace gccl::sim
