// What the tuner answers by the planner, where it has a cluster's description.
#include <string_view>

#include "libgccl/cluster/cost_model.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "libgccl/select/plan.hpp"
#include "tests/nccl_tuner/tuner.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/project.hpp"

using namespace tuner_test;
using gccl::test::Folder;
using gccl::test::kRoot;

namespace {

// How often a communicator's all-reduces of 64 B to 8 GiB are forced to be as gccl::plan has them on these cards, with
// NCCL's algorithms alone, and how many there are.
std::pair<int, int> as_planned(const Comm& comm, const gccl::Cluster& cluster, const std::vector<gccl::Card>& cards) {
  const gccl::Layout layout = gccl::layout_of(cluster, cards);
  std::vector<gccl::CostModel> models;
  for (const gccl::Protocol& p : cluster.protocols()) models.push_back(gccl::cost_model(cluster, cards, 4, p));
  gccl::Tuning tuning;
  tuning.search = true;
  tuning.channels_max = 32;
  std::vector<gccl::Algorithm> rows;
  for (const std::string_view name : {"ring", "tree", "nvls", "nvls_tree"})
    if (layout.view(0).nodes > 1 || name != "nvls_tree")  // which NCCL has across nodes only
      rows.push_back(*gccl::find_algorithm(gccl::Collective::allreduce, name));
  int same = 0, all = 0;
  for (std::size_t bytes = 64; bytes < std::size_t(1) << 33; bytes = bytes * 5 / 3 & ~std::size_t(3), ++all) {
    const gccl::Plan p =
        gccl::plan({.kind = gccl::Collective::allreduce, .count = bytes / 4}, layout.view(0), models, tuning, {}, rows);
    const auto& name = p.algorithm->name;
    const int algorithm = name == "ring" ? kRing : name == "tree" ? kTree : name == "nvls" ? kNvls : kNvlsTree;
    const auto& protocol = cluster.protocols()[p.protocol].name;
    same += ask(comm, kAllReduce, bytes).forced == Forced{{algorithm, protocol == "LL"      ? kLL
                                                                      : protocol == "LL128" ? kLL128
                                                                                            : kSimple}};
  }
  CHECK(all > 30);
  return {same, all};
}

}  // namespace

TEST_CASE("where a table names what NCCL lacks, the planner of a cluster beside it answers") {
  const Folder folder;
  std::string foreign = table(R"({"collective": "allreduce", "algorithm": "swing", "to_bytes": 65536})");
  foreign.replace(foreign.find(R"("c")"), 3, R"("dgx-h100-superpod-2048")");
  const std::string file = folder.write("t.json", foreign).string(),
                    cluster = (kRoot / "topologies/dgx-h100-superpod-2048.json").string();
  sources("", cluster);
  const Comm planned(6, 16, 2);
  sources(file, cluster);
  const Comm both(6, 16, 2);
  sources(file, "");
  const Comm alone(6, 16, 2);
  folder.write("t.json", "no table");  // what has been found out for a shape of communicators is not looked for again
  sources(file, cluster);
  const Comm later(6, 16, 2);
  CHECK(warnings.empty());
  for (const std::size_t bytes : {8u, 4096u, 1u << 20}) {
    CAPTURE(bytes);
    CHECK(ask(later, kAllReduce, bytes).forced == ask(both, kAllReduce, bytes).forced);
    CHECK(!ask(planned, kAllReduce, bytes).forced.empty());
    CHECK(ask(both, kAllReduce, bytes).forced == ask(planned, kAllReduce, bytes).forced);
    CHECK(ask(alone, kAllReduce, bytes).forced.empty());
  }
}

