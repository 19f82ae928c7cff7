// NCCL's own cost model: held to published values of NCCL 2.30.7 and 2.27.5 on H100, and to times worked out by hand.
#include "libgccl/select/others/nccl_model.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "libgccl/select/others/nccl_graph.hpp"

using namespace gccl;
using A = NcclAlgorithm;
using P = NcclProtocol;

namespace {

constexpr Collective kAllreduce = Collective::allreduce;

NcclMachine h100(unsigned nodes, unsigned per_node) {
  NcclMachine m;
  m.architecture = NcclArchitecture::hopper;
  m.nodes = nodes, m.ranks = nodes * per_node;
  const NcclLinks links{.architecture = m.architecture,
                        .nodes = nodes,
                        .cards = per_node,
                        .nics = per_node,
                        .card_GBps = 18 * 20.6,
                        .nic_GBps = 50};
  m.graph = nccl_ring_graph(links);
  m.tree = nccl_tree_graph(links, m.graph);
  m.nvls = {8, 48, 48};
  m.same_channels = false;
  m.simple_tree = true;
  return m;
}

NcclMachine one_node(NcclArchitecture architecture, NcclGraph rings, unsigned ranks = 8) {
  NcclMachine m;
  m.architecture = architecture, m.ranks = ranks, m.graph = m.tree = rings;
  return m;
}

double latency(A a, P p, const NcclMachine& m, Collective c = kAllreduce) {
  return nccl_estimate(c, a, p, m).latency_us;
}
double GBps(A a, P p, const NcclMachine& m, Collective c = kAllreduce) { return nccl_estimate(c, a, p, m).GBps; }
auto near(double x) { return doctest::Approx(x).epsilon(0.0005); }

}  // namespace

TEST_CASE("latencies and bandwidths of all-reduces on H100 are those of NCCL 2.30.7") {
  struct Row {
    unsigned nodes;
    double ring[3], ring_GBps, tree[3], tree_GBps, nvls_tree;
  };
  for (const Row& r : {Row{2, {40.0, 75.2, 131.6}, 204.8, {25.2, 48.5, 92.4}, 140.8, 66.8},
                       Row{8, {156.4, 282.8, 585.2}, 195, {45.2, 82.5, 148.4}, 122.4, 150.4},
                       Row{32, {622.0, 1113.2, 2399.6}, 192.8, {65.2, 116.5, 204.4}, 122.4, 234.0}}) {
    CAPTURE(r.nodes);
    const NcclMachine m = h100(r.nodes, 8);
    for (std::size_t p = 0; p < 3; ++p) {
      CHECK(latency(A::ring, P(p), m) == near(r.ring[p]));
      CHECK(latency(A::tree, P(p), m) == near(r.tree[p]));
    }
    CHECK(GBps(A::ring, P::Simple, m) == near(r.ring_GBps));
    CHECK(GBps(A::tree, P::Simple, m) == near(r.tree_GBps));
    CHECK(latency(A::nvls_tree, P::Simple, m) == near(r.nvls_tree));
  }
}

// 2.27.5 had 14 us for a hop between nodes, 2.30.7 has 20.9: published as 53.0, 109 and 165 us on 2, 8 and 32 nodes.
TEST_CASE("an NVLS tree's latency differs from that of NCCL 2.27.5 by its hops between nodes") {
  for (const auto& [nodes, before] : {std::pair(2u, 53.0), {8u, 109.0}, {32u, 165.0}})
    CHECK(latency(A::nvls_tree, P::Simple, h100(nodes, 8)) - before == near(2 * std::log2(nodes) * (20.9 - 14)));
}

TEST_CASE("the channels of H100 nodes with a NIC a card are those that NCCL finds") {
  const auto holds = [](const NcclGraph& g, unsigned channels, double GBps) {
    return g.channels == channels && g.inside_GBps == GBps && g.between_GBps == GBps;
  };
  for (const unsigned nodes : {2u, 8u, 32u}) {
    CHECK(holds(h100(nodes, 1).graph, 2, 24));
    CHECK(holds(h100(nodes, 2).graph, 4, 24));
    CHECK(holds(h100(nodes, 4).graph, 8, 24));
    CHECK(holds(h100(nodes, 8).graph, 8, 48));
  }
  CHECK(holds(h100(1, 8).graph, 12, 30));
  const NcclLinks a100{.architecture = NcclArchitecture::ampere, .cards = 8, .card_GBps = 240};
  CHECK(holds(nccl_ring_graph(a100), 12, 20));
  // A NIC that carries no channel of any bandwidth leaves none.
  CHECK(nccl_ring_graph({.nodes = 2, .cards = 8, .nics = 8, .card_GBps = 240, .nic_GBps = .1}).channels == 0);
  CHECK(nccl_nvls_graph({.architecture = NcclArchitecture::hopper, .cards = 8, .card_GBps = 370.8}).inside_GBps == 40);
}

