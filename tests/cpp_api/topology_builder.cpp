// Devices, topologies and the groups of ranks that follow from them: what the C++ interface knows without
// communicating.
#include <doctest/doctest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "gccl/gccl.hpp"
#include "tests/cpp_api/topology_errors.hpp"
#include "tests/support/child.hpp"

using namespace gccl;
using gccl::test::contains;
using gccl::test::error_of;
using Groups = std::vector<std::vector<int>>;

namespace {

// Its own, and no part of a builder that may be gone or grow.
static_assert(std::is_same_v<decltype(std::declval<TopologyBuilder&>().build()), Topology>);

Topology parse(const std::string& text) { return TopologyBuilder().add_text(text, "t.xml").build(); }
Topology shipped(const std::string& name) {
  return TopologyBuilder().add_file(GCCL_SOURCE_DIR "/topologies/" + name + ".json").build();
}

std::string pci(const std::string& busid, const std::string& inside) {
  return "<pci busid=\"" + busid + "\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">" + inside +
         "</pci>\n";
}
std::string gpu(int dev, int rank, const std::string& links = "") {
  return "<gpu dev=\"" + std::to_string(dev) + "\" sm=\"90\" rank=\"" + std::to_string(rank) + "\" gdr=\"1\">" + links +
         "</gpu>";
}
std::string nvlink(const std::string& target, const std::string& tclass) {
  return "<nvlink target=\"" + target + "\" count=\"18\" tclass=\"" + tclass + "\"/>";
}
std::string net(const std::string& name, int dev, const std::string& speed = "400000") {
  return "<nic><net name=\"" + name + "\" dev=\"" + std::to_string(dev) + "\" speed=\"" + speed +
         "\" port=\"1\" maxconn=\"131072\"/></nic>";
}

// Two sockets; below each, two switches with two GPUs and two NICs each. All GPUs hang on NVSwitches.
std::string dgx() {
  const std::string to_switch = nvlink("0000:c4:00.0", "0x068000");
  std::string text = "<system version=\"1\">\n";
  for (int socket = 0; socket < 2; ++socket) {
    text += "<cpu numaid=\"" + std::to_string(socket) + "\" affinity=\"ff\" arch=\"x86_64\" vendor=\"GenuineIntel\">\n";
    for (int s = 0; s < 2; ++s) {
      std::string below;
      for (int i = 0; i < 2; ++i) {
        const int k = socket * 4 + s * 2 + i;
        below += pci("0000:1" + std::to_string(k) + ":00.0", gpu(k, k, to_switch));
        below += pci("0000:2" + std::to_string(k) + ":00.0", net("mlx5_" + std::to_string(k), k));
      }
      text += pci("0000:0" + std::to_string(socket * 2 + s) + ":00.0", below);
    }
    text += "</cpu>\n";
  }
  return text + "</system>\n";
}

}  // namespace

TEST_CASE("process groups follow Megatron-LM's order, coordinate by coordinate") {
  for (int tp = 1; tp <= 3; ++tp)
    for (int cp = 1; cp <= 2; ++cp)
      for (int pp = 1; pp <= 3; ++pp)
        for (int dp = 1; dp <= 4; ++dp) {
          const ProcessGroups g(tp, cp, pp, dp);
          std::vector<ParallelPlace> places;
          for (int p = 0; p < pp; ++p)
            for (int d = 0; d < dp; ++d)
              for (int c = 0; c < cp; ++c)
                for (int t = 0; t < tp; ++t) places.push_back({t, c, p, d});
          REQUIRE(g.world_size() == int(places.size()));
          for (int r = 0; r < g.world_size(); ++r) {
            REQUIRE(g.place_of(r) == places[std::size_t(r)]);
            REQUIRE(g.rank_of(places[std::size_t(r)]) == r);
          }
          for (const Parallel kind :
               {Parallel::tp, Parallel::cp, Parallel::pp, Parallel::dp, Parallel::cp_dp, Parallel::pp_dp}) {
            const auto together = [&](const ParallelPlace& a, const ParallelPlace& b) {
              const unsigned k = unsigned(kind);
              return (k & 1 || a.tp == b.tp) && (k & 2 || a.cp == b.cp) && (k & 4 || a.pp == b.pp) &&
                     (k & 8 || a.dp == b.dp);
            };
            Groups expected;
            for (int r = 0; r < g.world_size(); ++r) {
              std::vector<int> members;
              for (int other = 0; other < g.world_size(); ++other)
                if (together(places[std::size_t(r)], places[std::size_t(other)])) members.push_back(other);
              REQUIRE(g.group(kind, r) == members);
              if (members.front() == r) expected.push_back(members);
            }
            REQUIRE(g.groups(kind) == expected);
          }
        }
}

