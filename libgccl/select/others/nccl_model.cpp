#include "libgccl/select/others/nccl_model.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace gccl {
namespace {

using A = NcclAlgorithm;
using P = NcclProtocol;
using Three = std::array<double, 3>;  // by protocol, or by 1, 2 and more nodes

// Microseconds by algorithm and protocol; 0 where a protocol is not used.
constexpr std::array<Three, 7> kBaseUs{{{6.8, 14, 8.4}, {6.6, 14, 8.4}, {}, {}, {}, {}, {8, 8, 8}}};
constexpr std::array<Three, 7> kNvlinkHopUs{
    {{.6, 1.25, 4}, {.6, 1.9, 3.4}, {0, 0, 3.7}, {0, 0, 2.8}, {0, 0, 25}, {0, 0, 25}, {0, 0, 4}}};
constexpr std::array<Three, 7> kPcieHopUs{{{1, 1.9, 4}, {1, 2.5, 5.7}, {0, 0, 3.7}, {0, 0, 2.8}, {}, {}, {0, 0, 4}}};
constexpr std::array<Three, 7> kNetHopUs{
    {{5, 8.5, 14}, {2.7, 4, 14}, {0, 0, 31}, {0, 0, 30}, {0, 0, 18}, {0, 0, 20.9}, {0, 0, 14}}};

// GB/s, by architecture; three numbers are for one, two and more nodes.
struct Ceilings {
  Three ll;  // of all channels
  double ring_ll128;
  Three tree_ll128, tree, nvls_tree;
  double nvls_efficiency;
};
constexpr std::array<Ceilings, 4> kCeilings{{
    {{39, 39, 20.4}, 20, {20, 20, 20}, {26.5, 18.5, 10}, {26.5, 18.5, 10}, 0},
    {{87.7, 22.5, 19}, 20, {20, 20, 20}, {24, 23.6, 17.8}, {24, 23.6, 17.8}, 0},
    {{141, 45, 35}, 36.7, {36.7, 36.7, 29}, {38.7, 41.4, 36}, {0, 57.7, 45.5}, .85},
    {{282, 90, 70}, 40, {55.6, 31.67, 20}, {70, 42.8, 24}, {0, 96, 80}, .74},
}};

// Factors for tree all-reduces, by protocol and floor(log2(bytes / 64)); 1 beyond.
constexpr std::array<std::array<double, 23>, 3> kTreeCorrection{
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}}};

double log2_floor(unsigned x) { return double(std::bit_width(x) - 1); }

// Of LL, of all channels together: over several nodes by their processors, by the architecture in the table of others.
double ll_GBps(const NcclMachine& m) {
  const std::size_t by_nodes = std::min(m.nodes, 3u) - 1;
  const NcclArchitecture row = m.nodes == 1 ? m.architecture
                               : m.amd      ? NcclArchitecture::ampere
                                            : NcclArchitecture::volta;
  return kCeilings[std::size_t(row)].ll[by_nodes];
}

bool of_blocks(Collective c) { return c == Collective::allgather || c == Collective::reduce_scatter; }

bool uses(Collective c, A a, P p, const NcclMachine& m) {
  if (!nccl_offers(c, a) || m.ranks < 2) return false;
  if (!nccl_sends(a, p) || !nccl_runs(a, m.ranks, m.nodes)) return false;
  const bool nodes = m.nodes > 1;
  if (p == P::LL128 && !m.nvlink) return false;
  if (nodes && !m.between_nodes[std::size_t(p)]) return false;
  switch (a) {
    case A::tree: return m.tree.channels > 0;
    case A::ring: return m.graph.channels > 0;
    case A::collnet_direct: return nodes && m.collnet && m.nvls.channels > 0;
    case A::collnet_chain: return nodes && m.collnet;
    case A::nvls: return m.nvls.channels > 1 && (!nodes || m.collnet);
    case A::nvls_tree: return m.nvls.channels > 1;
    case A::pat: return true;
  }
  return false;
}

