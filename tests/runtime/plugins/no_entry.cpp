// A library that is no plug-in, although it is called like one.
#include "gccl/backend.h"

extern "C" GCCL_API int GCCL_Backend_entry_v0(void) { return 0; }
