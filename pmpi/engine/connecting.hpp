// Makes the GCCL communicator that serves an MPI communicator.
#pragma once

#include <mpi.h>

#include <optional>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "libgccl/base/processors.hpp"
#include "pmpi/engine/descriptors.hpp"

namespace gccl::pmpi {

// GCCL_COMM_NULL on all ranks when it failed on any. `error` says why it did here; empty on the other ranks, and where
// that was said before.
struct Connected {
  GCCL_Comm comm = GCCL_COMM_NULL;
  int tag = 0;  // on own_world(), for messages between these ranks about this communicator
  std::string error;
  Promised promised;
  std::vector<ProcessorShare> processors;  // of each rank; empty where that of all of MPI_COMM_WORLD is known
  std::optional<bool> oversubscribed;      // as GCCL_OVERSUBSCRIBED says
};

// Collective over `comm`, of 2 ranks or more, in its place among the collective calls on it: part of a blocking one.
// MPI and the calls in flight on other communicators move on meanwhile. `world` is MPI_COMM_WORLD's, whose connections
// it shares then; where that is GCCL_COMM_NULL on a rank, it gets its own.
Connected connect_ranks(MPI_Comm comm, int rank, int size, GCCL_Comm world);

}  // namespace gccl::pmpi
