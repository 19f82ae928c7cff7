// What memory that a call of an MPI library allocates costs its processes: the "mpi" object of a parameter set.
#pragma once

#include <optional>

#include "libgccl/cluster/cluster.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl {

// Vectors longer than this are given back to the system when the call is over, so their pages come anew in the next
// one: zeroed, and registered with the NIC. glibc does so with every piece from 32 MiB on, and with shorter ones
// where those of a call together are twice as long as the longest so far (mallopt(3): M_MMAP_THRESHOLD,
// M_TRIM_THRESHOLD) and nothing holds them back.
struct MpiMemory {
  double fresh_GBps = 0;           // how fast the pages come
  Count fresh_bytes = 32 << 20;    // of a call that allocates one vector, longer than this
  Count several_bytes = 32 << 20;  // of one that allocates several, each of them longer than this
};

void read_mpi(const json::Node& value, std::optional<MpiMemory>& memory);

// Nothing where the cluster's parameters have no "mpi" object.
std::optional<MpiMemory> mpi_memory(const Cluster& cluster);

}  // namespace gccl