TEST_CASE("process groups of 16 ranks, tp 2, pp 4, are those in Megatron-LM's own example") {
  const ProcessGroups g = ProcessGroups::for_world(16, 2, 1, 4, "tp-cp-ep-dp-pp");
  CHECK(g.dp() == 2);
  CHECK(g.groups(Parallel::dp) == Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}});
  CHECK(g.groups(Parallel::tp) == Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}});
  CHECK(g.groups(Parallel::pp) == Groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}});
}

TEST_CASE("another order gives another numbering") {
  const ProcessGroups g(2, 1, 3, 2, "tp-pp-dp");
  CHECK(g.rank_of({.tp = 1, .cp = 0, .pp = 2, .dp = 1}) == 1 + 2 * 2 + 1 * 6);
  CHECK(g.groups(Parallel::pp) == Groups{{0, 2, 4}, {1, 3, 5}, {6, 8, 10}, {7, 9, 11}});
  CHECK(g.groups(Parallel::pp_dp) == Groups{{0, 2, 4, 6, 8, 10}, {1, 3, 5, 7, 9, 11}});
}

TEST_CASE("sizes that do not fit the world are refused with the nearest valid value") {
  CHECK(contains(error_of([] { ProcessGroups::for_world(16, 3, 1, 1); }),
                 "nearest tp: 2; nearest number of ranks: 15 or 18"));
  CHECK(contains(error_of([] { ProcessGroups::for_world(7, 2, 1, 4); }), "nearest number of ranks: 8"));
  CHECK(contains(error_of([] { ProcessGroups(2, 1, 2, 3).expect_world(16); }), "expected dp 4, or 12 ranks"));
  CHECK(contains(error_of([] { ProcessGroups(3, 1, 1, 8).expect_world(16); }), "nearest tp: 2; expected 24 ranks"));
  CHECK(contains(error_of([] { ProcessGroups(3, 1, 1, 5).expect_world(16); }),
                 "but there are 16 ranks; expected 15 ranks"));
  CHECK(contains(error_of([] { ProcessGroups(1, 0, 1, 1); }), "cp is 0, expected at least 1"));
  CHECK(contains(error_of([] { ProcessGroups(1 << 16, 1 << 16, 1, 1); }), "more than 2147483647"));
  CHECK(contains(error_of([] { ProcessGroups(2, 1, 1, 2, "tp-tp-dp"); }), "\"tp\" twice"));
  CHECK(contains(error_of([] { ProcessGroups(2, 1, 1, 2, "tp-pq"); }), "\"pq\""));
  CHECK(contains(error_of([] { ProcessGroups(2, 2, 1, 2, "tp-dp-pp"); }), "cp is 2 and missing"));
  CHECK(contains(error_of([] { ProcessGroups(2, 1, 1, 2).group(Parallel::tp, 4); }), "rank 4, expected 0 to 3"));
  CHECK(error_of([] { ProcessGroups(2, 1, 1, 2).expect_world(4); }) == "");
}