double steps(Collective c, double ranks) {
  return c == Collective::allreduce ? 2 * (ranks - 1) : of_blocks(c) ? ranks - 1 : ranks;
}

// NCCL makes two channels of each that it finds; from Hopper on, over several nodes, once more where few are that fast.
unsigned made_channels(const NcclMachine& m) {
  const unsigned twice = 2 * m.graph.channels;
  const bool few = m.architecture >= NcclArchitecture::hopper && m.nodes > 1 && twice < 16;
  return few && m.graph.inside_GBps > 45 ? 2 * twice : twice;
}

// The bandwidth of all channels together, in terms of what crosses a link.
double bus_GBps(Collective c, A a, P p, const NcclMachine& m) {
  const Ceilings& most = kCeilings[std::size_t(m.architecture)];
  const std::size_t by_nodes = std::min(m.nodes, 3u) - 1;
  if (a == A::nvls || a == A::nvls_tree) {
    const double n = m.nvls.channels;
    double inside = m.nvls.inside_GBps * most.nvls_efficiency * (n - 1) / n;
    inside *= c == Collective::allreduce ? 2 : (m.per_node() - 1) / m.per_node();
    double each = inside;
    if (m.nodes > 1) each = std::min(each, m.nvls.between_GBps * (a == A::nvls_tree && m.nodes <= 2 ? 2 : 1));
    if (a == A::nvls_tree) each = std::min(each, most.nvls_tree[by_nodes]);
    return n * each;
  }
  const bool collnet = a == A::collnet_direct || a == A::collnet_chain;
  const NcclGraph& graph = a == A::tree || a == A::pat ? m.tree : m.graph;
  const double n = graph.channels;
  double bus = n * (m.nodes <= 2 || collnet ? graph.inside_GBps : graph.between_GBps);
  if (a == A::ring && p == P::LL) bus = std::min(.5 * bus, ll_GBps(m));
  if (a == A::ring && p == P::LL128) bus = std::min(.92 * bus, n * most.ring_ll128);
  if (a == A::tree) {
    bus = std::min(.92 * bus, n * most.tree[by_nodes]);
    if (p == P::LL) bus = std::min(bus / 3.8, ll_GBps(m));
    if (p == P::LL128) bus = std::min(bus * (m.nodes == 1 ? 7. / 9 : 120. / 128), n * most.tree_ll128[by_nodes]);
    if (m.simple_tree) bus *= .85;
  }
  if (a == A::pat) bus *= .75;
  if (a == A::collnet_direct) {
    if (of_blocks(c)) return m.per_node() * std::min(m.graph.inside_GBps, .9 * m.graph.between_GBps);
    const double cards_a_channel = m.per_node() / n;
    bus /= (cards_a_channel + 1) / 2;
    if (m.architecture >= NcclArchitecture::hopper) bus *= .85;
  }
  return bus;
}

