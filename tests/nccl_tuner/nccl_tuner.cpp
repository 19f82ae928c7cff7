// libnccl-tuner-gccl.so as NCCL uses it: opened by name, found by the symbols of each version of the interface, asked
// with tables of costs. The interface is declared here once more, from NCCL's documentation of it.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "libgccl/cluster/cost_model.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "libgccl/select/plan.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/project.hpp"
#include "tests/support/shell.hpp"

using gccl::test::Folder;
using gccl::test::kRoot;

namespace {

enum { kBroadcast, kReduce, kAllGather, kReduceScatter, kAllReduce, kSendRecv };
enum { kTree, kRing, kCollNetDirect, kCollNetChain, kNvls, kNvlsTree, kPat };
enum { kLL, kLL128, kSimple };

using Logger = void (*)(int, unsigned long, const char*, int, const char*, ...);
using InitOld = int (*)(std::size_t, std::size_t, Logger, void**);
using InitNew = int (*)(void**, std::uint64_t, std::size_t, std::size_t, Logger, void*, void*);
using Get2 = int (*)(void*, int, std::size_t, int, int, int, int*, int*, int*);
using Get3 = int (*)(void*, int, std::size_t, int, float**, int, int, int*);
using Get4 = int (*)(void*, int, std::size_t, int, float**, int, int, int, int*);
using End = int (*)(void*);
struct Tuner2 {
  const char* name;
  InitOld init;
  Get2 get;
  End end;
};
struct Tuner3 {
  const char* name;
  InitOld init;
  Get3 get;
  End end;
};
struct Tuner4 {
  const char* name;
  InitOld init;
  Get4 get;
  End end;
};
struct Tuner5 {
  const char* name;
  InitNew init;
  Get4 get;
  End end;
};
struct Tuner6 : Tuner5 {
  int (*chunk)(void*, int, std::size_t, int, int, int, std::size_t*);
};

// What the plug-in said, warnings apart.
std::mutex log_mutex;
std::vector<std::string> warnings, remarks;
void log(int level, unsigned long, const char*, int, const char* format, ...) {
  char text[2048];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const std::lock_guard lock(log_mutex);
  (level == 2 ? warnings : remarks).push_back(text);
}

template <class T>
const T& tuner(int version) {
  static void* const library = ::dlopen(GCCL_TUNER, RTLD_NOW | RTLD_LOCAL);
  if (!library) FAIL(std::string(::dlerror()));
  const void* const found = ::dlsym(library, ("ncclTunerPlugin_v" + std::to_string(version)).c_str());
  REQUIRE(found);
  const T& t = *static_cast<const T*>(found);
  REQUIRE(std::string(t.name) == "GCCL");
  return t;
}

// One communicator by one version.
struct Comm {
  int version;
  void* context = nullptr;
  Comm(int v, std::size_t ranks, std::size_t nodes, Logger logger = log) : version(v) {
    int result = 0;
    if (v == 2) result = tuner<Tuner2>(2).init(ranks, nodes, logger, &context);
    if (v == 3) result = tuner<Tuner3>(3).init(ranks, nodes, logger, &context);
    if (v == 4) result = tuner<Tuner4>(4).init(ranks, nodes, logger, &context);
    if (v >= 5) {
      int domains[3] = {1, 8, 8};
      double constants[7 * 3 * 4 + 5 * 4 * 3] = {};
      result = tuner<Tuner5>(v).init(&context, 7, ranks, nodes, logger, domains, constants);
    }
    CHECK(result == 0);
  }
  ~Comm() {
    int result = 0;
    if (version == 2) result = tuner<Tuner2>(2).end(context);
    if (version == 3) result = tuner<Tuner3>(3).end(context);
    if (version == 4) result = tuner<Tuner4>(4).end(context);
    if (version >= 5) result = tuner<Tuner5>(version).end(context);
    CHECK(result == 0);
  }
  Comm(const Comm&) = delete;
  int ask(int function, std::size_t bytes, float* costs, int algorithms, int protocols, int* channels) const {
    auto** const table = reinterpret_cast<float**>(costs);
    if (version == 3) return tuner<Tuner3>(3).get(context, function, bytes, 1, table, algorithms, protocols, channels);
    if (version == 4)
      return tuner<Tuner4>(4).get(context, function, bytes, 1, table, algorithms, protocols, 0, channels);
    return tuner<Tuner5>(version).get(context, function, bytes, 1, table, algorithms, protocols, 0, channels);
  }
};

// NCCL's costs, and which of them the plug-in set to 0.
struct Answer {
  std::set<std::pair<int, int>> forced;
  bool others_kept = true;
  int channels = 0;
};
Answer ask(const Comm& comm, int function, std::size_t bytes, int algorithms = 7, int protocols = 3,
           const std::set<std::pair<int, int>>& impossible = {}) {
  std::vector<float> costs(std::size_t(algorithms * protocols) + 8, 1e9F);  // what is behind the table stays, too
  for (int a = 0; a < algorithms; ++a)
    for (int p = 0; p < protocols; ++p)
      costs[std::size_t(a * protocols + p)] = impossible.count({a, p}) ? -1 : float(10 + a - p);
  const std::vector<float> before = costs;
  Answer answer;
  CHECK(comm.ask(function, bytes, costs.data(), algorithms, protocols, &answer.channels) == 0);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (costs[i] == before[i]) continue;
    answer.others_kept = answer.others_kept && costs[i] == 0 && i < std::size_t(algorithms * protocols);
    answer.forced.insert({int(i) / protocols, int(i) % protocols});
  }
  CHECK(answer.others_kept);
  return answer;
}
using Forced = std::set<std::pair<int, int>>;

