// What a machine or a cluster consists of, and which ranks belong together on it.
#pragma once

#include "gccl/cpp20.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <string_view>
#include <tuple>

#include "gccl/communicator.hpp"
#include "gccl/devices.hpp"

namespace gccl {
inline namespace api {

// The fields mean what they mean in GCCL_Topology_device and GCCL_Topology_nic (gccl.h).
struct TopologyDevice {
  int kind = GCCL_DEVICE_CPU;
  int node = 0, numa = -1, island = 0, nic = -1, rank = -1;
  std::string name;
};
struct TopologyNic {
  int node = 0, index = 0, numa = -1;
  double bandwidth_GBps = 0;
  std::string name;
};

// Which ranks make a group.
enum class Locality {
  node,    // on one node
  numa,    // near one memory; where that is not known, on one node
  island,  // joined by the devices' own links: NVLink, xGMI, a processor's bus
  rail,    // whose nearest NICs have the same index on their nodes; ranks without a NIC are in none
};

// Made by TopologyBuilder.
struct Topology {
  int nodes = 0;
  std::vector<TopologyDevice> devices;
  std::vector<TopologyNic> nics;

  // device_of_rank as the description gives it; rank r on device r where it gives none.
  std::vector<int> placement() const {
    std::vector<int> device_of_rank(devices.size(), -1);
    int ranks = 0;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const int r = devices[i].rank;
      if (r < 0) continue;
      if (std::size_t(r) >= devices.size() || device_of_rank[std::size_t(r)] >= 0)
        api_detail::wrong("topology", "rank " + std::to_string(r) + " of device " + std::to_string(i) +
                                          " appears twice or is not below the number of devices, " +
                                          std::to_string(devices.size()));
      device_of_rank[std::size_t(r)] = int(i);
      ++ranks;
    }
    if (ranks == 0) std::iota(device_of_rank.begin(), device_of_rank.end(), 0);
    if (ranks != 0) {
      device_of_rank.resize(std::size_t(ranks));
      if (const auto hole = std::find(device_of_rank.begin(), device_of_rank.end(), -1); hole != device_of_rank.end())
        api_detail::wrong("topology", std::to_string(ranks) + " devices have ranks, but none has rank " +
                                          std::to_string(hole - device_of_rank.begin()));
    }
    return device_of_rank;
  }

  // The groups of ranks, in order of their lowest ranks, each in order of rank; device_of_rank[r] is where rank r runs
  // (several may share a device).
  std::vector<std::vector<int>> groups(Locality by, std::span<const int> device_of_rank) const {
    std::map<std::pair<int, int>, std::size_t> known;
    std::vector<std::vector<int>> groups;
    for (std::size_t r = 0; r < device_of_rank.size(); ++r) {
      const int d = device_of_rank[r];
      if (d < 0 || std::size_t(d) >= devices.size())
        api_detail::wrong("topology", "rank " + std::to_string(r) + " is on device " + std::to_string(d) +
                                          ", but there are " + std::to_string(devices.size()) + " devices");
      const TopologyDevice& on = devices[std::size_t(d)];
      if (by == Locality::rail && on.nic < 0) continue;
      const auto [group, unseen] = known.try_emplace(key(by, on), groups.size());
      if (unseen) groups.emplace_back();
      groups[group->second].push_back(int(r));
    }
    return groups;
  }
  std::vector<std::vector<int>> groups(Locality by) const { return groups(by, placement()); }

 private:
  std::pair<int, int> key(Locality by, const TopologyDevice& d) const {
    switch (by) {
      case Locality::node: return {d.node, 0};
      case Locality::numa: return {d.node, d.numa};
      case Locality::island: return {d.island, 0};
      case Locality::rail: return {nics[std::size_t(d.nic)].index, 0};
    }
    return {};
  }
};

// Puts topologies together: each part's nodes follow those of the parts before it.
//   const Topology t = TopologyBuilder().add_file("dgx.xml", 16).build();   // 16 nodes like this one
//   const auto rails = t.groups(Locality::rail);
class TopologyBuilder {
 public:
  // This machine, by hwloc: the devices of DeviceManager, and its physical network interfaces.
  TopologyBuilder& add_this_machine() {
    GCCL_Topology t = nullptr;
    check(GCCL_Topology_discover(&t));
    return add(read(t));
  }
  // A cluster description (JSON) or NCCL's topology XML. `copies` nodes or clusters like it.
  TopologyBuilder& add_file(const std::string& path, int copies = 1) {
    GCCL_Topology t = nullptr;
    check(GCCL_Topology_load(path.c_str(), &t));
    return add(read(t), copies);
  }
  // The same from text; `name` stands for the file in errors.
  TopologyBuilder& add_text(std::string_view text, const std::string& name, int copies = 1) {
    GCCL_Topology t = nullptr;
    check(GCCL_Topology_parse(text.data(), text.size(), name.c_str(), &t));
    return add(read(t), copies);
  }
  TopologyBuilder& add(const Topology& part, int copies = 1) {
    if (copies < 0) api_detail::wrong("topology", "copies is negative");
    int islands = 0;
    for (const TopologyDevice& d : part.devices) islands = std::max(islands, d.island + 1);
    for (int c = 0; c < copies; ++c) {
      const int nic_first = int(topology_.nics.size());
      for (TopologyNic nic : part.nics) {
        nic.node += topology_.nodes;
        topology_.nics.push_back(std::move(nic));
      }
      for (TopologyDevice d : part.devices) {
        d.node += topology_.nodes;
        d.island += islands_;
        if (d.nic >= 0) d.nic += nic_first;
        if (copies > 1) d.rank = -1;  // every copy would have the same
        topology_.devices.push_back(std::move(d));
      }
      topology_.nodes += part.nodes;
      islands_ += islands;
    }
    return *this;
  }
  // Where the ranks of a communicator really are: a device for each rank, on its node, near the memory that it is bound
  // to. Collective; not in a group. The result is the same on every rank.
  TopologyBuilder& add_ranks(const Communicator& comm);

