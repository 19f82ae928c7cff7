#include "libgccl/cluster/node_type.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

namespace gccl {

std::string NodeGraph::vertex_name(Vertex v) const {
  if (v < cards) return fmt::format("card{}", v);
  if (v < cards + nics) return fmt::format("nic{}", v - cards);
  return switches[v - cards - nics];
}

NodeRoutes::NodeRoutes(const NodeGraph& g) : vertices_(g.vertices()) {
  const Vertex targets = g.cards + g.nics;
  next_.assign(std::size_t(targets) * vertices_, kNone);
  head_.reserve(g.edges.size());
  std::vector<std::uint32_t> begin(vertices_ + 1, 0), incoming(g.edges.size());
  for (const auto& e : g.edges) {
    head_.push_back(e.to);
    ++begin[e.to + 1];
  }
  for (std::size_t v = 0; v < vertices_; ++v) begin[v + 1] += begin[v];
  {
    auto place = begin;
    for (std::uint32_t e = 0; e < g.edges.size(); ++e) incoming[place[g.edges[e].to]++] = e;
  }

  // Dijkstra towards each target. Integer costs, so that equal routes compare equal: links, attoseconds per byte, ns.
  using Far = std::tuple<std::uint32_t, std::uint64_t, Nanos>;
  constexpr Far kFar{~0u, 0, 0};
  std::vector<Far> far(vertices_);
  using Item = std::pair<Far, Vertex>;
  for (Vertex to = 0; to < targets; ++to) {
    far.assign(vertices_, kFar);
    far[to] = {0, 0, 0};
    std::priority_queue<Item, std::vector<Item>, std::greater<>> queue;
    queue.push({far[to], to});
    while (!queue.empty()) {
      const auto [cost, at] = queue.top();
      queue.pop();
      if (cost != far[at]) continue;
      if (at != to && at >= g.cards && at < targets) continue;  // a NIC passes nothing on
      for (std::uint32_t i = begin[at]; i < begin[at + 1]; ++i) {
        const auto& e = g.edges[incoming[i]];
        const auto& [links, inverse, latency] = cost;
        const Far candidate{links + 1, inverse + std::uint64_t(1e9 / e.link.bandwidth_GBps),
                            latency + e.link.latency_ns};
        if (candidate >= far[e.from]) continue;
        far[e.from] = candidate;
        next_[slot(e.from, to)] = incoming[i];
        queue.push({candidate, e.from});
      }
    }
  }
}

unsigned NodeRoutes::distance(Vertex from, Vertex to) const {
  if (!reaches(from, to)) return std::numeric_limits<unsigned>::max();
  unsigned links = 0;
  for (; from != to; ++links) from = head_[next_[slot(from, to)]];
  return links;
}

std::vector<unsigned> NodeType::nics_of_plane(unsigned card, unsigned plane, unsigned planes) const {
  std::vector<unsigned> nics;
  for (const unsigned nic : own[card])
    if (nic % planes == plane) nics.push_back(nic);
  if (!nics.empty()) return nics;
  unsigned best = std::numeric_limits<unsigned>::max();
  for (unsigned nic = plane; nic < graph.nics; nic += planes) {
    const unsigned d = routes.distance(card, graph.nic(nic));
    if (d < best) best = d, nics.clear();
    if (d == best && d != std::numeric_limits<unsigned>::max()) nics.push_back(nic);
  }
  // Each card takes its share of equally near ones, so that a tray's cards use their own tray's NICs.
  const std::size_t first = std::size_t(card) * nics.size() / graph.cards,
                    end = std::size_t(card + 1) * nics.size() / graph.cards;
  if (nics.empty()) return nics;
  return {nics.begin() + long(first), nics.begin() + long(std::max(first + 1, end))};
}

}  // namespace gccl