std::string table(const std::string& entries, const std::string& cluster = "c") {
  return R"({"schema": "gccl/table/1", "name": "t", "machine": {"cluster": ")" + cluster +
         R"(", "nodes": 4, "cards_per_node": 8}, "entries": [)" + entries + "]}";
}
const std::string kEntries = R"(
  {"collective": "allreduce", "to_bytes": 65536, "algorithm": "tree", "protocol": "LL"},
  {"collective": "allreduce", "from_bytes": 65536, "to_bytes": "1MiB", "algorithm": "ring", "protocol": "LL128",
   "chunks": 8, "channels": 8},
  {"collective": "allreduce", "from_bytes": "1MiB", "ranks_max": 16, "algorithm": "nvls", "protocol": "Simple"},
  {"collective": "allreduce", "from_bytes": "1MiB", "ranks_min": 17, "algorithm": "nvls_tree", "protocol": "Simple"},
  {"collective": "allgather", "nodes_min": 2, "algorithm": "pat", "protocol": "Simple"},
  {"collective": "broadcast", "algorithm": "chain", "protocol": "Simple", "chunks": 4, "channels": 4},
  {"collective": "reduce", "algorithm": "chain"})";

void sources(const std::string& tuning_file, const std::string& cluster) {
  ::setenv("GCCL_TUNING_FILE", tuning_file.c_str(), 1);
  ::setenv("GCCL_CLUSTER", cluster.c_str(), 1);
  warnings.clear();
  remarks.clear();
}

}  // namespace