TEST_CASE("times of single calls are as worked out by hand") {
  const NcclMachine two = h100(2, 8), one = one_node(NcclArchitecture::hopper, {12, 30, 30}),
                    a100 = one_node(NcclArchitecture::ampere, {12, 20, 20});
  const auto us = [](A a, P p, const NcclMachine& m, double bytes, Collective c = kAllreduce) {
    return nccl_time_us(c, a, p, m, bytes);
  };
  // Ring LL, 16 ranks: 40 us; min(384 / 2, 39) * 16 / 30 = 20.8 GB/s; 20.8 KB take 1 us.
  CHECK(us(A::ring, P::LL, two, 20800) == near(41));
  // Ring Simple over nodes: the plateau from 64 B for each of 16 * 16 blocks on.
  CHECK(us(A::ring, P::Simple, two, 16383) == near(131.6 + 16383 / 204.8e3));
  CHECK(us(A::ring, P::Simple, two, 16384) == near(1.4 * 131.6 + 16384 / 204.8e3));
  CHECK(us(A::ring, P::Simple, two, 1 << 30) == near(1.4 * 131.6 + 1073741824 / 204.8e3));
  // Tree LL, 1 MiB is 2^14 * 64 bytes: .5; 331.2 / 3.8 = 87.16, but at most 39; * .85 * .5 = 16.575 GB/s.
  CHECK(us(A::tree, P::LL, two, 1 << 20) == near(25.2 + 1048576 / (16.575e3 * .5)));
  // Below 64 bytes and from 2^23 * 64 on nothing is corrected.
  CHECK(us(A::tree, P::Simple, two, 63) == near(92.4 + 63 / 140.76e3));
  CHECK(us(A::tree, P::Simple, two, 64) == near(92.4 + 64 / (.9 * 140.76e3)));
  CHECK(us(A::tree, P::Simple, two, 64.0 * (1 << 23)) == near(92.4 + 536870912 / 140.76e3));
  CHECK(us(A::tree, P::Simple, two, 64.0 * (1 << 22)) == near(92.4 + 268435456 / (.9 * 140.76e3)));
  // One node, ring LL128: min(.92 * 360, 12 * 36.7) * 8 / 14; 14 + 14 * 1.9 us.
  CHECK(us(A::ring, P::LL128, one, 1e6) == near(14 + 14 * 1.9 + 1e6 / (331.2e3 * 8 / 14)));
  CHECK(us(A::ring, P::LL, one, 1000) == near(6.6 + 14 * .6 + 1000 / (141e3 * 8 / 14)));
  // A100: min(360 / 2 ...): LL min(120, 87.7); LL128 min(220.8, 240).
  CHECK(us(A::ring, P::LL, a100, 1000) == near(6.6 + 14 * .6 + 1000 / (87.7e3 * 8 / 14)));
  CHECK(us(A::ring, P::LL128, a100, 1e6) == near(14 + 14 * 1.9 + 1e6 / (220.8e3 * 8 / 14)));
  // All-gather, 16 ranks on 2 nodes: 15 steps, one of them between nodes.
  CHECK(us(A::ring, P::Simple, two, 1e6, Collective::allgather) == near(8.4 + 14 * 3.4 + 14 + 1e6 / (384e3 * 16 / 15)));
  // Broadcast with channels that differ: a hop of a tree for each rank; with equal ones a single hop.
  CHECK(us(A::ring, P::Simple, two, 1e6, Collective::broadcast) == near(8.4 + 16 * 14 + 1e6 / 384e3));
  CHECK(us(A::ring, P::LL, one, 1000, Collective::broadcast) == near(6.6 + .6 + 1000 / 141e3));
  // NVLS on one node, 8 channels of 48: 48 * .85 * 7 / 8 * 2 = 71.4 GB/s each, * 8 * 8 / 14.
  CHECK(us(
            A::nvls, P::Simple,
            [&] {
              auto m = one;
              m.nvls = {8, 48, 48};
              return m;
            }(),
            1e6) == near(25 + 1e6 / (71.4e3 * 8 * 8 / 14)));
  // NVLS tree: on 2 nodes 57.7 a channel, on more 45.5 (45.5 < 48 < 71.4).
  CHECK(GBps(A::nvls_tree, P::Simple, two) == near(8 * 57.7 * 16 / 30));
  CHECK(GBps(A::nvls_tree, P::Simple, h100(4, 8)) == near(8 * 45.5 * 32 / 62));
  // PAT: 8 nodes of one card, 2 channels of 24: 8 + 3 * 14 / 3.5 + 8 * 2.8 us.
  CHECK(us(A::pat, P::Simple, h100(8, 1), 1e6, Collective::allgather) == near(8 + 12 + 22.4 + 1e6 / (.75 * 48e3)));
  // Four grouped calls: a ring's latencies add up, those of a tree are one.
  CHECK(nccl_time_us(kAllreduce, A::ring, P::LL, two, 0, 4) == near(160));
  CHECK(nccl_time_us(kAllreduce, A::tree, P::LL, two, 0, 4) == near(25.2));
}

