// One collective of a scenario, from JSON.
#include <fmt/format.h>

#include <algorithm>

#include "libgccl/json/nearest.hpp"
#include "libgccl/schedule/lane.hpp"
#include "sim/scenario/read/counts.hpp"
#include "sim/scenario/read/groups.hpp"
#include "sim/scenario/read/reader.hpp"
#include "sim/scenario/read/renamed.hpp"
#include "sim/scenario/read/sizes.hpp"

namespace gccl::sim {
namespace {

void read_algorithm(const json::Node& node, Collective kind, bool in_sequence, Candidates& to) {
  const std::string found = node.string();
  const auto ask = [&](bool& flag) {
    if (flag) node.fail(fmt::format("\"{}\" appears twice", found));
    flag = true;
  };
  if (found == "auto") {
    ask(to.automatic);
  } else if (found == "all" && !in_sequence) {
    ask(to.all);
  } else if (const Algorithm* a = find_algorithm(kind, found)) {
    for (const auto& [other, where] : to.named)
      if (other == a) node.fail(fmt::format("algorithm \"{}\" appears twice", found));
    to.named.emplace_back(a, node);
  } else {
    std::vector<std::string_view> names{"auto"};
    if (!in_sequence) names.push_back("all");
    std::string elsewhere;
    for (const Algorithm& other : algorithms()) {
      if (other.kind == kind)
        names.push_back(other.name);
      else if (other.name == found)
        elsewhere += fmt::format("{}{}", elsewhere.empty() ? "" : ", ", name(other.kind));
    }
    node.fail(fmt::format("{} has no algorithm \"{}\"{}{}", name(kind), found.substr(0, 60),
                          elsewhere.empty() ? "" : fmt::format(" (it is one of {})", elsewhere),
                          suggestion(found, names)));
  }
}

Candidates read_algorithms(const json::Node& node, Collective kind, bool in_sequence) {
  Candidates c;
  if (node.is_array() && !in_sequence)
    for (const json::Node& item : node.items(1, 1000)) read_algorithm(item, kind, false, c);
  else
    read_algorithm(node, kind, in_sequence, c);
  return c;
}

Dtype read_dtype(const json::Node& node) {
  const std::string found = node.string();
  if (const auto d = dtype_named(found)) return *d;
  node.fail(fmt::format("found \"{}\"{}", found.substr(0, 60), suggestion(found, dtype_names())));
}

// Keys that mean something to some collectives only.
void read_special(const json::Node& node, Task& t) {
  const auto only = [&](std::string_view key, bool applies, std::string_view to) {
    const auto found = node.find(key);
    if (found && !applies) found->fail(fmt::format("{} has no \"{}\"; it belongs to {}", name(t.kind), key, to));
    return found;
  };
  if (const auto n = only("op", reduces(t.kind), "allreduce, reduce_scatter, reduce and reduce_scatterv"))
    t.op = Reduction(n->one_of(reduction_names()));
  if (const auto n = only("root", has_root(t.kind), "broadcast, reduce, gather and scatter"))
    t.root = Rank(n->integer(0, kRanksMax - 1));
  if (const auto n = only("counts", has_counts(t.kind), "alltoallv, allgatherv and reduce_scatterv")) {
    t.counts = read_distribution(*n);
    if (t.in_place && t.kind == Collective::alltoallv && t.counts.kind == Distribution::Kind::skewed)
      n->fail("skewed counts are not symmetric, as an alltoallv in place needs them");
  }
}

std::optional<Slicing> read_slicing(const json::Node& node) {
  const auto channels = find_either(node, "channels", "lanes"), chunks = find_either(node, "chunks", "shares"),
             window = node.find("window");
  if (!channels && !chunks && !window) return {};
  Slicing s;
  if (channels) s.lanes = Count(channels->integer(1, kLanesMax));
  s.shares = chunks ? Count(chunks->integer(1, kSharesMax)) : s.lanes;
  if (s.lanes > s.shares)
    channels->fail(fmt::format("{} channels for {} chunks: every channel needs a chunk", s.lanes, s.shares));
  if (window) s.window = unsigned(window->integer(1, kWindowMax));
  return s;
}

}  // namespace

Task read_task(const json::Node& node, bool in_sequence) {
  Task t{.where = node, .algorithms = {}, .slicing = {}, .protocol = {}, .groups = {}, .counts = {}};
  t.kind = Collective(node.at("collective").one_of(collective_names()));
  const auto bytes = node.find("bytes");
  if (t.kind == Collective::barrier) {
    if (bytes) bytes->fail("a barrier moves no bytes; leave the key out");
  } else {
    const json::Node stated = node.at("bytes");
    t.bytes = in_sequence ? std::vector<Count>{stated.bytes()} : read_sizes(stated);
  }
  if (const auto n = node.find("dtype")) t.dtype = read_dtype(*n);
  if (const auto n = node.find("in_place")) t.in_place = n->boolean();
  read_special(node, t);
  const auto algorithms = node.find(in_sequence ? "algorithm" : "algorithms");
  if (algorithms)
    t.algorithms = read_algorithms(*algorithms, t.kind, in_sequence);
  else
    t.algorithms.automatic = true;
  if (const auto n = node.find("planner")) t.planner = PlannerKind(n->one_of(kPlanners));
  t.slicing = read_slicing(node);
  if (const auto n = node.find("protocol"); n && n->string() != "auto") t.protocol = n->string();
  if (const auto n = node.find("groups")) t.groups = read_groups(*n);
  return t;
}

}  // namespace gccl::sim
