// Which algorithm Open MPI takes where nobody names another: the fixed decision rules of coll/tuned (4.1 and later), as
// tables of thresholds. Source: open-mpi/ompi ompi/mca/coll/tuned/coll_tuned_decision_fixed.c.
#pragma once

#include <string_view>

#include "libgccl/schedule/types.hpp"

namespace gccl {

struct OpenMpiAlgorithm {
  int id = 0;             // as coll_tuned_COLLECTIVE_algorithm numbers it; 0: Open MPI has no rule
  std::string_view name;  // as it names it
};

// For a commutative operation. `bytes` are those of the vector for all-reduce, broadcast, reduce; of all blocks for
// reduce_scatterv; of one rank's block, or of the mean one, for the others.
OpenMpiAlgorithm openmpi_algorithm(Collective kind, Rank ranks, double bytes);

}  // namespace gccl
