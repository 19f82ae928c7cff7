// For a library that comes with GCCL and serves a program, such as the MPI drop-in: the program may use GCCL, too.
#pragma once

#include "gccl/gccl.h"

// From now on GCCL_Finalize, which is the program's, passes the communicator over: the library that made it frees or
// releases it. Local.
extern "C" GCCL_API GCCL_Result GCCL_Comm_set_private(GCCL_Comm comm);
