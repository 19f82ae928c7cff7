// For a library that comes with GCCL and serves a program, such as the MPI drop-in: the program may use GCCL, too.
#pragma once

#include "gccl/gccl.h"

// From now on GCCL_Finalize, which is the program's, passes the communicator over: the library that made it frees or
// releases it. Local.
extern "C" GCCL_API GCCL_Result GCCL_Comm_set_private(GCCL_Comm comm);

// How many of the n listed ranks `comm` reaches otherwise than through this machine's memory: a connection to each, and
// so a file descriptor, is opened once data go there. Local.
extern "C" GCCL_API GCCL_Result GCCL_Comm_connections(GCCL_Comm comm, const int* ranks, int n, int* connections);

// Makes a communicator of the n listed ranks of `comm`, of which the caller is one, in that order. Collective over
// these alone: no message goes over `comm`, which may have failed or be in use meanwhile; what they must say to each
// other goes by `allgather` with that context, as GCCL_Config has it. `id` is the same on each, and no other
// communicator's. Connections, files and threads are those of comm's job: a tenth of what GCCL_Init takes.
extern "C" GCCL_API GCCL_Result GCCL_Comm_create_apart(GCCL_Comm comm, const int* ranks, int n, uint64_t id,
                                                       GCCL_Allgather_function allgather, void* context,
                                                       GCCL_Comm* out);
