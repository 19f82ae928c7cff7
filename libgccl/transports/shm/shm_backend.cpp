#include "libgccl/transports/shm/shm_backend.hpp"

#include <cassert>
#include <cstdio>
#include <new>

#include "libgccl/transports/shm/shm_port.hpp"
#include "libgccl/transports/sound.hpp"

namespace gccl {
namespace {

using shm::Port;

Port* port_of(void* port) { return static_cast<Port*>(port); }

GCCL_Result result_of(const Status& s, char* text) {
  if (!s.ok()) std::snprintf(text, GCCL_BACKEND_TEXT_BYTES, "%s", s.text().c_str());
  return GCCL_Result(s.code());
}

// Nothing is thrown across the C interface.
template <class F>
GCCL_Result guarded(char* text, F f) {
  try {
    return result_of(f(), text);
  } catch (const std::bad_alloc&) {
    std::snprintf(text, GCCL_BACKEND_TEXT_BYTES, "out of memory");
    return GCCL_ERR_SYSTEM;
  }
}

constexpr GCCL_Backend kBackend = {
    .abi = GCCL_BACKEND_ABI,
    .name = "shm",
    .open =
        [](const GCCL_Backend_environment* environment, void** instance, char* text) {
          assert(sound(*environment));
          return guarded(text, [&] { return *instance = new shm::Instance(process_environment()), Status(); });
        },
    .close = [](void* instance) { delete static_cast<shm::Instance*>(instance); },
    .open_port =
        [](void* instance, const GCCL_Port_spec* spec, void** port, void* address, char* text) {
          assert(instance && sound(*spec));
          return guarded(text, [&] {
            std::unique_ptr<Port> p;
            const Status s = Port::open(*static_cast<shm::Instance*>(instance), *spec, &p, address);
            *port = p.release();
            return s;
          });
        },
    .connect_port =
        [](void* port, const GCCL_Port_spec* spec, const void* addresses, std::uint8_t* reaches, char* text) {
          assert(port && sound(*spec));
          return guarded(text, [&] { return port_of(port)->connect(*spec, addresses, reaches); });
        },
    .port_connected = [](void* port) { port_of(port)->connected(); },
    .close_port = [](void* port) { delete port_of(port); },
    .send =
        [](void* port, GCCL_Transfer* t) {
          assert(sound_send(*t));
          return port_of(port)->send(t);
        },
    .receive =
        [](void* port, GCCL_Transfer* t) {
          assert(sound_receive(*t));
          return port_of(port)->receive(t);
        },
    .poll = [](void* port, GCCL_Transfer** done, int max) { return port_of(port)->poll(done, max); },
    .fault = [](void* port, GCCL_Fault* fault) { *fault = port_of(port)->fault(); },
    .cancel = [](void* port, GCCL_Transfer* t) { port_of(port)->cancel(t); },
    .abort = [](void* port, const GCCL_Fault* fault) { port_of(port)->abort(*fault); },
};

}  // namespace

const GCCL_Backend* shm_backend() { return &kBackend; }

std::uint64_t shm_moved_bytes(const void* port) { return static_cast<const shm::Port*>(port)->moved_bytes(); }

std::byte* shm_staging(void* port, std::size_t bytes) { return static_cast<shm::Port*>(port)->staging(bytes); }

}  // namespace gccl
