// NCCL's topology XML as others write it: what clouds ship for NCCL_TOPO_FILE, dumps of NVLink across hosts, RCCL's
// models of machines. What is expected follows NCCL's src/graph/topo.cc and xml.cc (2.32), RCCL's where they differ.
#include <doctest/doctest.h>

#include "gccl/gccl.hpp"
#include "tests/cpp_api/topology_errors.hpp"

using namespace gccl;
using gccl::test::contains;
using gccl::test::error_of;

namespace {

using GroupsOfRanks = std::vector<std::vector<int>>;

Topology described(const std::string& cpus) {
  return TopologyBuilder().add_text("<system version=\"1\">\n" + cpus + "</system>\n", "dump.xml").build();
}

// What is wrong with it, or "".
std::string refusal(const std::string& text) {
  return error_of([&] { TopologyBuilder().add_text(text, "dump.xml").build(); });
}

std::string bare(const std::string& busid, const std::string& pci_class) {
  return "<pci busid=\"" + busid + "\" class=\"" + pci_class + "\" link_speed=\"16 GT/s\" link_width=\"16\"/>";
}
std::string gpu_at(const std::string& busid, int rank, const std::string& links = "") {
  return "<pci busid=\"" + busid + "\" class=\"0x030200\"><gpu dev=\"0\" sm=\"90\" rank=\"" + std::to_string(rank) +
         "\" gdr=\"1\">" + links + "</gpu></pci>\n";
}
std::string port(const std::string& name, const std::string& more) {
  return "<net name=\"" + name + "\" port=\"1\" latency=\"0.0\" maxconn=\"1\" gdr=\"1\" coll=\"1\" " + more + "/>";
}
std::string cpu(int numa, const std::string& inside, const std::string& more = "") {
  return "<cpu numaid=\"" + std::to_string(numa) + "\" " + more + ">\n" + inside + "</cpu>\n";
}

std::vector<int> islands_of(const Topology& t) {
  std::vector<int> islands;
  for (const auto& d : t.devices) islands.push_back(d.island);
  return islands;
}
std::vector<std::string> nics_of(const Topology& t) {
  std::vector<std::string> names;
  for (const auto& d : t.devices) names.push_back(d.nic < 0 ? "none" : t.nics[std::size_t(d.nic)].name);
  return names;
}

}  // namespace

TEST_CASE("of a file that names PCI devices alone the classes say which are GPUs and NICs") {
  // As the files that Azure (NDv2, NDv4, NDv5) and AWS (p4d) have for NCCL_TOPO_FILE.
  const std::string below = bare("0003:00:00.0", "0x030200") + " <!-- GPU 0 -->\n" + bare("0103:00:00.0", "0x020700") +
                            bare("0004:00:00.0", "0x120000") + bare("0005:00:00.0", "0x010802");
  const Topology t =
      described(cpu(0, "<pci busid=\"ffff:ff:01.0\" class=\"0x060400\">" + below + "</pci>") +
                cpu(1, bare("0001:00:00.0", "0x030000") + bare("0101:00:00.0", "0x020000") + "<nic></nic>"));
  REQUIRE(t.devices.size() == 3);
  REQUIRE(t.nics.size() == 2);
  CHECK(nics_of(t) == std::vector<std::string>{"0103:00:00.0", "0103:00:00.0", "0101:00:00.0"});
  CHECK(islands_of(t) == std::vector<int>{0, 1, 2});  // the file says nothing of their links
  CHECK(t.devices[1].name == "0004:00:00.0");
  CHECK(t.devices[1].rank == -1);
  CHECK(t.devices[2].numa == 1);
  CHECK(t.nics[1].index == 1);
  CHECK(t.nics[1].numa == 1);
  CHECK(t.nics[1].bandwidth_GBps == 0);

  // Beside a <gpu> or a <net> they are devices that NCCL has not used.
  const Topology used = described(cpu(0, bare("0:3", "0x030200") + bare("0:4", "0x020000") + gpu_at("0:1", 0) +
                                             "<nic>" + port("mlx5_0", "dev=\"0\"") + "</nic>"));
  CHECK(used.devices.size() == 1);
  CHECK(used.nics.size() == 1);

  // As AWS's file for g5: addresses alone.
  CHECK(contains(
      refusal("<!-- g5 -->\n<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:00:16.0\"/></cpu></system>"),
      "dump.xml:2: no <pci> inside a <cpu> has a <gpu>, a <net>, or the class of a GPU or NIC; the file that "
      "NCCL writes with NCCL_TOPO_DUMP_FILE has them"));
}

