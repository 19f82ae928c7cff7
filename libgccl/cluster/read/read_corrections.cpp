#include "libgccl/cluster/read/read_corrections.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/json/nearest.hpp"

namespace gccl {
namespace {

using json::Node;

constexpr std::int64_t kCorrectedMax = 1 << 20;  // nodes, and cards of each
constexpr double kExtraUsMax = 1e9;

Correction read_correction(const Node& v, const std::vector<std::string_view>& protocols) {
  v.allow(
      {"collective", "nodes", "cards_per_node", "algorithm", "protocol", "bytes", "extra_us", "more_nodes", "source"});
  Correction c;
  const Node collective = v.at("collective");
  c.of.kind = Collective(collective.one_of(collective_names()));
  c.of.nodes = Rank(v.at("nodes").integer(1, kCorrectedMax));
  c.of.cards_per_node = Rank(v.at("cards_per_node").integer(1, kCorrectedMax));
  if (const auto algorithm = v.find("algorithm")) {
    c.of.algorithm = algorithm->string();
    if (!find_algorithm(c.of.kind, c.of.algorithm))
      algorithm->fail(fmt::format("found {}, expected an algorithm of {}{}", algorithm->text(), name(c.of.kind),
                                  suggestion(c.of.algorithm, algorithm_names(c.of.kind))));
  }
  if (const auto protocol = v.find("protocol")) {
    c.of.protocol = protocol->string();
    if (!std::ranges::count(protocols, c.of.protocol))
      protocol->fail(fmt::format("found {}, and the set has no such protocol{}", protocol->text(),
                                 suggestion(c.of.protocol, protocols)));
  }
  if (const auto more = v.find("more_nodes")) c.more_nodes = more->boolean();
  if (const auto source = v.find("source")) c.source = source->string();
  for (const Node& size : v.at("bytes").items(1)) {
    c.bytes.push_back(size.bytes());
    if (c.bytes.size() > 1 && c.bytes.back() <= c.bytes[c.bytes.size() - 2])
      size.fail(fmt::format("found {}, expected more than the size before", size.text()));
  }
  const Node extra = v.at("extra_us");
  for (const Node& us : extra.items(1)) c.extra_ns.push_back(us.number(-kExtraUsMax, kExtraUsMax) * 1e3);
  if (c.extra_ns.size() != c.bytes.size())
    extra.fail(
        fmt::format("found {} values, expected one for each of the {} \"bytes\"", c.extra_ns.size(), c.bytes.size()));
  return c;
}

}  // namespace

Corrections read_corrections(const Node& list, const std::vector<std::string_view>& protocols) {
  Corrections all;
  for (const Node& v : list.items()) {
    Correction c = read_correction(v, protocols);
    for (const Correction& before : all)
      if (before.of == c.of) v.fail("an earlier correction is for the same operations");
    all.push_back(std::move(c));
  }
  return all;
}

}  // namespace gccl
