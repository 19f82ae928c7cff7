// What NCCL's model knows of a cluster: stated, or from its links.
#include "libgccl/cluster/read/nccl_settings.hpp"

#include <doctest/doctest.h>

#include <numeric>

#include "libgccl/cluster/read/load.hpp"
#include "libgccl/cluster/read/parameters.hpp"

using namespace gccl;

namespace {

std::optional<NcclMachine> machine(const Cluster& c, std::vector<Card> cards) { return nccl_machine(c, cards); }
std::vector<Card> first(Card n) {
  std::vector<Card> cards(n);
  std::iota(cards.begin(), cards.end(), 0);
  return cards;
}
std::shared_ptr<const Cluster> shipped(const std::string& name) {
  return load_cluster(GCCL_SOURCE_DIR "/topologies/" + name + ".json");
}
std::string nodes(int count, const std::string& in_switch = "false") {
  return R"({"count": )" + std::to_string(count) + R"(, "cards": 4, "inside": {"kind": "switch", "link": "l",
    "in_switch": )" +
         in_switch + R"(}, "nics": {"count": 2, "bus": "l", "port": {"bandwidth_GBps": 12, "latency_ns": 1}}})";
}
std::string description(const std::string& nccl, const std::string& nodes) {
  return R"({"schema": "gccl/cluster/1", "name": "c", "parameters": {"card": {"overhead_ns": 1, "combine_GBps": 0,
    "copy_GBps": 0}, "eager_bytes": 1, "links": {"l": {"bandwidth_GBps": 100, "latency_ns": 1}})" +
         nccl + R"(}, "nodes": [)" + nodes + R"(], "fabric": {"kind": "switch"}})";
}
std::shared_ptr<const Cluster> with(const std::string& nccl, const std::string& of = nodes(2)) {
  return parse_cluster(description(nccl, of), "c.json");
}
std::string refusal(const std::string& nccl) {
  try {
    with(nccl);
  } catch (const json::InputError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE(
    "the channels of shipped H100 nodes are NCCL's own for 1, 2, 4 and 8 cards a node, on one and on many nodes") {
  const auto c = shipped("dgx-h100-superpod-2048");
  const auto of = [&](unsigned nodes, unsigned each) {
    std::vector<Card> cards;
    for (unsigned n = 0; n < nodes; ++n)
      for (unsigned k = 0; k < each; ++k) cards.push_back(8 * n + k);
    const auto m = machine(*c, cards);
    REQUIRE(m);
    CHECK(m->ranks == nodes * each);
    CHECK(m->nodes == nodes);
    CHECK(m->graph.inside_GBps == m->graph.between_GBps);
    return std::pair(m->graph.channels, m->graph.inside_GBps);
  };
  for (const unsigned nodes : {2u, 8u}) {
    CHECK(of(nodes, 1) == std::pair(2u, 24.0));
    CHECK(of(nodes, 2) == std::pair(4u, 24.0));
    CHECK(of(nodes, 4) == std::pair(8u, 24.0));
    CHECK(of(nodes, 8) == std::pair(8u, 48.0));
  }
  CHECK(of(1, 8) == std::pair(12u, 30.0));
  CHECK(machine(*c, first(8))->same_channels);
  CHECK(!machine(*c, first(16))->same_channels);
  CHECK(machine(*c, first(8))->nvls.channels == 8);
  CHECK(machine(*c, first(2))->nvls.channels == 0);  // NCCL's multicast is for more than two cards
}

TEST_CASE("shipped clusters of other cards and joints have the multicast and the links that NCCL would see") {
  CHECK(machine(*shipped("dgx-a100-superpod"), first(8))->nvls.channels == 0);
  CHECK(machine(*shipped("marenostrum5-acc"), first(4))->nvls.channels == 0);  // joined pairwise
  CHECK(machine(*shipped("marenostrum5-acc"), first(16))->graph.channels == 4);
  CHECK(machine(*shipped("marenostrum5-acc"), first(16))->graph.inside_GBps == 24);
  CHECK(machine(*shipped("gb200-nvl72-576"), first(8))->architecture == NcclArchitecture::blackwell);
  CHECK(!machine(*shipped("pcie-box"), first(8))->nvlink);
  CHECK(!machine(*shipped("l40s-box"), first(8))->nvlink);
  CHECK(machine(*shipped("polaris"), first(8))->nvlink);
  for (const char* other : {"tpu-v4-4096", "atlas-900-a2", "ethernet-cpu", "host"})
    CHECK(!machine(*shipped(other), first(4)));
}

TEST_CASE("what a parameter set states of NCCL holds, and the rest follows from the links") {
  CHECK(!machine(*with(""), first(8)));
  const auto plain = machine(*with(R"(, "nccl": {"architecture": "ampere"})"), first(8));
  REQUIRE(plain);
  CHECK(plain->graph.channels == 2);  // two NICs of 12 GB/s
  CHECK(plain->graph.inside_GBps == 12);
  CHECK(!plain->amd);
  const auto stated = machine(*with(R"(, "nccl": {"architecture": "hopper", "channels": 3, "bandwidth_GBps": 5,
    "between_GBps": 4, "nvls": false, "collnet": true, "net_latency_us": 7, "processor": "amd"})"),
                              first(8));
  REQUIRE(stated);
  CHECK(stated->graph.channels == 3);
  CHECK(stated->graph.inside_GBps == 5);
  CHECK(stated->graph.between_GBps == 4);
  CHECK(stated->nvls.channels == 0);
  CHECK(stated->collnet);
  CHECK(stated->net_latency_us == 7);
  CHECK(stated->amd);
  CHECK(stated->tree.channels == 3);
  CHECK(stated->tree.inside_GBps == 12);  // the first of NCCL's that is twice the 4 between nodes or more
  CHECK(machine(*with(R"(, "nccl": {"architecture": "ampere", "nic_GBps": 25})"), first(8))->graph.inside_GBps == 24);
}

TEST_CASE("between nodes NCCL has no protocol that is for calls inside a node") {
  const auto m = machine(*with(R"(, "nccl": {"architecture": "ampere"},
    "protocols": {"LL": {"network": false}, "other": {"network": false}, "Simple": {}})"),
                         first(8));
  REQUIRE(m);
  CHECK(m->between_nodes == std::array{false, true, true});  // of LL128 the set says nothing
  // tuning.cc: on Ampere LL128 only where cards and NICs are below one PCIe switch, which Polaris' nodes do not have.
  CHECK(machine(*shipped("polaris"), first(8))->between_nodes == std::array{true, false, true});
  CHECK(machine(*shipped("dgx-a100-superpod"), first(16))->between_nodes == std::array{true, true, true});
}

TEST_CASE("multicast is that of switches that have it, whatever the cards' architecture") {
  const auto nvls = [](const std::string& stated, const std::string& of, const std::vector<Card>& cards) {
    const std::string nccl = R"(, "nccl": {"architecture": "hopper")" + stated + "}";
    return machine(*with(nccl, of), cards)->nvls.channels > 0;
  };
  const std::string half = nodes(1) + ", " + nodes(1, "true");
  for (const char* stated : {"", R"(, "nvls": true)"}) {
    CHECK(nvls(stated, nodes(2, "true"), first(8)));
    CHECK(!nvls(stated, half, first(8)));
    CHECK(!nvls(stated, half, {0, 1, 2, 3}));
    CHECK(nvls(stated, half, {4, 5, 6, 7}));
  }
  CHECK(!nvls("", nodes(2), first(4)));
  CHECK(!nvls(R"(, "nvls": false)", nodes(2, "true"), first(4)));
  // A set of other machines' may replace a description's own.
  const auto plain = json::Node::parse(description("", nodes(2)), "c.json");
  Parameters parameters = read_parameters(plain.at("parameters"));
  parameters.nccl = {};
  parameters.nccl.architecture = NcclArchitecture::hopper;
  parameters.nccl.nvls = true;
  CHECK(machine(*read_cluster(plain, parameters), first(4))->nvls.channels == 0);
}

TEST_CASE("wrong statements about NCCL are one line with place and what was expected") {
  CHECK(refusal(R"(, "nccl": {"architecture": "hoper"})") ==
        R"(c.json: /parameters/nccl/architecture: found "hoper"; did you mean "hopper"?)");
  CHECK(refusal(R"(, "nccl": {"processor": "AMD"})") ==
        R"(c.json: /parameters/nccl/processor: found "AMD"; did you mean "amd"?)");
  CHECK(refusal(R"(, "nccl": {"channels": 3})") ==
        R"(c.json: /parameters/nccl: expected "channels" and "bandwidth_GBps" (of each of them) together)");
  CHECK(refusal(R"(, "nccl": {"between_GBps": 3})") ==
        R"(c.json: /parameters/nccl/between_GBps: expected "channels" and "bandwidth_GBps" with it)");
  CHECK(refusal(R"(, "nccl": {"nvls": true})") ==
        R"(c.json: /nodes: found no switch with "in_switch": true, expected one, as "nccl" of the parameters has )"
        R"("nvls": true)");
  CHECK(refusal(R"(, "nccl": {"nvsl": true})").find("did you mean \"nvls\"") != std::string::npos);
}
