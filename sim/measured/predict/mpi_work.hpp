// What MPI libraries do in a collective beside what GCCL's algorithm of that name does.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/cluster/read/mpi_memory.hpp"
#include "libgccl/cost/cost_model.hpp"

namespace gccl::sim {

// On the way of the rank that is done last. Read from Open MPI's sources (open-mpi/ompi, ompi/mca/coll/base); what PICO
// and MPICH have under these names counts alike.
struct MpiWork {
  double waits = 0;      // messages that leave one after the other where GCCL's are on their way together
  double met = 0;        // the same, where messages of one block leave once their receive is posted
  double sent = 0;       // bytes more between nodes
  double combined = 0;   // bytes more that are reduced
  double copied = 0;     // bytes that are copied from and to the caller's vectors
  double allocated = 0;  // the longest piece of memory that it allocates, bytes
  bool several = false;  // more than one of about that length
  double touched = 0;    // bytes of that memory whose pages it uses
};
// `whole`: messages are not cut up.
MpiWork mpi_work(const Algorithm& algorithm, bool open_mpi, bool whole, Rank ranks, Rank nodes, double bytes);

double mpi_work_us(const MpiWork& work, double block, const CostModel& costs, const MpiMemory& memory);

}  // namespace gccl::sim
