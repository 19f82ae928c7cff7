// This machine as hwloc sees it: its devices, each the memory of one NUMA node and those of its cores on which this
// process may run.
#pragma once

#include <hwloc.h>

#include <memory>
#include <string>
#include <vector>

#include "libgccl/base/status.hpp"

namespace gccl::topology {

class Machine {
 public:
  struct FreeSet {
    void operator()(hwloc_bitmap_t set) const { hwloc_bitmap_free(set); }
  };
  using Set = std::unique_ptr<hwloc_bitmap_s, FreeSet>;
  struct Cpu {
    std::string name;
    int numa, socket;  // the operating system's numbers; -1: unknown
    int cores, threads;
    std::uint64_t memory_bytes;
    Set cpuset;
  };
  struct Interface {
    std::string name;
    int numa;  // -1: unknown
    double bandwidth_GBps;
  };

  // The one of this process, asked once. Null, and the reason in *status, when the machine cannot be asked.
  static const Machine* get(Status* status);

  const std::vector<Cpu>& cpus() const { return cpus_; }
  // Physical ones.
  const std::vector<Interface>& interfaces() const { return interfaces_; }
  // Binds the calling thread to a device; which device it is bound to, -1: to none of them alone.
  Status bind(std::size_t device) const;
  int current() const;

 private:
  struct Destroy {
    void operator()(hwloc_topology* t) const { hwloc_topology_destroy(t); }
  };

  Status load();
  void read_cpus();
  void read_interfaces();

  std::unique_ptr<hwloc_topology, Destroy> topology_;
  std::vector<Cpu> cpus_;
  std::vector<Interface> interfaces_;
};

}  // namespace gccl::topology
