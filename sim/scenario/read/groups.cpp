#include "sim/scenario/read/groups.hpp"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "libgccl/base/counted.hpp"

namespace gccl::sim {
namespace {

std::vector<std::vector<Rank>> read_lists(const json::Node& node) {
  std::vector<std::vector<Rank>> lists;
  std::vector<bool> taken(kRanksMax);
  for (const json::Node& list : node.items(1, kRanksMax)) {
    auto& members = lists.emplace_back();
    for (const json::Node& item : list.items(1, kRanksMax)) {
      const Rank r = Rank(item.integer(0, kRanksMax - 1));
      if (taken[r]) item.fail(fmt::format("rank {} appears twice", r));
      taken[r] = true;
      members.push_back(r);
    }
  }
  return lists;
}

std::vector<std::vector<Rank>> cut(const Groups& g, Rank ranks) {
  if (!g.lists.empty()) {
    for (const auto& list : g.lists)
      for (const Rank r : list)
        if (r >= ranks) g.where->fail(fmt::format("rank {} is in a group, expected one below {}", r, ranks));
    return g.lists;
  }
  const Rank stride = g.stride ? g.stride : 1;
  if (g.size == 0 && ranks % stride != 0)
    g.where->fail(
        fmt::format("{} cannot be dealt out with stride {}: not a multiple of it", counted(ranks, "rank"), stride));
  const std::uint64_t size = g.size ? g.size : ranks / stride, block = size * stride;
  if (ranks % block != 0)
    g.where->fail(fmt::format("{} cannot be cut into blocks of {} (size {} x stride {})", counted(ranks, "rank"), block,
                              size, stride));
  std::vector<std::vector<Rank>> lists;
  lists.reserve(ranks / size);
  for (Rank base = 0; base < ranks; base += Rank(block))
    for (Rank first = base; first < base + stride; ++first) {
      auto& members = lists.emplace_back(size);
      for (Rank i = 0; i < size; ++i) members[i] = first + i * stride;
    }
  return lists;
}

// All numbers of a view that do not depend on which ranks sit where.
auto shape_of(const View& v) {
  return std::tuple(v.all.size, v.nodes, v.rails, v.fullest, v.columns, v.by_node, v.per_node, v.node.size);
}

}  // namespace

Groups read_groups(const json::Node& node) {
  Groups g;
  g.where = node;
  if (node.is_array()) {
    g.lists = read_lists(node);
    return g;
  }
  if (!node.is_object()) node.fail(fmt::format("found {}, expected an object, or lists of ranks", node.text()));
  node.allow({"size", "stride"});
  if (const auto size = node.find("size")) g.size = Rank(size->integer(1, kRanksMax));
  if (const auto stride = node.find("stride")) g.stride = Rank(stride->integer(1, kRanksMax));
  if (!g.size && !g.stride) node.fail("found no key, expected \"size\", \"stride\" or both");
  return g;
}

std::vector<SimulatedCommunicator> communicators(const Groups& groups, const Cluster& cluster,
                                                 const std::vector<Card>& cards) {
  std::vector<SimulatedCommunicator> all;
  if (groups.whole()) {
    Layout layout = layout_of(cluster, cards);
    // A torus' rows are rows of the rank grid only while rank r sits on card r.
    bool in_order = true;
    for (std::size_t r = 0; r < cards.size() && in_order; ++r) in_order = cards[r] == r;
    const Rank columns = cluster.grid_columns();
    if (in_order && columns && cards.size() % columns == 0) layout.columns(columns);
    all.push_back({.members = {}, .layout = std::make_shared<const Layout>(std::move(layout))});
    return all;
  }
  std::map<decltype(shape_of(View{})), std::size_t> shapes;
  for (auto& members : cut(groups, Rank(cards.size()))) {
    std::vector<Card> theirs;
    for (const Rank r : members) theirs.push_back(cards[r]);
    auto layout = std::make_shared<const Layout>(layout_of(cluster, theirs));
    const std::size_t shape = shapes.try_emplace(shape_of(layout->view(0)), shapes.size()).first->second;
    all.push_back({std::move(members), std::move(layout), shape});
  }
  return all;
}

}  // namespace gccl::sim
