// Descriptions of clusters that are wrong.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <numeric>

#include "libgccl/json/reader.hpp"
#include "tests/cluster/described.hpp"

using namespace gccl;
using namespace gccl::test;

TEST_CASE("every mistake is reported with its place") {
  const auto message = [](std::string_view nodes, std::string_view fabric) -> std::string {
    try {
      make(nodes, fabric);
    } catch (const json::InputError& e) {
      return e.what();
    }
    return "accepted";
  };
  std::vector<int> all_of_512(512);
  std::iota(all_of_512.begin(), all_of_512.end(), 0);
  const struct {
    std::string nodes, fabric, expected;
  } kMistakes[] = {
      {switched(2, 2, 1), "", "\"fabric\" is missing, and there are 2 nodes"},
      {R"([{"count": 1, "cards": 0}])", "", "/nodes/0/cards: found 0"},
      {R"([{"count": 0, "cards": 1}])", "", "/nodes/0/count: found 0"},
      {R"([{"count": 1048576, "cards": 2}])", R"({"kind": "torus", "of": "cards", "dims": [2], "link": "trunk"})",
       "makes 2097152 cards"},
      {R"([{"count": 1, "cards": 2, "insde": {}}])", "", "unknown key \"insde\"; did you mean \"inside\"?"},
      {R"([{"count": 1, "cards": 2, "inside": {"kind": "swich", "link": "fast"}}])", "", "did you mean \"switch\"?"},
      {R"([{"count": 1, "cards": 2, "inside": {"kind": "switch", "link": "fastt"}}])", "", "did you mean \"fast\"?"},
      {R"([{"count": 1, "cards": 2, "inside": {"kind": "switch", "link": 25}}])", "",
       "/nodes/0/inside/link: found 25, expected the name of a link, or an object"},
      {R"([{"count": 1, "cards": 2, "inside": {"kind": "switch", "link": "fast", "in_switch": 1}}])", "",
       "/nodes/0/inside/in_switch: "},
      {R"([{"count": 1, "cards": 2, "inside": {"kind": "ring", "link": "fast", "in_switch": true}}])", "",
       "unknown key \"in_switch\""},
      {R"([{"count": 1, "cards": 2, "inside": [{"kind": "switch", "link": "fast", "in_switch": true}, {"kind": "full_mesh", "link": "fast"}]}])",
       "",
       "/nodes/0/inside/0/in_switch: card 0 sends to card 1 directly, expected all cards to send to each other over "
       "switch"},
      {R"([{"count": 1, "cards": 2, "inside": [{"kind": "switch", "link": "long", "in_switch": true}, {"kind": "switch", "link": "fast"}]}])",
       "", "/nodes/0/inside/0/in_switch: card 0 sends to card 1 over switch1, expected"},
      {fmt::format(R"([{{"count": 1, "cards": 512, "inside": {{"kind": "switch", "link": "fast"}},
        "nics": {{"count": 512, "cards": [{}], "bus": "bus", "port": "port"}}}}])",
                   fmt::join(std::vector(512, fmt::format("[{}]", fmt::join(all_of_512, ","))), ",")),
       "", "/nodes/0/nics: has 525312 links for 1024 cards and NICs, more than routes can be computed for"},
      {R"([{"count": 1, "cards": 2}])", "", "no way from card 0 to card 1"},
      {R"([{"count": 1, "cards": 2, "inside": {"kind": "pcie_tree", "cards_per_switch": 1, "switches_per_root": 1, "card_link": "fast", "switch_link": "bus", "across_link": "fast"}}])",
       "", "/across_link: is as wide as \"switch_link\" or wider, expected a narrower link"},
      {R"([{"count": 1, "cards": 2, "inside": {"kind": "pcie_tree", "cards_per_switch": 1, "switches_per_root": 1, "card_link": "fast", "switch_link": "bus", "across_link": "bus"}}])",
       "", "expected a narrower link"},
      {R"([{"count": 1, "cards": 2, "inside": {"kind": "pcie_tree", "cards_per_switch": 1, "switches_per_root": 1, "card_link": "fast", "switch_link": "fast"}}])",
       "", "expected \"root_link\" or \"across_link\""},
      {R"([{"count": 2, "cards": 2, "inside": {"kind": "switch", "link": "fast"}}])", R"({"kind": "switch"})",
       "no node has a NIC"},
      {R"([{"count": 1, "cards": 2, "nics": {"count": 1, "bus": "bus", "port": "port"}}, {"count": 1, "cards": 1}])",
       R"({"kind": "switch"})", "has no NIC"},
      {R"([{"count": 2, "cards": 2, "nics": {"count": 2, "cards": [[0], [2]], "bus": "bus", "port": "port"}}])",
       R"({"kind": "switch"})", "/nodes/0/nics/cards/1/0: found 2"},
      {R"([{"count": 2, "cards": 2, "nics": {"count": 2, "cards": [[0], [0]], "bus": "bus", "port": "port"}}])",
       R"({"kind": "switch"})", "card 1 has no way to any NIC"},
      {R"([{"count": 2, "cards": 2, "nics": {"count": 2, "cards": [[0], [1]], "port": "port"}}])",
       R"({"kind": "switch"})", "\"bus\" is missing"},
      {R"([{"count": 2, "cards": 2, "nics": {"count": 2, "bus": "bus", "port": "port"}}])",
       R"({"kind": "multi_plane", "planes": 2, "leaf_size": 2, "link": "trunk"})", "no plane joins"},
      {switched(5, 1, 1), R"({"kind": "torus", "of": "nodes", "dims": [2, 2], "link": "trunk"})",
       "/fabric/dims: makes 4 routers, but there are 5 nodes"},
      {R"([{"count": 4, "cards": 4}])", R"({"kind": "torus", "of": "cards", "dims": [2, 8], "link": "trunk"})",
       "do not tile"},
      {switched(4, 1, 1), R"({"kind": "torus", "of": "cards", "dims": [2, 2], "link": "trunk"})", "have no NICs"},
      {switched(40, 1, 1),
       R"({"kind": "dragonfly", "routers": 2, "ports": 2, "groups": 3, "global_links": 1, "local_link": "trunk", "global_link": "long"})",
       "need 10 groups"},
      {switched(4, 1, 1), R"({"kind": "fat_tree", "link": "trunk"})", "either \"radix\" or \"leaf_size\""},
      {switched(4, 1, 1), R"({"kind": "fat_tree", "radix": 4, "leaf_size": 4, "link": "trunk"})",
       "either \"radix\" or \"leaf_size\""},
      {switched(4, 1, 1), R"({"kind": "fat_tree", "radix": 4, "pod_leaves": 4, "link": "trunk"})",
       "is for three levels"},
      {switched(4, 1, 1), R"({"kind": "custom", "switches": ["a", "a"], "ports": [{"switch": "a", "nodes": [0, 3]}]})",
       "is taken"},
      {switched(4, 1, 1), R"({"kind": "custom", "switches": ["leaf"], "ports": [{"switch": "leav", "nodes": [0, 3]}]})",
       "did you mean \"leaf\"?"},
      {switched(4, 1, 1), R"({"kind": "custom", "switches": ["a"], "ports": [{"switch": "a", "nodes": [0, 2]}]})",
       "NIC 0 of node 3 is plugged in nowhere"},
      {switched(4, 1, 1),
       R"({"kind": "custom", "switches": ["a"], "ports": [{"switch": "a", "nodes": [0, 3]}, {"switch": "a", "nodes": [1, 1]}]})",
       "already plugged"},
      {switched(4, 1, 1),
       R"({"kind": "custom", "switches": ["a", "b"], "ports": [{"switch": "a", "nodes": [0, 1]}, {"switch": "b", "nodes": [2, 3]}]})",
       "no way from node 0 to node 2"},
      {switched(4, 1, 1), R"({"kind": "custom", "switches": ["node12/a"], "ports": []})",
       "/fabric/switches/0: found \"node12/a\", expected a name without \"->\""},
      {switched(4, 1, 1), R"({"kind": "custom", "switches": ["a", "a->b"], "ports": []})",
       "/fabric/switches/1: found \"a->b\", expected a name without \"->\""},
      {R"([{"count": 1, "cards": 2, "inside": {"kind": "links", "switches": ["->"], "links": []}}])", "",
       "/inside/switches/0: found \"->\", expected a name without \"->\""},
      // As many ports of a pod as 32 bits do not hold.
      {switched(4, 1, 2),
       R"({"kind": "multi_plane", "planes": 2, "levels": 3, "leaf_size": 65536, "pod_leaves": 65536, "link": "trunk"})",
       "/fabric: "},
      {switched(4, 1, 1), R"({"kind": "fat_tree", "radix": 4, "link": {"bandwidth_GBps": 0, "latency_ns": 1}})",
       "/fabric/link/bandwidth_GBps: found 0"},
  };
  for (const auto& m : kMistakes) {
    const std::string found = message(m.nodes, m.fabric);
    CAPTURE(found);
    CHECK_MESSAGE(found.find(m.expected) != std::string::npos, m.expected);
    CHECK(found.find('\n') == std::string::npos);
  }
}
