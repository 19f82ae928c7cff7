// Drawings of clusters: nothing overlaps, and every cable and channel is there.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "libgccl/cluster/read/load.hpp"
#include "sim/report/channel_rings.hpp"
#include "sim/report/topology_svg.hpp"
#include "tests/support/json_files.hpp"

using namespace gccl;
using namespace gccl::sim;

namespace {

struct Drawn {
  std::size_t cables = 0, lines = 0;
  std::set<std::string> pairs;  // "a - b"
};

Drawn drawn(const std::string& svg) {
  Drawn d;
  const std::regex one(R"re(data-cables="([0-9]+)"><title>([^:<]*): )re");
  for (auto it = std::sregex_iterator(svg.begin(), svg.end(), one); it != std::sregex_iterator(); ++it) {
    d.cables += std::stoul((*it)[1]);
    ++d.lines;
    d.pairs.insert((*it)[2]);
  }
  return d;
}

// What the description asks for, counted from its text.
Drawn stated(const nlohmann::json& cluster) {
  Drawn d;
  std::vector<std::string> order = cluster["fabric"]["switches"];
  const auto place = [&](const std::string& s) { return std::find(order.begin(), order.end(), s) - order.begin(); };
  for (const auto& link : cluster["fabric"]["links"]) {
    d.cables += link.value("cables", 1);
    std::string a = link["between"][0], b = link["between"][1];
    if (place(a) > place(b)) std::swap(a, b);
    d.pairs.insert(a + " - " + b);
    d.pairs.insert(b + " - " + a);
  }
  return d;
}

}  // namespace

TEST_CASE("drawings are well formed and no text lies on another") {
  struct Words {
    double left, right, top, bottom;
    std::string text;
  };
  for (const auto& file : test::json_files("topologies")) {
    CAPTURE(file);
    const auto cluster = load_cluster(file);
    const std::vector<ChannelRing> rings = rings_of_channels(*cluster, std::min<Rank>(cluster->cards(), 144));
    const std::string svg = topology_svg(*cluster, rings);
    CHECK(svg == topology_svg(*load_cluster(file), rings));
    CHECK(svg.starts_with("<svg "));
    CHECK(svg.ends_with("</svg>\n"));
    CHECK(svg.find("nan") == std::string::npos);
    double width = 0, height = 0;
    std::smatch size;
    REQUIRE(std::regex_search(svg, size, std::regex("width=\"([0-9]+)\" height=\"([0-9]+)\"")));
    width = std::stod(size[1]);
    height = std::stod(size[2]);
    std::vector<Words> all;
    const std::regex one(
        R"re(<text x="([-0-9.]+)" y="([-0-9.]+)" font-size="([0-9]+)" text-anchor="([a-z]+)"[^>]*>([^<]*)</text>)re");
    for (auto it = std::sregex_iterator(svg.begin(), svg.end(), one); it != std::sregex_iterator(); ++it) {
      const auto& m = *it;
      const double x = std::stod(m[1]), y = std::stod(m[2]), pixels = std::stod(m[3]);
      const double wide = 0.56 * pixels * double(m[5].length());
      const double left = m[4] == "start" ? x : m[4] == "end" ? x - wide : x - wide / 2;
      all.push_back({left, left + wide, y - 0.72 * pixels, y + 0.2 * pixels, m[5]});
    }
    CHECK(all.size() > 8);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Words& a = all[i];
      CAPTURE(a.text);
      CHECK(a.left >= 0);
      CHECK(a.right <= width);
      CHECK(a.bottom <= height);
      for (std::size_t j = 0; j < i; ++j) {
        const Words& b = all[j];
        CHECK_MESSAGE(!(a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom), b.text);
      }
    }
  }
}

