#include "libgccl/backends/shm/shm_backend.hpp"

#include <cstdio>

#include "libgccl/backends/shm/shm_port.hpp"

namespace gccl {
namespace {

using shm::Port;

Port* port_of(void* port) { return static_cast<Port*>(port); }

GCCL_Result told(const Status& s, char* text) {
  if (!s.ok()) std::snprintf(text, GCCL_BACKEND_TEXT_BYTES, "%s", s.text().c_str());
  return GCCL_Result(s.code());
}

// There is nothing that ports share: an instance is only a place in memory.
char the_instance;

constexpr GCCL_Backend kBackend = {
    .abi = GCCL_BACKEND_ABI,
    .name = "shm",
    .open =
        [](const GCCL_Backend_environment*, void** instance, char*) {
          *instance = &the_instance;
          return GCCL_SUCCESS;
        },
    .close = [](void*) {},
    .open_port =
        [](void*, const GCCL_Port_spec* spec, void** port, void* address, char* text) {
          std::unique_ptr<Port> p;
          const Status s = Port::open(*spec, &p, address);
          *port = p.release();
          return told(s, text);
        },
    .connect_port = [](void* port, const GCCL_Port_spec* spec, const void* addresses, std::uint8_t* reaches,
                       char* text) { return told(port_of(port)->connect(*spec, addresses, reaches), text); },
    .port_connected = [](void* port) { port_of(port)->connected(); },
    .close_port = [](void* port) { delete port_of(port); },
    .send = [](void* port, GCCL_Transfer* t) { return port_of(port)->send(t); },
    .receive = [](void* port, GCCL_Transfer* t) { return port_of(port)->receive(t); },
    .poll = [](void* port, GCCL_Transfer** done, int max) { return port_of(port)->poll(done, max); },
    .fault = [](void* port, GCCL_Fault* fault) { *fault = port_of(port)->fault(); },
    .cancel = [](void* port, GCCL_Transfer* t) { port_of(port)->cancel(t); },
    .abort = [](void* port, const GCCL_Fault* fault) { port_of(port)->abort(*fault); },
};

}  // namespace

const GCCL_Backend* shm_backend() { return &kBackend; }

}  // namespace gccl
