// GCCL_Device_* and GCCL_Topology_*.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "gccl/gccl.h"
#include "libgccl/api/guard.hpp"
#include "libgccl/topology/description.hpp"
#include "libgccl/topology/machine.hpp"

struct GCCL_Topology_state {
  gccl::topology::Description description;
};

namespace {

using gccl::failed;
using gccl::guarded_anywhere;
using gccl::Status;
using gccl::topology::Machine;

Status invalid(const char* function, const std::string& what) {
  return gccl::invalid(fmt::format("{}: {}", function, what));
}

Status check_index(const char* function, const char* what, int index, std::size_t count) {
  if (index >= 0 && std::size_t(index) < count) return {};
  const std::string expected =
      count == 0 ? std::string(", but there is none") : fmt::format(", expected 0 to {}", count - 1);
  return invalid(function, fmt::format("{} is {}{}", what, index, expected));
}

// Fills in the caller's struct, which may be a newer and longer one: then its further fields stay as they are.
template <class Info>
Status give(const char* function, const Info& info, Info* out) {
  if (!out) return invalid(function, "info is null");
  const std::size_t known = out->struct_bytes;
  if (known < sizeof info)
    return invalid(function, fmt::format("struct_bytes is {}, expected at least {} (sizeof, set by the caller)", known,
                                         sizeof info));
  *out = info;
  out->struct_bytes = known;
  return {};
}

void copy_name(const std::string& name, char (&to)[GCCL_NAME_BYTES]) { to[name.copy(to, sizeof to - 1)] = '\0'; }

// Runs f(machine) where the machine can be asked.
template <class F>
GCCL_Result with_machine(F f) {
  Status status;
  const Machine* machine = Machine::get(&status);
  return failed(machine ? f(*machine) : status);
}

// Hands out what read(&description) reads.
template <class F>
GCCL_Result make(const char* function, GCCL_Topology* out, F read) {
  if (!out) return failed(invalid(function, "out is null"));
  *out = nullptr;
  auto state = std::make_unique<GCCL_Topology_state>();
  const Status status = read(&state->description);
  if (status.ok()) *out = state.release();
  return failed(status);
}

}  // namespace

extern "C" {

GCCL_Result GCCL_Device_count(int* count) {
  return guarded_anywhere([&] {
    if (!count) return failed(invalid("GCCL_Device_count", "count is null"));
    return with_machine([&](const Machine& m) {
      *count = int(m.cpus().size());
      return Status();
    });
  });
}

GCCL_Result GCCL_Device_get(int device, GCCL_Device* info) {
  return guarded_anywhere([&] {
    return with_machine([&](const Machine& m) {
      if (Status s = check_index("GCCL_Device_get", "device", device, m.cpus().size()); !s.ok()) return s;
      const Machine::Cpu& cpu = m.cpus()[std::size_t(device)];
      GCCL_Device d = {.struct_bytes = sizeof d,
                       .kind = GCCL_DEVICE_CPU,
                       .numa = cpu.numa,
                       .socket = cpu.socket,
                       .cores = cpu.cores,
                       .threads = cpu.threads,
                       .memory_bytes = cpu.memory_bytes,
                       .name = {}};
      copy_name(cpu.name, d.name);
      return give("GCCL_Device_get", d, info);
    });
  });
}

GCCL_Result GCCL_Device_bind(int device) {
  return guarded_anywhere([&] {
    return with_machine([&](const Machine& m) {
      if (Status s = check_index("GCCL_Device_bind", "device", device, m.cpus().size()); !s.ok()) return s;
      return m.bind(std::size_t(device));
    });
  });
}

GCCL_Result GCCL_Device_current(int* device) {
  return guarded_anywhere([&] {
    if (!device) return failed(invalid("GCCL_Device_current", "device is null"));
    return with_machine([&](const Machine& m) {
      *device = m.current();
      return Status();
    });
  });
}

GCCL_Result GCCL_Topology_discover(GCCL_Topology* out) {
  return guarded_anywhere([&] { return make("GCCL_Topology_discover", out, gccl::topology::discover); });
}

GCCL_Result GCCL_Topology_load(const char* path, GCCL_Topology* out) {
  return guarded_anywhere([&] {
    return make("GCCL_Topology_load", out, [&](gccl::topology::Description* d) {
      if (!path) return invalid("GCCL_Topology_load", "path is null");
      return gccl::topology::load_description(path, d);
    });
  });
}

GCCL_Result GCCL_Topology_parse(const char* text, size_t bytes, const char* name, GCCL_Topology* out) {
  return guarded_anywhere([&] {
    return make("GCCL_Topology_parse", out, [&](gccl::topology::Description* d) {
      if (!text && bytes > 0) return invalid("GCCL_Topology_parse", "text is null");
      return gccl::topology::read_description({text, bytes}, name ? name : "topology", d);
    });
  });
}

GCCL_Result GCCL_Topology_counts(GCCL_Topology topology, int* nodes, int* devices, int* nics) {
  return guarded_anywhere([&] {
    if (!topology) return failed(invalid("GCCL_Topology_counts", "topology is null"));
    if (nodes) *nodes = topology->description.nodes;
    if (devices) *devices = int(topology->description.devices.size());
    if (nics) *nics = int(topology->description.nics.size());
    return GCCL_SUCCESS;
  });
}

GCCL_Result GCCL_Topology_get_device(GCCL_Topology topology, int device, GCCL_Topology_device* info) {
  return guarded_anywhere([&] {
    constexpr const char* kName = "GCCL_Topology_get_device";
    if (!topology) return failed(invalid(kName, "topology is null"));
    const auto& devices = topology->description.devices;
    if (const Status s = check_index(kName, "device", device, devices.size()); !s.ok()) return failed(s);
    const auto& from = devices[std::size_t(device)];
    GCCL_Topology_device d = {.struct_bytes = sizeof d,
                              .kind = from.kind,
                              .node = from.node,
                              .numa = from.numa,
                              .island = from.island,
                              .nic = from.nic,
                              .rank = from.rank,
                              .name = {}};
    copy_name(from.name, d.name);
    return failed(give(kName, d, info));
  });
}

GCCL_Result GCCL_Topology_get_nic(GCCL_Topology topology, int nic, GCCL_Topology_nic* info) {
  return guarded_anywhere([&] {
    constexpr const char* kName = "GCCL_Topology_get_nic";
    if (!topology) return failed(invalid(kName, "topology is null"));
    const auto& nics = topology->description.nics;
    if (const Status s = check_index(kName, "nic", nic, nics.size()); !s.ok()) return failed(s);
    const auto& from = nics[std::size_t(nic)];
    GCCL_Topology_nic n = {.struct_bytes = sizeof n,
                           .node = from.node,
                           .index = from.index,
                           .numa = from.numa,
                           .bandwidth_GBps = from.bandwidth_GBps,
                           .name = {}};
    copy_name(from.name, n.name);
    return failed(give(kName, n, info));
  });
}

GCCL_Result GCCL_Topology_free(GCCL_Topology* topology) {
  return guarded_anywhere([&] {
    if (!topology) return failed(invalid("GCCL_Topology_free", "topology is null"));
    delete *topology;
    *topology = nullptr;
    return GCCL_SUCCESS;
  });
}

}  // extern "C"