TEST_CASE("NVSwitches join the GPUs of all hosts of a file") {
  // As dumps of GB200 and GB300 racks; a GPU whose links are down, as NCCL says it, is alone.
  const std::string on = "<nvlink target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/>",
                    c2c = "<c2c bw=\"44712\" count=\"5\"/>";
  const Topology t = described(cpu(0, gpu_at("0008:06:00.0", 0, on + c2c), "host_hash=\"0xa\"") +
                               cpu(0, gpu_at("0008:06:00.0", 2, on + c2c), "host_hash=\"0xb\"") +
                               cpu(1, gpu_at("0009:06:00.0", 1, on + c2c), "host_hash=\"0xa\"") +
                               cpu(1, gpu_at("0009:06:00.0", 3, c2c), "host_hash=\"0xb\""));
  CHECK(t.nodes == 2);
  CHECK(t.groups(Locality::island) == GroupsOfRanks{{0, 1, 2}, {3}});
  CHECK(t.groups(Locality::node) == GroupsOfRanks{{0, 1}, {2, 3}});
}

TEST_CASE("a link that does not say its end's class ends at a GPU of the file, else at an NVSwitch") {
  const auto to = [](const std::string& target, const std::string& more) {
    return "<nvlink target=\"" + target + "\" count=\"4\" " + more + "/>";
  };
  const std::string accelerator = "<xgmi target=\"0000:0E:00.0\" count=\"1\" tclass=\"0x120000\"/>",
                    nowhere = "<xgmi target=\"0000:ff:00.0\" count=\"1\"/>";
  const Topology t = described(
      cpu(0, gpu_at("0000:0a:00.0", 0, to("00000000:0B:00.0", "")) +  // drivers' way to write an address
                 gpu_at("0000:0b:00.0", 1) + gpu_at("0000:0c:00.0", 2, to("0000:0a:00.0", "tclass=\"0x030000\"")) +
                 gpu_at("0000:0d:00.0", 3, accelerator) + gpu_at("0000:0e:00.0", 4, nowhere) +
                 gpu_at("0000:10:00.0", 5, to("0000:c4:00.0", "")) + gpu_at("0000:11:00.0", 6, to("0000:c5:00.0", "")) +
                 gpu_at("0000:12:00.0", 7, to("0000:c6:00.0", "tclass=\"0x030200\"")) +  // a GPU of no rank
                 gpu_at("0000:13:00.0", 8, to("0000:00:01.0", "tclass=\"0x068001\""))));
  CHECK(t.groups(Locality::island) == GroupsOfRanks{{0, 1, 2}, {3, 4}, {5, 6}, {7}, {8}});
}

TEST_CASE("several <gpu> in one <pci> are devices of one island") {
  // As dumps of VR200 with two partitions of a GPU, and of several ranks on one.
  const Topology t = described(cpu(0,
                                   "<pci busid=\"0002:81:00.0\" class=\"0x030200\">"
                                   "<gpu dev=\"0\" sm=\"107\" mlopart=\"0\" rank=\"0\" gdr=\"1\"/>"
                                   "<gpu dev=\"0\" sm=\"107\" mlopart=\"1\" rank=\"1\" gdr=\"1\"/></pci>" +
                                       gpu_at("0003:81:00.0", 2)));
  REQUIRE(t.devices.size() == 3);
  CHECK(t.groups(Locality::island) == GroupsOfRanks{{0, 1}, {2}});
  CHECK(t.devices[1].name == "0002:81:00.0");
}