TEST_CASE(
    "a network's own latency counts for each hop between nodes, twice with Simple; a processor's for the others") {
  NcclMachine m = h100(2, 8);
  m.net_latency_us = 5;
  CHECK(latency(A::ring, P::LL, m) == near(40.0 + 2 * 5));
  CHECK(latency(A::ring, P::Simple, m) == near(131.6 + 2 * 10));
  CHECK(latency(A::tree, P::LL128, m) == near(48.5 + 2 * 5));
  m = h100(2, 8);
  m.amd = true;  // 28 hops of max(3.4, 6) us
  CHECK(latency(A::ring, P::Simple, m) == near(8.4 + 28 * 6 + 28));
}

TEST_CASE("NCCL uses an algorithm and protocol only where they work") {
  const NcclMachine two = h100(2, 8), one = h100(1, 8), single = h100(8, 1);
  const auto used = [](Collective c, A a, P p, const NcclMachine& m) { return nccl_estimate(c, a, p, m).GBps > 0; };
  CHECK(used(kAllreduce, A::nvls, P::Simple, one));
  CHECK(!used(kAllreduce, A::nvls, P::LL, one));
  CHECK(!used(kAllreduce, A::nvls, P::Simple, two));  // without in-network reduction
  CHECK(!used(kAllreduce, A::nvls_tree, P::Simple, one));
  CHECK(used(kAllreduce, A::nvls_tree, P::Simple, two));
  CHECK(!used(kAllreduce, A::collnet_chain, P::Simple, two));
  CHECK(!used(kAllreduce, A::pat, P::Simple, single));
  CHECK(used(Collective::reduce_scatter, A::pat, P::Simple, single));
  CHECK(!used(Collective::reduce_scatter, A::pat, P::Simple, two));
  CHECK(!used(Collective::broadcast, A::tree, P::Simple, two));
  CHECK(!used(Collective::alltoall, A::ring, P::Simple, two));
  NcclMachine sharp = two, pcie = one, alone = one;
  sharp.collnet = true, pcie.nvlink = false, alone.ranks = 1;
  CHECK(used(kAllreduce, A::nvls, P::Simple, sharp));
  CHECK(used(kAllreduce, A::collnet_chain, P::Simple, sharp));
  CHECK(used(kAllreduce, A::collnet_direct, P::Simple, sharp));
  CHECK(!used(kAllreduce, A::ring, P::LL128, pcie));
  CHECK(nccl_ranking(kAllreduce, alone, 1000).empty());
  // A network that carries Simple alone (NCCL_PROTO=simple); inside a node nothing changes.
  for (NcclMachine m : {one, two}) {
    m.between_nodes = {false, false, true};
    CHECK(used(kAllreduce, A::ring, P::Simple, m));
    CHECK(used(kAllreduce, A::tree, P::LL, m) == (m.nodes == 1));
    CHECK(used(kAllreduce, A::ring, P::LL128, m) == (m.nodes == 1));
  }
}

TEST_CASE("on two nodes of eight H100 NCCL goes from a tree in LL over LL128 to a tree of multicasts") {
  const NcclMachine two = h100(2, 8);
  const auto best = [&](double bytes) { return nccl_ranking(kAllreduce, two, bytes).at(0); };
  CHECK(best(1024).algorithm == A::tree);
  CHECK(best(1024).protocol == P::LL);
  CHECK(best(1 << 20).protocol == P::LL128);
  CHECK(best(1 << 30).algorithm == A::nvls_tree);
  const auto all = nccl_ranking(kAllreduce, two, 1 << 20);
  CHECK(all.size() == 7);  // three protocols of two algorithms, and multicast
  for (std::size_t i = 1; i < all.size(); ++i) CHECK(all[i - 1].time_us <= all[i].time_us);
}
