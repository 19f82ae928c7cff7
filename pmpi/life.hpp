// The drop-in's own beginning and end within the program's MPI.
#pragma once

namespace gccl::pmpi {

// Learns what there is to know about this process's MPI. MPI must be running; any number of times; not collective: the
// library may have been loaded after MPI_Init.
void start_once();

// Before MPI ends: ends GCCL, and prints the counts where GCCL_PMPI_STATS=1. Once; collective.
void end_once();

}  // namespace gccl::pmpi