TEST_CASE("NCCL's XML: GPUs on NVSwitches are one island, and each takes the NIC below its own switch") {
  const Topology t = parse(dgx());
  REQUIRE(t.devices.size() == 8);
  REQUIRE(t.nics.size() == 8);
  CHECK(t.nodes == 1);
  for (int k = 0; k < 8; ++k) {
    const auto& d = t.devices[std::size_t(k)];
    CHECK(d.kind == GCCL_DEVICE_GPU);
    CHECK(d.rank == k);
    CHECK(d.numa == k / 4);
    CHECK(d.island == 0);
    CHECK(d.nic == k);
    CHECK(d.name == "0000:1" + std::to_string(k) + ":00.0");
    CHECK(t.nics[std::size_t(k)].name == "mlx5_" + std::to_string(k));
    CHECK(t.nics[std::size_t(k)].bandwidth_GBps == 50);
  }
  CHECK(t.groups(Locality::numa) == Groups{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK(t.groups(Locality::rail).size() == 8);
}

TEST_CASE("two nodes of one XML make rails across") {
  const Topology t = TopologyBuilder().add_text(dgx(), "dgx.xml", 2).build();
  CHECK(t.nodes == 2);
  CHECK(t.groups(Locality::rail) == Groups{{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15}});
  CHECK(t.groups(Locality::island).size() == 2);
  // One rank on every second device, in reverse.
  const std::vector<int> placement = {14, 12, 10, 8, 6, 4, 2, 0};
  CHECK(t.groups(Locality::node, placement) == Groups{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK(t.groups(Locality::rail, placement) == Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
}

TEST_CASE("a builder can add what it has built itself") {
  TopologyBuilder builder;
  builder.add_text(dgx(), "dgx.xml");
  const Topology& one = builder.build();
  builder.add(builder.build()).add(one);
  const Topology t = builder.build();
  CHECK(one.nodes == 1);
  CHECK(t.nodes == 3);
  REQUIRE(t.devices.size() == 3 * one.devices.size());
  for (std::size_t i = 0; i < t.devices.size(); ++i) {
    CHECK(t.devices[i].name == one.devices[i % one.devices.size()].name);
    CHECK(t.devices[i].node == int(i / one.devices.size()));
  }
}

TEST_CASE("NVLink pairs, xGMI, links to processors and hosts of their own are distinguished") {
  const std::string gpus =
      pci("0000:01:00.0", gpu(0, 3, nvlink("0000:02:00.0", "0x030200"))) + pci("0000:02:00.0", gpu(1, 2)) +
      pci("0000:0A:00.0", gpu(2, 1, "<xgmi target=\"0000:0b:00.0\" count=\"1\" tclass=\"0x038000\"/>")) +
      pci("0000:0B:00.0", gpu(3, 0, nvlink("0000:0b:00.9", "0x068001")));
  const Topology t =
      parse("<system><cpu host_hash=\"0x1\" numaid=\"0\">" + gpus + net("eth0", 0, "-1") +
            "</cpu><cpu host_hash=\"0x2\" numaid=\"0\">" + pci("0000:01:00.0", gpu(0, 4)) + "</cpu></system>");
  CHECK(t.nodes == 2);
  // By rank: 3 and 2 are a pair, 1 and 0 another one.
  CHECK(t.groups(Locality::island) == Groups{{0, 1}, {2, 3}, {4}});
  CHECK(t.groups(Locality::node) == Groups{{0, 1, 2, 3}, {4}});
  CHECK(t.groups(Locality::rail) == Groups{{0, 1, 2, 3}});  // rank 4's host has no NIC
  CHECK(t.nics[0].bandwidth_GBps == 1.25);                  // NCCL's assumption: 10 Gbit/s
}

TEST_CASE("a wrong XML is refused with file and line") {
  CHECK(contains(error_of([] { parse("<system>\n<cpu>\n</system>"); }), "t.xml:3: is not XML"));
  CHECK(contains(error_of([] { parse("<graphs/>"); }), "t.xml:1: found <graphs>, expected <system>"));
  CHECK(contains(error_of([] { parse("<system/>"); }), "no <pci> inside a <cpu> has a <gpu>, a <net>"));
  CHECK(contains(error_of([] { parse("<system>\n<cpu numaid=\"x\"/></system>"); }),
                 "t.xml:2: <cpu> has numaid=\"x\", expected a whole number"));
  CHECK(contains(error_of([] { parse("<system><cpu><pci>" + gpu(0, 0) + "</pci></cpu></system>"); }), "has no busid"));
  const std::string one = pci("0000:01:00.0", gpu(0, 0));
  CHECK(contains(error_of([&] { parse("<system><cpu>" + one + one + "</cpu></system>"); }), "a second GPU at busid"));
  std::string deep = gpu(0, 0);
  for (int i = 0; i < 70; ++i) deep = pci("0000:01:00.0", deep);
  CHECK(contains(error_of([&] { parse("<system><cpu>" + deep + "</cpu></system>"); }), "nested more than 64 deep"));
  CHECK(contains(error_of([] { parse(" "); }), "t.xml: is empty"));
  CHECK(contains(error_of([] { parse("[]"); }), "begins with neither '{' nor '<'"));
  CHECK(contains(error_of([] { parse("{}"); }), "schema"));
  CHECK(contains(error_of([] { TopologyBuilder().add_file("/nowhere.xml"); }), "/nowhere.xml: no such file"));
  CHECK(contains(error_of([] { TopologyBuilder().add_file("/"); }), "/: "));
  const Topology twice = parse("<system><cpu>" + one + pci("0000:02:00.0", gpu(1, 0)) + "</cpu></system>");
  CHECK(contains(error_of([&] { twice.groups(Locality::node); }), "rank 0 of device 1 appears twice"));
  const std::vector<int> beyond = {0, 2};
  CHECK(contains(error_of([&] { twice.groups(Locality::node, beyond); }), "rank 1 is on device 2"));
}

TEST_CASE("every shipped cluster: groups partition its cards, and no group leaves its node but rails and torus links") {
  int clusters = 0;
  for (const auto& file : std::filesystem::directory_iterator(GCCL_SOURCE_DIR "/topologies")) {
    if (file.path().extension() != ".json") continue;
    INFO(file.path().string());
    const Topology t = TopologyBuilder().add_file(file.path().string()).build();
    for (const Locality by : {Locality::node, Locality::numa, Locality::island}) {
      std::set<int> seen;
      for (const auto& g : t.groups(by))
        for (const int r : g) REQUIRE(seen.insert(r).second);
      CHECK(seen.size() == t.devices.size());
    }
    CHECK(t.groups(Locality::node).size() == std::size_t(t.nodes));
    for (const auto& d : t.devices)
      if (d.nic >= 0) REQUIRE(t.nics[std::size_t(d.nic)].node == d.node);
    ++clusters;
  }
  CHECK(clusters >= 10);
}

TEST_CASE("islands and rails of known clusters") {
  CHECK(shipped("gb200-nvl72-576").groups(Locality::island).size() == 8);
  CHECK(shipped("gb200-nvl72-576").groups(Locality::rail).size() == 72);
  CHECK(shipped("pcie-box").groups(Locality::island).size() == 8);  // no links but PCIe
  CHECK(shipped("pcie-box").groups(Locality::rail).empty());
  CHECK(shipped("tpu-v4-4096").groups(Locality::island).size() == 1);
  const Topology polaris = shipped("polaris");  // NIC 0 serves cards 3 and 2
  CHECK(polaris.nodes == 560);
  CHECK(polaris.groups(Locality::island).size() == 560);
  const auto rails = polaris.groups(Locality::rail);
  REQUIRE(rails.size() == 2);
  CHECK(std::vector<int>(rails[0].begin(), rails[0].begin() + 4) == std::vector<int>{0, 1, 4, 5});
  CHECK(rails[1].front() == 2);
}

TEST_CASE("this machine's devices have the memory and the processors that Linux says") {
  const DeviceManager manager;
  REQUIRE(!manager.devices().empty());
  std::uint64_t kib = 0, memory_bytes = 0;
  for (int node = 0; node < 1024; ++node) {
    std::ifstream meminfo("/sys/devices/system/node/node" + std::to_string(node) + "/meminfo");
    std::string word;
    std::uint64_t n;
    if (meminfo >> word >> word >> word >> n) kib += n;  // "Node 0 MemTotal: 1234 kB"
  }
  int threads = 0;
  for (const Device& d : manager.devices()) {
    CHECK(d.kind == GCCL_DEVICE_CPU);
    CHECK(!d.name.empty());
    CHECK(d.cores >= 1);
    CHECK(d.threads >= d.cores);
    threads += d.threads;
    memory_bytes += d.memory_bytes;
  }
  cpu_set_t allowed;
  REQUIRE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  CHECK(threads == CPU_COUNT(&allowed));
  if (kib > 0) CHECK(memory_bytes <= kib << 10);
  if (kib > 0 && threads == ::sysconf(_SC_NPROCESSORS_ONLN)) CHECK(memory_bytes == kib << 10);

  const Topology t = TopologyBuilder().add_this_machine().build();
  CHECK(t.nodes == 1);
  CHECK(t.devices.size() == manager.devices().size());
  for (const TopologyNic& nic : t.nics) CHECK(std::filesystem::exists("/sys/class/net/" + nic.name));

  DeviceManager::bind(0);
  CHECK(DeviceManager::current() == 0);
  cpu_set_t bound, both;
  REQUIRE(sched_getaffinity(0, sizeof bound, &bound) == 0);
  CPU_AND(&both, &bound, &allowed);
  CHECK(CPU_COUNT(&bound) == manager.devices().front().threads);
  CHECK(CPU_EQUAL(&both, &bound));
  CHECK(contains(error_of([] { DeviceManager::bind(4096); }), "device is 4096, expected 0 to "));
}

TEST_CASE("a process that may run on one processor has a device of that one, and is bound to no other") {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const int status = gccl::test::Child([&] {  // which asks anew
                       cpu_set_t allowed, one;
                       sched_getaffinity(0, sizeof allowed, &allowed);
                       CPU_ZERO(&one);
                       for (int p = 0; CPU_COUNT(&one) == 0; ++p)
                         if (CPU_ISSET(p, &allowed)) CPU_SET(p, &one);
                       if (sched_setaffinity(0, sizeof one, &one) == 0)
                         ::execl(self.c_str(), self.c_str(), "--test-case=this machine's devices have *", nullptr);
                       return 127;
                     })
                         .wait();
  CHECK(status == 0);
}

TEST_CASE("the C interface refuses what it cannot use, and says why") {
  GCCL_Topology t = nullptr;
  CHECK(GCCL_Topology_load(nullptr, &t) == GCCL_ERR_INVALID_ARGUMENT);
  CHECK(GCCL_Topology_load("x", nullptr) == GCCL_ERR_INVALID_ARGUMENT);
  CHECK(GCCL_Topology_counts(nullptr, nullptr, nullptr, nullptr) == GCCL_ERR_INVALID_ARGUMENT);
  REQUIRE(GCCL_Topology_discover(&t) == GCCL_SUCCESS);
  GCCL_Topology_device d{};
  CHECK(GCCL_Topology_get_device(t, 0, &d) == GCCL_ERR_INVALID_ARGUMENT);
  CHECK(contains(GCCL_Last_error(), "struct_bytes is 0"));
  CHECK(GCCL_Topology_get_device(t, -1, &d) == GCCL_ERR_INVALID_ARGUMENT);
  CHECK(GCCL_Topology_get_device(t, 0, nullptr) == GCCL_ERR_INVALID_ARGUMENT);
  CHECK(GCCL_Topology_free(&t) == GCCL_SUCCESS);
  CHECK(t == nullptr);
  CHECK(GCCL_Device_count(nullptr) == GCCL_ERR_INVALID_ARGUMENT);
}