TEST_CASE("every version answers from a table: what it names costs nothing, the rest stays as it is") {
  const Folder folder;
  sources(folder.write("t.json", table(kEntries)).string(), "");
  for (const int version : {3, 4, 5, 6}) {
    CAPTURE(version);
    const Comm comm(version, 16, 2), large(version, 32, 4), one(version, 8, 1), spread(version, 4, 4);
    CHECK(ask(comm, kAllReduce, 8).forced == Forced{{kTree, kLL}});
    CHECK(ask(comm, kAllReduce, 65535).forced == Forced{{kTree, kLL}});
    CHECK(ask(comm, kAllReduce, 65536).forced == Forced{{kRing, kLL128}});
    CHECK(ask(comm, kAllReduce, 65536).channels == 8);
    CHECK(ask(comm, kAllReduce, 8).channels == 0);  // NCCL's own
    CHECK(ask(comm, kAllReduce, 1 << 20).forced == Forced{{kNvls, kSimple}});
    CHECK(ask(large, kAllReduce, ~std::size_t(0)).forced == Forced{{kNvlsTree, kSimple}});
    CHECK(ask(spread, kAllGather, 1000).forced == Forced{{kPat, kSimple}});
    CHECK(ask(comm, kAllGather, 1000).forced.empty());  // PAT is for one rank on each node
    CHECK(ask(one, kAllGather, 1000).forced.empty());
    CHECK(ask(comm, kBroadcast, 1000).forced == Forced{{kRing, kSimple}});
    CHECK(ask(comm, kReduce, 0).forced == Forced{{kRing, kSimple}});  // the protocol that NCCL thinks is cheapest
    CHECK(ask(comm, kReduceScatter, 1000).forced.empty());
  }
  {
    const Comm comm(2, 16, 2);
    const Comm one(2, 8, 1), four(2, 32, 4), spread(2, 4, 4);
    const auto two = [](const Comm& of, int function, std::size_t bytes, int collnet, int nvls) {
      std::array<int, 3> found{-1, -1, 0};
      CHECK(tuner<Tuner2>(2).get(of.context, function, bytes, collnet, nvls, 1, &found[0], &found[1], &found[2]) == 0);
      return found;
    };
    const std::array nothing{-1, -1, 0}, nvls{+kNvls, +kSimple, 0}, nvls_tree{+kNvlsTree, +kSimple, 0};
    CHECK(two(comm, kAllReduce, 8, 0, 1) == std::array{+kTree, +kLL, 0});
    CHECK(two(comm, kBroadcast, 8, 0, 1) == std::array{+kRing, +kSimple, 4});
    CHECK(two(one, kAllReduce, 1 << 20, 0, 1) == nvls);
    CHECK(two(one, kAllReduce, 1 << 20, 0, 0) == nothing);  // this type has no multicast
    // This interface has no costs to say what NCCL rules out: multicast between nodes without CollNet (src/graph/
    // tuning.cc), and LL128 where the cards do not keep 128 bytes together.
    CHECK(two(comm, kAllReduce, 1 << 20, 0, 1) == nothing);
    CHECK(two(comm, kAllReduce, 1 << 20, 1, 1) == nvls);
    CHECK(two(four, kAllReduce, 1 << 20, 0, 1) == nvls_tree);
    CHECK(two(four, kAllReduce, 1 << 20, 1, 0) == nothing);
    CHECK(two(comm, kAllReduce, 65536, 0, 1) == nothing);
    CHECK(two(spread, kAllGather, 8, 1, 1) == nothing);  // version 2 has no PAT
    CHECK(two(comm, kReduce, 8, 1, 1) == nothing);       // both or neither
  }
  CHECK((tuner<Tuner6>(6).chunk == nullptr) == true);
  CHECK(warnings.empty());
  CHECK(!remarks.empty());
}

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

TEST_CASE("channels that a sweep found for its own are not asked of NCCL, those of a table written for it are") {
  const Folder folder;
  const auto channels = [&](const char* name, const std::string& more) {
    const std::string entry =
        R"({"collective": "allreduce", "algorithm": "ring", "protocol": "Simple", "chunks": 8)" + more + "}";
    sources(folder.write(name, table(entry)).string(), "");
    const Comm comm(6, 16, 2);
    CHECK(ask(comm, kAllReduce, 65536).forced == Forced{{kRing, kSimple}});
    return ask(comm, kAllReduce, 65536).channels;
  };
  CHECK(channels("swept.json", R"(, "channels": 4, "predicted_us": 90, "predicted_at_bytes": 65536)") == 0);
  CHECK(channels("written.json", R"(, "channels": 4)") == 4);
  CHECK(channels("one.json", R"(, "channels": 1)") == 1);
  CHECK(channels("chunks.json", "") == 0);  // one channel would be a fraction of NCCL's bandwidth
}

