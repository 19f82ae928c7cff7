#include "gccl/gccl.h"
#include "libgccl/topology/description.hpp"
#include "libgccl/topology/machine.hpp"

namespace gccl::topology {

Status discover(Description* out) {
  Status status;
  const Machine* machine = Machine::get(&status);
  if (!machine) return status;
  Description d;
  d.nodes = 1;
  for (const Machine::Interface& i : machine->interfaces())
    d.nics.push_back(
        {.node = 0, .index = int(d.nics.size()), .numa = i.numa, .bandwidth_GBps = i.bandwidth_GBps, .name = i.name});
  for (const Machine::Cpu& cpu : machine->cpus()) {
    std::vector<int> near, any;  // NICs
    for (const Nic& nic : d.nics) {
      any.push_back(nic.index);
      if (nic.numa == cpu.numa) near.push_back(nic.index);
    }
    const std::vector<int>& choice = near.empty() ? any : near;
    // One island: the processors' own bus joins all of them.
    d.devices.push_back({.kind = GCCL_DEVICE_CPU,
                         .node = 0,
                         .numa = cpu.numa,
                         .island = 0,
                         .nic = choice.empty() ? -1 : choice[std::size_t(cpu.numa) % choice.size()],
                         .name = cpu.name});
  }
  *out = std::move(d);
  return {};
}

}  // namespace gccl::topology