TEST_CASE("of ports with one number, of fused ones and of those below several processors each is one NIC") {
  // Virtual interfaces stand below the processor of each rank that has them. The parts of a fused NIC have net="0".
  const std::string shared = "<nic>" + port("veth0", "dev=\"1\" speed=\"10000\"") + "</nic>";
  const std::string fused = "<nic>" + port("mlx5_0", "dev=\"4\" speed=\"200000\" net=\"0\"") +
                            port("mlx5_0+mlx5_1", "dev=\"0\" speed=\"400000\" net=\"1\" gin=\"1\"") +
                            port("eth9", "dev=\"0\" speed=\"-1\"") + port("eth8", "dev=\"2147483647\"") +
                            "<gin name=\"mlx5_0\" dev=\"0\"/></nic>";
  const Topology t = described(cpu(0, gpu_at("0:1", 0) + shared + fused) + cpu(1, gpu_at("0:2", 1) + shared));
  REQUIRE(t.nics.size() == 4);
  const char* const names[] = {"mlx5_0+mlx5_1", "veth0", "eth9", "eth8"};
  const double speeds[] = {50, 1.25, 1.25, 0};
  const int indices[] = {0, 1, 2, 2147483647}, numas[] = {0, -1, 0, 0};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(t.nics[i].name == names[i]);
    CHECK(t.nics[i].index == indices[i]);
    CHECK(t.nics[i].bandwidth_GBps == speeds[i]);
    CHECK(t.nics[i].numa == numas[i]);
  }
  CHECK(nics_of(t) == std::vector<std::string>{"mlx5_0+mlx5_1", "veth0"});
}

TEST_CASE("of equally near NICs GPUs take turns at the fastest, and the nearest one is taken before a faster one") {
  const auto nic = [](const std::string& name, int dev, const std::string& speed) {
    return "<pci busid=\"1:" + std::to_string(dev) + "\" class=\"0x020700\"><nic>" +
           port(name, "dev=\"" + std::to_string(dev) + "\" " + speed) + "</nic></pci>";
  };
  const Topology t =
      described(cpu(0, nic("storage", 0, "speed=\"100000\"") + nic("a", 1, "speed=\"400000\"") + gpu_at("0:1", 0) +
                           gpu_at("0:2", 1) + nic("b", 2, "speed=\"400000\"") + nic("unknown", 3, "") +
                           gpu_at("0:3", 2) + "<pci busid=\"2:0\" class=\"0x060400\">" +
                           nic("own", 4, "speed=\"100000\"") + gpu_at("0:4", 3) + "</pci>") +
                cpu(1, gpu_at("0:5", 4) + gpu_at("0:6", 5)));  // none of its own: all of the host's are equally near
  CHECK(nics_of(t) == std::vector<std::string>{"a", "b", "a", "own", "b", "a"});
  CHECK(t.groups(Locality::rail) == GroupsOfRanks{{0, 2, 5}, {1, 4}, {3}});
}

TEST_CASE("each beginning of a file is refused with its place, and so are two files in one") {
  const std::string whole =
      "<?xml version=\"1.0\"?>\r\n<!DOCTYPE system [<!ENTITY a \"b\">]>\r\n<!-------- a rule --------->\r\n"
      "<system version=\"2\"><cpu numaid=\"0x1\" affinity=\"\xff\">\r\n" +
      gpu_at("0:1", 0) + "</cpu></system>";
  CHECK(refusal("\xef\xbb\xbf" + whole + "\r\n") == "");
  CHECK(TopologyBuilder().add_text(whole, "dump.xml").build().devices.at(0).numa == 1);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    CHECK(contains(refusal(whole.substr(0, bytes)), bytes == 0 ? "dump.xml: is empty" : "dump.xml:"));
  CHECK(contains(refusal("<system><cpu>" + gpu_at("0:1", 0) + "</cpu></system>\n<system/>"),
                 "dump.xml:3: found <system> after </system>"));
  CHECK(contains(refusal("<system><cpu numaid=\"0x-1\">" + gpu_at("0:1", 0) + "</cpu></system>"), "a whole number"));
  // Addresses are compared, not how they are written.
  CHECK(
      contains(refusal("<system><cpu>" + gpu_at("0000:1b:00.0", 0) + gpu_at("00000000:1B:00.0", 1) + "</cpu></system>"),
               "dump.xml:2: a second GPU at busid"));
}
