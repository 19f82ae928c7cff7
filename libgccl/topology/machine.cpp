#include "libgccl/topology/machine.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <utility>

#include "gccl/gccl.h"

namespace gccl::topology {
namespace {

using Set = Machine::Set;

Status refused(const std::string& what) {
  return Status::error(fmt::format("{}: {}", what, std::strerror(errno)), GCCL_ERR_SYSTEM);
}

// The processors on which any thread of this process may run; null where that cannot be found out.
Set allowed(hwloc_topology_t t) {
  Set set(hwloc_bitmap_alloc());
  const bool known = set && hwloc_get_cpubind(t, set.get(), HWLOC_CPUBIND_PROCESS) == 0;
  return known && !hwloc_bitmap_iszero(set.get()) ? std::move(set) : nullptr;
}

// Those that have a processor in the set.
int count_of(hwloc_topology_t t, hwloc_obj_type_t type, hwloc_const_cpuset_t set) {
  int count = 0;
  for (hwloc_obj_t o = nullptr; (o = hwloc_get_next_obj_covering_cpuset_by_type(t, set, type, o));) ++count;
  return count;
}

// The first word of a file as a number; 0 where there is none.
double number_in(const std::string& file) {
  double number = 0;
  std::ifstream(file) >> number;
  return number;
}

// One way, in GB/s; 0: unknown. Linux says Mbit/s of network interfaces, Gbit/s of an RDMA device's port.
double bandwidth_of(hwloc_obj_t nic) {
  const std::string name = nic->name;
  const double gbps = nic->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS
                          ? number_in(fmt::format("/sys/class/infiniband/{}/ports/1/rate", name))
                          : number_in(fmt::format("/sys/class/net/{}/speed", name)) / 1000;
  return std::max(gbps / 8, 0.0);  // -1 where the interface is down
}

}  // namespace

const Machine* Machine::get(Status* status) {
  struct Once {
    Once() : status(machine.load()) {}
    Machine machine;
    Status status;
  };
  static const Once once;
  *status = once.status;
  return once.status.ok() ? &once.machine : nullptr;
}

Status Machine::load() {
  hwloc_topology_t t;
  if (hwloc_topology_init(&t) != 0) return refused("hwloc cannot be started");
  topology_.reset(t);
  hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  // Linux's own component finds the network interfaces. libpciaccess leaks what it reads, and the others start the
  // drivers of cards that are not asked for.
  for (const char* component : {"pci", "opencl", "cuda", "nvml", "rsmi", "levelzero", "gl"})
    hwloc_topology_set_components(t, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  if (hwloc_topology_load(t) != 0) return refused("hwloc cannot read this machine's topology");
  read_cpus();
  if (cpus_.empty()) return Status::error("hwloc found no processor that this process may use", GCCL_ERR_SYSTEM);
  read_interfaces();
  return {};
}

void Machine::read_cpus() {
  hwloc_topology_t t = topology_.get();
  const Set process = allowed(t);
  for (hwloc_obj_t node = nullptr; (node = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, node));) {
    Set set(hwloc_bitmap_dup(node->cpuset));
    if (!set || (process && hwloc_bitmap_and(set.get(), set.get(), process.get()) != 0)) throw std::bad_alloc();
    if (hwloc_bitmap_iszero(set.get())) continue;  // memory alone, or cores of other processes
    // A second memory of the same cores, such as HBM beside DRAM.
    const auto twin = std::find_if(cpus_.begin(), cpus_.end(),
                                   [&](const Cpu& c) { return hwloc_bitmap_isequal(c.cpuset.get(), set.get()); });
    const std::uint64_t memory_bytes = node->attr->numanode.local_memory;
    if (twin != cpus_.end()) {
      twin->memory_bytes += memory_bytes;
      continue;
    }
    const hwloc_obj_t package = hwloc_get_next_obj_covering_cpuset_by_type(t, node->cpuset, HWLOC_OBJ_PACKAGE, nullptr);
    const char* model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : nullptr;
    cpus_.push_back({.name = model ? model : "CPU",
                     .numa = int(node->os_index),
                     .socket = package ? int(package->os_index) : -1,
                     .cores = count_of(t, HWLOC_OBJ_CORE, set.get()),
                     .threads = count_of(t, HWLOC_OBJ_PU, set.get()),
                     .memory_bytes = memory_bytes,
                     .cpuset = std::move(set)});
  }
}

void Machine::read_interfaces() {
  std::vector<hwloc_obj_t> found;
  for (hwloc_obj_t d = nullptr; (d = hwloc_get_next_osdev(topology_.get(), d));) {
    const auto type = d->attr->osdev.type;
    if (type != HWLOC_OBJ_OSDEV_NETWORK && type != HWLOC_OBJ_OSDEV_OPENFABRICS) continue;
    // A card that speaks RDMA shows both faces; the RDMA one stands for it.
    const auto twin = std::find_if(found.begin(), found.end(), [&](hwloc_obj_t o) {
      return o->parent == d->parent && o->attr->osdev.type != type;
    });
    if (twin == found.end())
      found.push_back(d);
    else if (type == HWLOC_OBJ_OSDEV_OPENFABRICS)
      *twin = d;
  }
  for (const hwloc_obj_t nic : found) {
    const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology_.get(), nic);
    const bool one = near && near->nodeset && hwloc_bitmap_weight(near->nodeset) == 1;
    interfaces_.push_back({nic->name, one ? hwloc_bitmap_first(near->nodeset) : -1, bandwidth_of(nic)});
  }
}

Status Machine::bind(std::size_t device) const {
  if (hwloc_set_cpubind(topology_.get(), cpus_[device].cpuset.get(), HWLOC_CPUBIND_THREAD) == 0) return {};
  return refused(fmt::format("the thread cannot be bound to NUMA node {}", cpus_[device].numa));
}

int Machine::current() const {
  const Set bound(hwloc_bitmap_alloc());
  if (!bound || hwloc_get_cpubind(topology_.get(), bound.get(), HWLOC_CPUBIND_THREAD) != 0) return -1;
  for (std::size_t i = 0; i < cpus_.size(); ++i)
    if (hwloc_bitmap_isincluded(bound.get(), cpus_[i].cpuset.get())) return int(i);
  return -1;
}

}  // namespace gccl::topology
