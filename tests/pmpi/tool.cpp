// A profiling tool: it answers functions of MPI's.
#include <mpi.h>

extern "C" int MPI_Init(int* argc, char*** argv) { return PMPI_Init(argc, argv); }
