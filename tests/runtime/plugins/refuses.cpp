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
    b.open_port = [](auto...) { return GCCL_ERR_DEVICE; };
    b.connect_port = [](auto...) { return GCCL_ERR_DEVICE; };
    b.close = b.port_connected = b.close_port = [](void*) {};
    b.send = b.receive = [](void*, GCCL_Transfer*) { return 1; };
    b.poll = [](auto...) { return -1; };
    b.fault = [](auto...) {};
    b.cancel = [](auto...) {};
    b.abort = [](auto...) {};
    return b;
  }();
  return &backend;
}