double latency_us(Collective c, A a, P p, const NcclMachine& m) {
  const auto of = [&](const std::array<Three, 7>& table, A which) { return table[std::size_t(which)][std::size_t(p)]; };
  const double base = of(kBaseUs, a);
  double inside = of(m.nvlink ? kNvlinkHopUs : kPcieHopUs, a);
  // A message between nodes; Simple is flushed, which takes the network's latency once more.
  const double between = of(kNetHopUs, m.ranks == m.nodes ? A::tree : a) + m.net_latency_us * (p == P::Simple ? 2 : 1);
  const double local = std::floor(m.per_node()), depth = log2_floor(m.nodes);
  switch (a) {
    case A::ring: {
      const double all = steps(c, m.ranks);
      if (!of_blocks(c) && c != Collective::allreduce) {
        const auto& hops = m.nodes > 1 ? kNetHopUs : m.nvlink ? kNvlinkHopUs : kPcieHopUs;
        return m.same_channels ? base + of(hops, a) : base + all * of(hops, p == P::Simple ? A::tree : a);
      }
      // A hop that enters the network.
      if (m.nodes > 1) inside = std::max(inside, (m.amd ? 2. : 1.) * (p == P::Simple ? 3 : 1));
      const double crossing = (c == Collective::allreduce ? 2 : 1) * (m.nodes - 1.);
      return base + (all - crossing) * inside + crossing * between;
    }
    case A::tree: return base + 2 * ((local - 1) * inside + depth * between);
    case A::collnet_direct: return 2 * (std::min(1., local - 1) * inside + .4 * (local - 1)) + between;
    case A::collnet_chain: return 2 * (local - 1) * inside + between;
    case A::nvls: return inside + (m.nodes > 1 ? between : 0);
    case A::nvls_tree: return base + inside + 2 * depth * between;
    case A::pat: return base + depth * between / 3.5 + 2.8 * m.ranks;
  }
  return 0;
}

}  // namespace

bool nccl_offers(Collective c, A a) {
  if (c == Collective::allreduce) return a != A::pat;
  if (of_blocks(c)) return a != A::tree && a != A::collnet_chain && a != A::nvls_tree;
  return a == A::ring && (c == Collective::broadcast || c == Collective::reduce);
}

NcclEstimate nccl_estimate(Collective c, NcclAlgorithm a, NcclProtocol p, const NcclMachine& m) {
  if (!uses(c, a, p, m)) return {};
  double GBps = bus_GBps(c, a, p, m);
  // What a rank hands in, for what crosses a link.
  if (a == A::ring || (!of_blocks(c) && (a == A::nvls || a == A::nvls_tree))) {
    GBps *= m.ranks / steps(c, m.ranks);
  } else if (!of_blocks(c)) {
    GBps *= .5;
  }
  if (!(GBps > 0)) return {};
  return {latency_us(c, a, p, m), GBps};
}

double nccl_time_us(Collective c, NcclAlgorithm a, NcclProtocol p, const NcclMachine& m, double bytes, unsigned calls) {
  NcclEstimate e = nccl_estimate(c, a, p, m);
  if (e.GBps == 0) return std::numeric_limits<double>::infinity();
  if (c == Collective::allreduce) {
    if (a == A::tree && bytes >= 64) {
      const auto size = std::size_t(std::floor(std::log2(std::floor(bytes / 64))));
      const auto& correction = kTreeCorrection[std::size_t(p)];
      if (size < correction.size()) e.GBps *= correction[size];
    }
    // The plateau of rings over several nodes.
    if (a == A::ring && p == P::Simple && m.nodes > 1 && bytes / (double(made_channels(m)) * m.ranks) >= 64)
      e.latency_us *= m.architecture < NcclArchitecture::ampere ? 1.9 : 1.4;
  }
  // Grouped calls of other algorithms share their latency, as many as fit 1 KiB of work items: some 100 bytes each,
  // which is assumed.
  constexpr unsigned kBatch = 10;
  const unsigned latencies = a == A::ring ? calls : (calls + kBatch - 1) / kBatch;
  return e.latency_us * latencies + bytes / (1000 * e.GBps);
}

std::vector<NcclChoice> nccl_ranking(Collective c, const NcclMachine& m, double bytes, unsigned calls) {
  std::vector<NcclChoice> all;
  for (std::size_t a = 0; a < kNcclAlgorithms.size(); ++a)
    for (std::size_t p = 0; p < kNcclProtocols.size(); ++p)
      if (const double us = nccl_time_us(c, A(a), P(p), m, bytes, calls); std::isfinite(us))
        all.push_back({A(a), P(p), us});
  std::stable_sort(all.begin(), all.end(),
                   [](const NcclChoice& x, const NcclChoice& y) { return x.time_us < y.time_us; });
  return all;
}

}  // namespace gccl
