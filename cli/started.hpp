// By what this process was started beside others, where that was a launcher of ranks.
#pragma once

#include <string>

#include "libgccl/base/environment.hpp"

namespace gccl {

struct Started {
  std::string backend = "native";   // what joins the ranks: "mpi" for those of Open MPI's or MPICH's mpirun
  bool alone = true, first = true;  // the only one; the one with rank 0
};
// srun --mpi=pmi2 sets PMI_SIZE, too, for whatever it starts. Ranks of gccl launch inherit what MPI's launcher says of
// the shell that it was started in.
Started started_by(const Environment& environment);

}  // namespace gccl
