// What a machine or a cluster consists of, as far as it decides which ranks belong together: the internal side of
// GCCL_Topology. The fields' meanings stand at GCCL_Topology_device and GCCL_Topology_nic (gccl.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libgccl/base/status.hpp"

namespace gccl::topology {

struct Device {
  int kind = 0;
  int node = 0, numa = -1, island = 0, nic = -1, rank = -1;
  std::string name;
};

struct Nic {
  int node = 0, index = 0, numa = -1;
  double bandwidth_GBps = 0;
  std::string name;
};

// Devices and NICs are in order of their nodes.
struct Description {
  int nodes = 0;
  std::vector<Device> devices;
  std::vector<Nic> nics;
};

// Every reader replaces *out, or leaves it alone and says what is wrong: GCCL_ERR_INVALID_ARGUMENT with file, place,
// what was found and what was expected; GCCL_ERR_SYSTEM when the machine cannot be asked.

// This machine, by hwloc.
Status discover(Description* out);
// GCCL's cluster description. `file` names the text in messages; relative references start beside it.
Status read_cluster_json(std::string_view text, const std::string& file, Description* out);
// NCCL's topology XML, as NCCL_TOPO_DUMP_FILE writes it or clouds have it for NCCL_TOPO_FILE; RCCL's <xgmi> counts as
// <nvlink>.
Status read_nccl_xml(std::string_view text, const std::string& file, Description* out);

// Either of the two, recognized by the first character that is not white space.
Status read_description(std::string_view text, const std::string& file, Description* out);
Status load_description(const std::string& file, Description* out);

}  // namespace gccl::topology
