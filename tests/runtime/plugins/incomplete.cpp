// A plug-in whose author has forgotten functions.
#include "gccl/backend.h"

extern "C" GCCL_API const GCCL_Backend* GCCL_Backend_entry_v1(void) {
  static const GCCL_Backend backend = [] {
    GCCL_Backend b{};
    b.abi = GCCL_BACKEND_ABI;
    b.name = "incomplete";
    b.open = [](const GCCL_Backend_environment*, void**, char*) { return GCCL_SUCCESS; };
    return b;
  }();
  return &backend;
}
