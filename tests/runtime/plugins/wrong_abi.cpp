// A plug-in of another time: its interface has another number.
#include "gccl/backend.h"

extern "C" GCCL_API const GCCL_Backend* GCCL_Backend_entry_v1(void) {
  static const GCCL_Backend backend = [] {
    GCCL_Backend b{};
    b.abi = GCCL_BACKEND_ABI + 6;
    b.name = "wrong_abi";
    return b;
  }();
  return &backend;
}
