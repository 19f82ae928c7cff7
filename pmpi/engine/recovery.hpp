// After calls that differed between the ranks: what MPI itself does with them, where the ranks can agree on that.
#pragma once

#include "pmpi/engine/communicator.hpp"

namespace gccl::pmpi {

// GCCL ends a communicator when the ranks' calls differ. MPI often goes on: a gather of more data than the root expects
// is an error at the root alone. What to do with the call that failed here:
enum class Recovery : std::uint8_t {
  none,      // it is an error, and so are all later calls
  truncate,  // it is the one that differed, and others are already past it: MPI's code for it. Later calls are MPI's
  mpi        // MPI carries it out, and all later calls
};
// Collective over the ranks of `k`, within a blocking call that failed on all of them, or on some of them in the one
// before. Waits ten seconds for ranks that do not come. `spoiled`: the input may be overwritten, so that MPI cannot
// carry the call out.
Recovery recover(Communicator& k, Function function, int root, bool spoiled);

}  // namespace gccl::pmpi