TEST_CASE("what NCCL rules out is left alone, and so are tables of other shapes") {
  const Folder folder;
  sources(folder.write("t.json", table(kEntries)).string(), "");
  const Comm comm(6, 16, 2);
  CHECK(ask(comm, kAllReduce, 8, 7, 3, {{kTree, kLL}}).forced.empty());
  CHECK(ask(comm, kAllReduce, 65536, 7, 3, {{kRing, kLL128}}).channels == 0);
  CHECK(ask(comm, kReduce, 8, 7, 3, {{kRing, kSimple}}).forced == Forced{{kRing, kLL128}});
  CHECK(ask(comm, kReduce, 8, 7, 3, {{kRing, kSimple}, {kRing, kLL128}, {kRing, kLL}}).forced.empty());
  CHECK(ask(comm, kAllReduce, 1 << 20, 4, 3).forced.empty());  // no NVLS there
  CHECK(ask(comm, kAllReduce, 1 << 20, 5, 3).forced == Forced{{kNvls, kSimple}});
  CHECK(ask(comm, kAllReduce, 1 << 20, 9, 2).forced.empty());  // no Simple
  CHECK(ask(comm, kAllReduce, 1 << 20, 9, 5).forced == Forced{{kNvls, kSimple}});
  CHECK(ask(comm, kAllReduce, 8, 1, 1).forced == Forced{{kTree, kLL}});
  CHECK(warnings.empty());
}

TEST_CASE("unknown functions, null pointers and empty tables change nothing and are warned about once") {
  const Folder folder;
  sources(folder.write("t.json", table(kEntries)).string(), "");
  const Comm comm(6, 16, 2), silent(6, 16, 2, nullptr);
  for (int i = 0; i < 3; ++i)
    for (const int function : {int(kSendRecv), 8, 99, -1}) CHECK(ask(comm, function, 8).forced.empty());
  CHECK(warnings.size() == 4);
  CHECK(warnings[0].find("NCCL asks about its function 5") != std::string::npos);
  for (int i = 0; i < 3; ++i) {
    int channels = 0;
    float cost = 3;
    CHECK(comm.ask(kAllReduce, 8, nullptr, 7, 3, &channels) == 0);
    CHECK(comm.ask(kAllReduce, 8, &cost, 0, 3, &channels) == 0);
    CHECK(comm.ask(kAllReduce, 8, &cost, 7, -3, &channels) == 0);
    CHECK(cost == 3);
    CHECK(channels == 0);
    CHECK(comm.ask(kAllReduce, 8, &cost, 1, 1, nullptr) == 0);
    CHECK(cost == 0);
    CHECK(silent.ask(98, 8, &cost, 1, 1, nullptr) == 0);
  }
  CHECK(warnings.size() == 5);
  CHECK(tuner<Tuner6>(6).get(nullptr, kAllReduce, 8, 1, nullptr, 7, 3, 0, nullptr) == 0);
  CHECK(tuner<Tuner6>(6).init(nullptr, 1, 2, 1, log, nullptr, nullptr) == 0);
  CHECK(tuner<Tuner2>(2).get(comm.context, kAllReduce, 8, 0, 0, 1, nullptr, nullptr, nullptr) == 0);
}

