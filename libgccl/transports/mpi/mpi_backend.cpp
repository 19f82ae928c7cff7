// The backend "mpi": a plug-in, so that the library needs no MPI. The program initialises and finalises MPI.
#include <cassert>
#include <cstddef>
#include <cstdio>

#include "libgccl/transports/mpi/mpi_port.hpp"
#include "libgccl/transports/sound.hpp"

namespace gccl::mpi {
namespace {

GCCL_Result refuse(char* text, GCCL_Result result, const char* why) {
  std::snprintf(text, GCCL_BACKEND_TEXT_BYTES, "%s", why);
  return result;
}

// Nothing is thrown at the library: it may be another compiler's.
template <class Function>
GCCL_Result guarded(char* text, Function&& function) {
  try {
    return function();
  } catch (const std::exception& error) {
    return refuse(text, GCCL_ERR_SYSTEM, error.what());
  }
}

bool progresses_by_itself(const GCCL_Backend_environment& e) {
  // A library that is older than the field has no such word.
  return e.struct_bytes <= offsetof(GCCL_Backend_environment, progress_thread) || e.progress_thread != 0;
}

GCCL_Result open(const GCCL_Backend_environment* environment, void** instance, char* text) {
  assert(sound(*environment));
  int initialized = 0, finalized = 0, level = MPI_THREAD_SINGLE;
  PMPI_Initialized(&initialized);
  PMPI_Finalized(&finalized);
  if (!initialized || finalized)
    return refuse(text, GCCL_ERR_NOT_SUPPORTED,
                  finalized ? "MPI_Finalize has been called" : "MPI_Init must be called before GCCL_Init");
  return guarded(text, [&] {
    PMPI_Query_thread(&level);
    auto i = std::make_unique<Instance>();
    // A thread of the library's own would call while the program is in MPI by itself.
    i->one_at_a_time = level == MPI_THREAD_SERIALIZED && !progresses_by_itself(*environment);
    if (level != MPI_THREAD_MULTIPLE && !i->one_at_a_time) i->thread = std::this_thread::get_id();
    i->log = environment->log;
    *instance = i.release();
    return GCCL_SUCCESS;
  });
}

void close(void* instance) { delete static_cast<Instance*>(instance); }

Port& port_of(void* p) { return *static_cast<Port*>(p); }

GCCL_Result open_port(void* instance, const GCCL_Port_spec* spec, void** port, void* address, char* text) {
  assert(instance && sound(*spec));
  return guarded(text, [&] {
    *port = new Port(*static_cast<const Instance*>(instance), *spec, address);
    return GCCL_SUCCESS;
  });
}

GCCL_Result connect_port(void* p, const GCCL_Port_spec* spec, const void* addresses, std::uint8_t* reaches,
                         char* text) {
  assert(p && sound(*spec));
  return guarded(text, [&] {
    Port& port = port_of(p);
    if (port.connect(*spec, addresses, reaches)) return GCCL_SUCCESS;
    return refuse(text, GCCL_Result(port.fault().result), port.fault().text);
  });
}

constexpr GCCL_Backend kBackend = {
    .abi = GCCL_BACKEND_ABI,
    .name = "mpi",
    .open = open,
    .close = close,
    .open_port = open_port,
    .connect_port = connect_port,
    .port_connected = [](void*) {},
    .close_port = [](void* p) { delete static_cast<Port*>(p); },
    .send =
        [](void* p, GCCL_Transfer* t) {
          assert(sound_send(*t));
          return port_of(p).send(t);
        },
    .receive =
        [](void* p, GCCL_Transfer* t) {
          assert(sound_receive(*t));
          return port_of(p).receive(t);
        },
    .poll = [](void* p, GCCL_Transfer** done, int max) { return port_of(p).poll(done, max); },
    .fault = [](void* p, GCCL_Fault* fault) { *fault = port_of(p).fault(); },
    .cancel = [](void* p, GCCL_Transfer* t) { port_of(p).cancel(t); },
    .abort = [](void* p, const GCCL_Fault* fault) { port_of(p).abort(*fault); },
};

}  // namespace
}  // namespace gccl::mpi

extern "C" GCCL_API const GCCL_Backend* GCCL_Backend_entry_v1(void) { return &gccl::mpi::kBackend; }