TEST_CASE("a drawing is UTF-8, whatever a node's parts are called and however little room there is for it") {
  nlohmann::json cluster = {
      {"schema", "gccl/cluster/1"}, {"name", "größe"}, {"parameters", "../cost-models/nvidia-a100.json"}};
  auto& node = cluster["nodes"][0];
  node = {{"count", 1}, {"cards", 1}, {"nics", {{"count", 1}, {"bus", "nic_bus"}, {"port", "nic"}}}};
  node["inside"] = {{"kind", "links"}, {"switches", {"日本", "本日", "a日本", "b日本", "c日本", "d日本"}}};
  for (const auto& name : node["inside"]["switches"])
    node["inside"]["links"].push_back({{"from", "card0"}, {"to", name}, {"link", "nvlink"}});
  const auto loaded = parse_cluster(cluster.dump(), test::kRoot / "topologies/test.json");
  const std::string svg = topology_svg(*loaded);
  CHECK_NOTHROW(nlohmann::json(svg).dump());  // which takes no other text
  CHECK(svg.find("a日") != svg.npos);
  CHECK(svg.find("1 card, 1 node, 1 NIC<") != svg.npos);
}

TEST_CASE("a drawing's channels pass every rank once, and every NIC both ways") {
  const auto cluster = load_cluster(test::kRoot / "topologies/dgx-h100-superpod-2048.json");
  const std::string bare = topology_svg(*cluster), svg = topology_svg(*cluster, rings_of_channels(*cluster, 16));
  const auto more = [&](const std::string& label) {
    const auto count = [&](const std::string& text) {
      std::size_t n = 0;
      for (auto at = text.find('>' + label + '<'); at != text.npos; at = text.find('>' + label + '<', at + 1)) ++n;
      return n;
    };
    return count(svg) - count(bare);
  };
  // Two nodes of eight cards and eight NICs: eight rings, and on each node each NIC is one ring's way in, one's way
  // out.
  for (int rank = 0; rank < 16; ++rank) CHECK(more(std::to_string(rank)) == 8);
  for (int nic = 0; nic < 8; ++nic) CHECK(more("nic" + std::to_string(nic)) == 4);
  for (int channel = 0; channel < 8; ++channel) CHECK(more("channel " + std::to_string(channel)) == 1);
  CHECK(more("channel 8") == 0);
}

TEST_CASE("the drawing of a custom fabric has every cable of its description") {
  nlohmann::json custom = nlohmann::json::parse(std::ifstream(test::kRoot / "topologies/custom-fabric.json"));
  // A hypercube of eight switches, four nodes on each, sixteen cables on each edge: no edge leaves its layer.
  nlohmann::json cube = custom;
  auto& fabric = cube["fabric"] = {{"kind", "custom"}};
  cube["nodes"][0]["count"] = 32;
  cube.erase("sources");
  for (int s = 0; s < 8; ++s) {
    fabric["switches"].push_back("s" + std::to_string(s));
    fabric["ports"].push_back({{"switch", "s" + std::to_string(s)}, {"nodes", {4 * s, 4 * s + 3}}});
    for (int bit = 1; bit < 8; bit *= 2)
      if (!(s & bit))
        fabric["links"].push_back(
            {{"between", {"s" + std::to_string(s), "s" + std::to_string(s | bit)}}, {"link", "trunk"}, {"cables", 16}});
  }
  // A switch that nothing is plugged into, and one that no cable leads to.
  nlohmann::json odd = custom;
  odd["fabric"]["switches"].push_back("lonely");
  odd["fabric"]["switches"].push_back("pair0");
  odd["fabric"]["switches"].push_back("pair1");
  odd["fabric"]["links"].push_back({{"between", {"pair0", "pair1"}}, {"link", "trunk"}, {"cables", 3}});
  for (const auto& [document, cables, pairs] :
       {std::tuple(custom, 19u, 7u), std::tuple(cube, 192u, 12u), std::tuple(odd, 22u, 8u)}) {
    const auto cluster = parse_cluster(document.dump(), test::kRoot / "topologies/test.json");
    const Drawn found = drawn(topology_svg(*cluster)), expected = stated(document);
    CHECK(found.cables == expected.cables);
    CHECK(found.cables == cables);
    CHECK(found.lines == pairs);
    for (const std::string& pair : found.pairs) CHECK_MESSAGE(expected.pairs.contains(pair), pair);
  }
}
