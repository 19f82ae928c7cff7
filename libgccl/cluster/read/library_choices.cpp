#include "libgccl/cluster/read/library_choices.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libgccl/cluster/composed.hpp"
#include "libgccl/json/nearest.hpp"

namespace gccl {
namespace {

using json::Node;

constexpr std::int64_t kNodesMax = 1 << 20;

LibraryChoice read_choice(const Node& v, const std::vector<std::string_view>& protocols) {
  v.allow({"collective", "nodes_min", "nodes_max", "bytes_max", "algorithm", "protocol", "source"});
  LibraryChoice c;
  c.kind = Collective(v.at("collective").one_of(collective_names()));
  if (const auto least = v.find("nodes_min")) c.nodes_min = Rank(least->integer(1, kNodesMax));
  if (const auto most = v.find("nodes_max")) c.nodes_max = Rank(most->integer(c.nodes_min, kNodesMax));
  if (const auto bytes = v.find("bytes_max")) c.bytes_max = bytes->bytes();
  const Node algorithm = v.at("algorithm");
  c.algorithm = find_algorithm(c.kind, algorithm.string());
  if (!c.algorithm)
    algorithm.fail(fmt::format("found {}, expected an algorithm of {}{}", algorithm.text(), name(c.kind),
                               suggestion(algorithm.string(), algorithm_names(c.kind))));
  if (const auto protocol = v.find("protocol")) {
    c.protocol = protocol->string();
    if (!std::ranges::count(protocols, c.protocol))
      protocol->fail(fmt::format("found {}, and the set has no such protocol{}", protocol->text(),
                                 suggestion(c.protocol, protocols)));
  }
  if (const auto source = v.find("source")) source->string();
  return c;
}

}  // namespace

LibraryChoices read_choices(const Node& list, const std::vector<std::string_view>& protocols) {
  LibraryChoices all;
  for (const Node& v : list.items()) {
    const LibraryChoice c = read_choice(v, protocols);
    for (const LibraryChoice& before : all)
      if (before.kind == c.kind && before.nodes_min <= c.nodes_min && before.nodes_max >= c.nodes_max &&
          before.bytes_max >= c.bytes_max)
        v.fail("an earlier choice is for all of its calls");
    all.push_back(c);
  }
  return all;
}

const LibraryChoice* library_choice(const Cluster& cluster, Collective kind, Rank nodes, Count bytes) {
  const auto* composed = dynamic_cast<const ComposedCluster*>(&cluster);
  if (!composed) return nullptr;
  const LibraryChoices& all = composed->parts().choices;
  const auto found = std::ranges::find_if(all, [&](const LibraryChoice& c) { return c.is_for(kind, nodes, bytes); });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace gccl
