// NCCL's own cost model, version 2.30.7: what NCCL believes that a call takes, and so which algorithm and protocol it
// chooses. Agreement with it is compatibility, not accuracy: its latencies of large rings are too high, and its
// bandwidths are off by up to 1.7 times in places (docs/algorithms.md). Source: NVIDIA/nccl src/graph/tuning.cc.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "libgccl/schedule/types.hpp"

namespace gccl {

enum class NcclAlgorithm : std::uint8_t { tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat };
enum class NcclProtocol : std::uint8_t { LL, LL128, Simple };
enum class NcclArchitecture : std::uint8_t { volta, ampere, hopper, blackwell };
constexpr std::array<std::string_view, 7> kNcclAlgorithms{
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
constexpr std::array<std::string_view, 3> kNcclProtocols{"LL", "LL128", "Simple"};
constexpr std::array<std::string_view, 4> kNcclArchitectures{"volta", "ampere", "hopper", "blackwell"};

// Whether NCCL has the algorithm for that collective.
bool nccl_offers(Collective kind, NcclAlgorithm algorithm);
// What NCCL's tuning rules out wherever it runs: all but its rings and trees send by Simple alone, PAT runs with one
// rank on each node only, and trees of switches only across nodes.
constexpr bool nccl_sends(NcclAlgorithm a, NcclProtocol p) {
  return a == NcclAlgorithm::tree || a == NcclAlgorithm::ring || p == NcclProtocol::Simple;
}
constexpr bool nccl_runs(NcclAlgorithm a, unsigned ranks, unsigned nodes) {
  if (a == NcclAlgorithm::pat) return nodes > 1 && ranks == nodes;
  return a != NcclAlgorithm::nvls_tree || nodes > 1;
}

// What NCCL found when it looked for channels: their number, and what each carries inside a node and between nodes.
struct NcclGraph {
  unsigned channels = 0;
  double inside_GBps = 0, between_GBps = 0;
};

// All that its model knows of a communicator and its machine.
struct NcclMachine {
  NcclArchitecture architecture{};
  unsigned nodes = 1, ranks = 1;
  bool nvlink = true;         // inside nodes; else PCIe
  NcclGraph graph;            // of rings
  NcclGraph tree;             // of trees and PAT; as many channels as rings have
  NcclGraph nvls;             // of multicast in NVSwitches; no channels: they cannot
  bool collnet = false;       // switches between the nodes reduce (SHARP)
  bool same_channels = true;  // all channels have one order of the cards and one NIC
  bool simple_tree = false;   // all traffic of a tree's node comes in at one card, which costs bandwidth
  std::array<bool, 3> between_nodes{true, true, true};  // by protocol: whether NCCL may send by it between nodes
  double net_latency_us = 0;                            // as the network's plug-in states it, on top of the model's own
  bool amd = false;                                     // the nodes' processors

  double per_node() const { return double(ranks) / nodes; }
};

struct NcclEstimate {
  double latency_us = 0, GBps = 0;  // GBps 0: NCCL does not use this combination there
};

// Requires two ranks or more. Collectives that NCCL's model does not know have no estimate.
NcclEstimate nccl_estimate(Collective kind, NcclAlgorithm algorithm, NcclProtocol protocol, const NcclMachine& machine);

// A call of so many bytes, counted as nccl-tests count them, of which `calls` are grouped; infinite where NCCL does not
// use the combination.
double nccl_time_us(Collective kind, NcclAlgorithm algorithm, NcclProtocol protocol, const NcclMachine& machine,
                    double bytes, unsigned calls = 1);

struct NcclChoice {
  NcclAlgorithm algorithm{};
  NcclProtocol protocol{};
  double time_us = 0;
};
// All that NCCL may use, its choice first.
std::vector<NcclChoice> nccl_ranking(Collective kind, const NcclMachine& machine, double bytes, unsigned calls = 1);

}  // namespace gccl