TEST_CASE("what cannot be used is warned about once, and NCCL starts and chooses by itself") {
  const Folder folder;
  const std::string gone = (folder.path / "gone.json").string();
  const struct {
    std::string tuning_file, cluster;
    std::size_t ranks, nodes;
    const char* warning;
  } kCases[] = {
      {"", "", 16, 2, "neither GCCL_TUNING_FILE, a tuning table, nor GCCL_CLUSTER"},
      {gone, "", 16, 2, "gone.json: no such file"},
      {"", gone, 16, 2, "GCCL_CLUSTER: there is no file"},
      {folder.path.string(), "", 16, 2, "is a folder, expected a file"},
      {folder.write("broken.json", "{").string(), "", 16, 2, "broken.json: not valid JSON at line 1"},
      {folder.write("kind.json", R"({"schema": "gccl/scenario/1"})").string(), "", 16, 2, "gccl/table/1"},
      {folder.write("name.json", table(R"({"collective": "allreduce", "algorithm": "rink"})")).string(), "", 16, 2,
       R"(/entries/0/algorithm: found "rink")"},
      {folder.write("protocol.json", table(R"({"collective": "allreduce", "algorithm": "ring", "protocol": "ll"})"))
           .string(),
       "", 16, 2, R"(/entries/0/protocol: found "ll"; did you mean "LL"?)"},
      {folder.write("small.json", table(kEntries)).string(), "", 40, 5, "found 4, but this job has 5"},
      {folder.write("thin.json", table(kEntries)).string(), "", 36, 4, "found 8, but a node of this job has 9 ranks"},
      {folder.write("pair.json", table(R"({"collective": "allgather", "algorithm": "pat", "protocol": "LL"})"))
           .string(),
       "", 4, 4, "/entries/0: NCCL has no pat by LL for allgather"},
      {folder.write("ours.json", table(R"({"collective": "allreduce", "algorithm": "swing"})")).string(), "", 16, 2,
       "/entries/0: NCCL has no swing for allreduce"},
      {"", (kRoot / "topologies/dgx-h100-superpod-2048.json").string(), 4096, 512, "it is another machine"},
      {"", (kRoot / "topologies/dgx-h100-superpod-2048.json").string(), 32, 2, "it is another machine"},
      {folder.write("other.json", table(kEntries)).string(),
       (kRoot / "topologies/dgx-h100-superpod-2048.json").string(), 16, 2, R"(the table is for "c", this is "dgx)"},
      {folder
           .write("between.json",
                  table(R"({"collective": "allreduce", "algorithm": "ring", "protocol": "LL128"})", "polaris"))
           .string(),
       (kRoot / "topologies/polaris.json").string(), 16, 4,
       R"(found "LL128", which is for calls inside one node here)"},
      {gone, "", 0, 0, "a communicator of 0 ranks on 0 nodes"},
      {gone, "", 2, 3, "a communicator of 2 ranks on 3 nodes"},
      {gone, "", ~std::size_t(0), 1, "ranks on 1 nodes: expected 1 to"},
  };
  for (const auto& c : kCases) {
    CAPTURE(c.warning);
    sources(c.tuning_file, c.cluster);
    for (const int version : {2, 3, 4, 5, 6}) {
      const Comm comm(version, c.ranks, c.nodes);
      if (version > 2 && c.cluster.empty()) CHECK(ask(comm, kAllReduce, 8).forced.empty());
    }
    // The same words for the same cause in an earlier case of this process are not repeated.
    REQUIRE(warnings.size() == 1);
    CHECK_MESSAGE(warnings[0].find(c.warning) != std::string::npos, warnings[0]);
    const Comm silent(6, c.ranks, c.nodes, nullptr);
  }
}

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

TEST_CASE("communicators of different shapes answer at the same time, each for itself") {
  const Folder folder;
  sources(folder.write("t.json", table(kEntries)).string(), "");
  std::vector<std::thread> threads;
  std::array<int, 4> wrong{};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t, &wrong] {
      for (int round = 0; round < 20; ++round) {
        void* context = nullptr;
        const Tuner6& plugin = tuner<Tuner6>(6);
        const std::size_t ranks = t % 2 ? 32 : 16;
        wrong[std::size_t(t)] += plugin.init(&context, 1, ranks, ranks / 8, log, nullptr, nullptr) != 0;
        for (int i = 0; i < 200; ++i) {
          float costs[7][3];
          for (auto& row : costs)
            for (float& cost : row) cost = 5;
          int channels = 0;
          plugin.get(context, kAllReduce, 2 << 20, 1, reinterpret_cast<float**>(costs), 7, 3, 0, &channels);
          wrong[std::size_t(t)] += costs[t % 2 ? kNvlsTree : kNvls][kSimple] != 0;
          wrong[std::size_t(t)] += costs[t % 2 ? kNvls : kNvlsTree][kSimple] != 5;
        }
        plugin.end(context);
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == std::array<int, 4>{});
}

TEST_CASE("the plug-in exports NCCL's five symbols and nothing else") {
  const Folder folder;
  CHECK(gccl::test::shell("nm -D --defined-only '" GCCL_TUNER "' >symbols", folder.path) == 0);
  std::set<std::string> names;
  std::ifstream symbols(folder.path / "symbols");
  for (std::string line; std::getline(symbols, line);) names.insert(line.substr(line.rfind(' ') + 1, 18));
  CHECK(names == std::set<std::string>{"ncclTunerPlugin_v2", "ncclTunerPlugin_v3", "ncclTunerPlugin_v4",
                                       "ncclTunerPlugin_v5", "ncclTunerPlugin_v6"});
}
