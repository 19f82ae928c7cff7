// What the tuner answers by tuning tables, in every version of NCCL's interface, and what it cannot use.
#include <array>
#include <fstream>
#include <thread>

#include "tests/nccl_tuner/tuner.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/project.hpp"
#include "tests/support/shell.hpp"

using namespace tuner_test;
using gccl::test::Folder;
using gccl::test::kRoot;

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