  Topology build() const { return topology_; }

 private:
  struct Free {
    void operator()(GCCL_Topology_state* t) const { GCCL_Topology_free(&t); }
  };

  // Takes the handle over.
  static Topology read(GCCL_Topology handle) {
    const std::unique_ptr<GCCL_Topology_state, Free> owner(handle);
    Topology t;
    int devices, nics;
    check(GCCL_Topology_counts(handle, &t.nodes, &devices, &nics));
    for (int i = 0; i < devices; ++i) {
      GCCL_Topology_device d{};
      d.struct_bytes = sizeof d;
      check(GCCL_Topology_get_device(handle, i, &d));
      t.devices.push_back({d.kind, d.node, d.numa, d.island, d.nic, d.rank, d.name});
    }
    for (int i = 0; i < nics; ++i) {
      GCCL_Topology_nic nic{};
      nic.struct_bytes = sizeof nic;
      check(GCCL_Topology_get_nic(handle, i, &nic));
      t.nics.push_back({nic.node, nic.index, nic.numa, nic.bandwidth_GBps, nic.name});
    }
    return t;
  }

  Topology topology_;
  int islands_ = 0;
};

inline TopologyBuilder& TopologyBuilder::add_ranks(const Communicator& comm) {
  api_detail::expect_no_group(
      "add_ranks() was called in a group, which carries its exchange out too late: expected it "
      "outside of groups, in a thread for each rank (CommunicationGroup::in_parallel)");
  struct Mine {
    GCCL_Topology_device device;
    GCCL_Topology_nic nic;
  };
  Topology here = TopologyBuilder().add_this_machine().build();
  const int bound = DeviceManager::current();
  Mine mine{};
  // A rank that may run on several devices is near none of them, but on a machine with one NIC it still has that one.
  const TopologyDevice& like = here.devices[std::size_t(std::max(bound, 0))];
  mine.device.kind = like.kind;
  mine.device.numa = bound < 0 ? -1 : like.numa;
  mine.device.nic = bound < 0 && here.nics.size() > 1 ? -1 : like.nic;
  like.name.copy(mine.device.name, GCCL_NAME_BYTES - 1);
  if (mine.device.nic >= 0) {
    const TopologyNic& nic = here.nics[std::size_t(mine.device.nic)];
    mine.nic.index = nic.index;
    mine.nic.numa = nic.numa;
    mine.nic.bandwidth_GBps = nic.bandwidth_GBps;
    nic.name.copy(mine.nic.name, GCCL_NAME_BYTES - 1);
  }

  const std::vector<int> nodes = comm.nodes();
  std::vector<Mine> all(nodes.size());
  comm.allgather(std::span(&mine, 1), all);
  Topology t;
  std::map<std::pair<int, int>, int> nic_of;  // by node and index
  for (std::size_t r = 0; r < all.size(); ++r) {
    const Mine& m = all[r];
    TopologyDevice d{.kind = m.device.kind,
                     .node = nodes[r],
                     .numa = m.device.numa,
                     .island = nodes[r],
                     .nic = -1,
                     .rank = int(r),
                     .name = m.device.name};
    if (m.device.nic >= 0) {
      const auto [nic, unseen] = nic_of.try_emplace({nodes[r], m.nic.index}, int(t.nics.size()));
      if (unseen) t.nics.push_back({nodes[r], m.nic.index, m.nic.numa, m.nic.bandwidth_GBps, m.nic.name});
      d.nic = nic->second;
    }
    t.nodes = std::max(t.nodes, nodes[r] + 1);
    t.devices.push_back(std::move(d));
  }
  return add(t);
}

}  // namespace api
}  // namespace gccl