TEST_CASE("where nodes have different numbers of cards the ranks are on the first nodes' cards") {
  const Folder folder;
  const auto node = [](int cards) {
    return R"({"count": 1, "inside": {"kind": "switch", "link": "nvlink"}, "nics": {"count": 1, "bus": "nic_bus",
               "port": "nic"}, "cards": )" +
           std::to_string(cards) + "}";
  };
  const std::string uneven =
      folder
          .write("uneven.json", R"({"schema": "gccl/cluster/1", "name": "uneven", "parameters": ")" +
                                    (kRoot / "cost-models/nvidia-h100.json").string() + R"(", "nodes": [)" + node(1) +
                                    "," + node(8) + "," + node(2) + R"(],
                 "fabric": {"kind": "fat_tree", "levels": 2, "leaf_size": 32, "oversubscription": 1, "link": "trunk"}})")
          .string();
  const std::string mixed = (kRoot / "topologies/mixed.json").string();
  const auto agrees = [](const std::string& file, std::size_t ranks, std::size_t nodes,
                         const std::vector<gccl::Card>& cards) {
    CAPTURE(ranks);
    CAPTURE(nodes);
    REQUIRE(cards.size() == ranks);
    sources("", file);
    const Comm comm(6, ranks, nodes);
    const auto found = as_planned(comm, *gccl::load_cluster(file), cards);
    CHECK(found.first >= found.second - 2);  // sizes where the choice changes are found to 2 %
    CHECK(warnings.empty());
  };
  const auto first = [](gccl::Card n) {
    std::vector<gccl::Card> cards(n);
    for (gccl::Card c = 0; c < n; ++c) cards[c] = c;
    return cards;
  };
  agrees(mixed, 288, 40, first(288));
  agrees(mixed, 260, 33, first(260));  // the last of them is of 4 cards
  agrees(uneven, 11, 3, first(11));
  agrees(uneven, 8, 3, {0, 1, 2, 3, 4, 5, 9, 10});
  agrees(uneven, 7, 2, first(7));

  // What it has not is another machine's, and no planner stands in for a table there.
  sources(folder.write("t.json", table(R"({"collective": "allreduce", "algorithm": "swing"})")).string(), uneven);
  const Comm comm(6, 12, 3);
  REQUIRE(warnings.size() == 2);
  CHECK(warnings[0] ==
        "GCCL tuner: GCCL_CLUSTER: uneven has 11 cards on its first 3 nodes, expected 12 on 3: it is "
        "another machine");
  CHECK(warnings[1].find("it chooses by itself there") != std::string::npos);
  CHECK(ask(comm, kAllReduce, 8).forced.empty());
}

TEST_CASE("with a cluster's description the planner answers as it plans, for each shape of communicator") {
  const std::string file = (kRoot / "topologies/dgx-h100-superpod-2048.json").string();
  sources("", file);
  const auto cluster = gccl::load_cluster(file);
  for (const auto& [ranks, nodes] : {std::pair{8u, 1u}, std::pair{64u, 8u}, std::pair{16u, 16u}, std::pair{20u, 3u}}) {
    const unsigned size = ranks;  // clang 14 captures no parts of a pair
    CAPTURE(size);
    const Comm comm(6, ranks, nodes);
    std::vector<gccl::Card> cards;  // 20 ranks on 3 nodes: 7, 7 and 6
    for (unsigned n = 0; n < nodes; ++n)
      for (unsigned c = 0; c < ranks / nodes + (n < ranks % nodes); ++c) cards.push_back(8 * n + c);
    const auto found = as_planned(comm, *cluster, cards);
    CHECK(found.first >= found.second - 2);  // sizes where the choice changes are found to 2 %
    CHECK(ask(comm, kAllReduce, 8).channels == 0);
    for (const int function : {kBroadcast, kReduce, kReduceScatter, kAllGather})
      CHECK(ask(comm, function, 4096).forced.size() == 1);
    if (ranks != nodes)  // PAT is only for one rank on each node
      for (const int function : {kReduceScatter, kAllGather})
        for (std::size_t bytes = 8; bytes < std::size_t(1) << 33; bytes *= 4)
          for (const auto& [algorithm, protocol] : ask(comm, function, bytes).forced) CHECK(algorithm != kPat);
  }
  CHECK(warnings.empty());
}

TEST_CASE("a table goes before the planner, which answers the rest, and shipped clusters have names") {
  const Folder folder;
  const std::string entries =
      R"({"collective": "allreduce", "to_bytes": 64, "algorithm": "ring", "protocol": "Simple"})";
  std::string text = table(entries);
  text.replace(text.find("\"c\""), 3, "\"dgx-h100-superpod-2048\"");
  sources(folder.write("t.json", text).string(), "dgx-h100-superpod-2048");
  const Comm comm(6, 16, 2);
  CHECK(ask(comm, kAllReduce, 63).forced == Forced{{kRing, kSimple}});
  CHECK(ask(comm, kAllReduce, 64).forced.size() == 1);
  CHECK(ask(comm, kAllReduce, 64).forced != Forced{{kRing, kSimple}});
  CHECK(warnings.empty());
}
