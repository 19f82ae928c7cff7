// A plug-in that cannot start here.
#include <cstdio>

#include "gccl/backend.h"

extern "C" GCCL_API const GCCL_Backend* GCCL_Backend_entry_v1(void) {
  static const GCCL_Backend backend = [] {
    GCCL_Backend b{};
    b.abi = GCCL_BACKEND_ABI;
    b.name = "refuses";
    b.open = [](const GCCL_Backend_environment*, void**, char* text) {
      std::snprintf(text, GCCL_BACKEND_TEXT_BYTES, "there is no such card");
      return GCCL_ERR_DEVICE;
    };
    b.close = [](void*) {};
    return b;
  }();
  return &backend;
}
