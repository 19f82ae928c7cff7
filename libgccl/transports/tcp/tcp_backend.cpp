#include "libgccl/transports/tcp/tcp_backend.hpp"

#include <fmt/core.h>

#include <cassert>
#include <cstdio>
#include <exception>

#include "libgccl/transports/sound.hpp"
#include "libgccl/transports/tcp/data/port.hpp"

namespace gccl {
namespace {

using tcp::Connector;
using tcp::Port;

Port& port_of(void* port) { return *static_cast<Port*>(port); }

GCCL_Result result_of(const Status& s, char* text) {
  if (!s.ok()) std::snprintf(text, GCCL_BACKEND_TEXT_BYTES, "%s", s.text().c_str());
  return GCCL_Result(s.code());
}

// Exceptions (memory is short) stay on this side of a C interface.
template <class F>
GCCL_Result guarded(char* text, F f) {
  try {
    return result_of(f(), text);
  } catch (const std::exception& e) {
    return result_of(Status::error(fmt::format("tcp: {}", e.what()), GCCL_ERR_SYSTEM), text);
  }
}

GCCL_Result open(const GCCL_Backend_environment* environment, void** instance, char* text) {
  assert(sound(*environment));
  return guarded(text, [&]() -> Status {
    auto connector = std::make_unique<Connector>(*environment);
    if (Status s = connector->start(); !s.ok()) return s;
    *instance = connector.release();
    return {};
  });
}

void close(void* instance) { delete static_cast<Connector*>(instance); }

GCCL_Result open_port(void* instance, const GCCL_Port_spec* spec, void** port, void* address, char* text) {
  assert(instance && sound(*spec));
  return guarded(text, [&]() -> Status {
    auto* const connector = static_cast<Connector*>(instance);
    auto p = std::make_unique<Port>(connector, *spec);
    if (Status s = p->open(); !s.ok()) return s;
    encode(connector->address(), address);
    *port = p.release();
    return {};
  });
}

GCCL_Result connect_port(void* port, const GCCL_Port_spec* spec, const void* addresses, uint8_t* reaches, char* text) {
  assert(port && sound(*spec));
  return guarded(text, [&] { return port_of(port).connect(*spec, addresses, reaches); });
}

// Every connection is made by address and authenticated by itself: no names to remove.
void port_connected(void*) {}

void close_port(void* port) { delete static_cast<Port*>(port); }

int send(void* port, GCCL_Transfer* t) {
  assert(sound_send(*t));
  return port_of(port).send(t) ? 1 : 0;
}

int receive(void* port, GCCL_Transfer* t) {
  assert(sound_receive(*t));
  port_of(port).receive(t);
  return 0;
}

int poll(void* port, GCCL_Transfer** done, int max) { return port_of(port).poll(done, max); }

void fault(void* port, GCCL_Fault* fault) { *fault = port_of(port).fault(); }

void cancel(void* port, GCCL_Transfer* t) { port_of(port).cancel(t); }

void abort(void* port, const GCCL_Fault* fault) { port_of(port).abort(*fault); }

constexpr GCCL_Backend kBackend = {GCCL_BACKEND_ABI, "tcp", open,    close, open_port, connect_port, port_connected,
                                   close_port,       send,  receive, poll,  fault,     cancel,       abort};

}  // namespace

const GCCL_Backend* tcp_backend() { return &kBackend; }

void tcp_serves_alone(void* instance) { static_cast<Connector*>(instance)->serve_alone(); }

LinkCounts tcp_link_counts(const void* port) { return static_cast<const Port*>(port)->link_counts(); }

void tcp_take_arrivals(void* port, fault::Arrivals* by_peer) { port_of(port).take_arrivals(by_peer); }

void tcp_take_leave(void* port) { port_of(port).take_leave(); }

void tcp_close_alone(void* port) { port_of(port).close_alone(); }

std::uint64_t tcp_moved_bytes(const void* port) { return static_cast<const Port*>(port)->moved_bytes(); }

}  // namespace gccl
