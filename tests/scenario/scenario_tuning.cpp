// What decides for "auto" before GCCL's planner: what the environment of real ranks says decides in scenarios, too.
#include <doctest/doctest.h>

#include "tests/support/scenario.hpp"

using namespace gccl;
using namespace gccl::test;

namespace {

Authorities table_of(std::vector<TuningTable::Entry> entries, const TuningTable::Machine& machine) {
  Authorities a;
  a.table = std::make_shared<const TuningTable>(
      TuningTable{.file = "t.json", .name = "t", .machine = machine, .entries = std::move(entries)});
  return a;
}

const Algorithm* row_of(std::string_view name) { return find_algorithm(Collective::allreduce, name); }

std::vector<Json> rows(const Json& runs, const Authorities& authorities, const char* cluster = "pcie-box") {
  Json document = whole(runs);
  document["cluster"] = std::string("../topologies/") + cluster + ".json";
  document["ranks"] = 8;
  return sim::row_heads(
      sim::make_campaign(scenario_of(document), {.engine = {}, .seed = {}, .authorities = authorities}));
}

const TuningTable::Machine kBox{.cluster = "pcie-box", .nodes = 1, .cards_per_node = 8};

std::string refused(const Authorities& a, const char* cluster = "pcie-box") {
  try {
    rows({{{"collective", "allreduce"}, {"bytes", 64}, {"algorithms", "auto"}}}, a, cluster);
    return "accepted";
  } catch (const json::InputError& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("a table decides for auto how a call is carried out, and the row says so") {
  const Json run = {{"collective", "allreduce"}, {"bytes", {1024, 65536}}, {"algorithms", "auto"}};
  const Authorities a = table_of(
      {{.from_bytes = 65536, .algorithm = row_of("binomial_tree"), .chunks = 6, .channels = 3, .window = 5}}, kBox);
  const std::vector<Json> free = rows(Json::array({run}), {}), tuned = rows(Json::array({run}), a);
  REQUIRE(tuned.size() == 2);
  CHECK(tuned[0] == free[0]);
  CHECK(!tuned[0].contains("decided_by"));
  CHECK(tuned[1]["algorithm"] == "binomial_tree");
  CHECK(tuned[1]["chunks"] == 6);
  CHECK(tuned[1]["channels"] == 3);
  CHECK(tuned[1]["window"] == 5);
  CHECK(tuned[1]["decided_by"] == "GCCL_TUNING_FILE");
  CHECK(tuned[1]["auto"] == true);
  // What the run names goes before it. Where it says how calls are cut up, an entry for those cut otherwise says
  // nothing.
  Json named = run;
  named["algorithms"] = "ring";
  CHECK(rows(Json::array({named}), a) == rows(Json::array({named}), {}));
  Json cut = run;
  cut["chunks"] = 6;
  CHECK(rows(Json::array({cut}), a) == rows(Json::array({cut}), {}));
  cut["channels"] = 3;
  CHECK(rows(Json::array({cut}), a)[1]["algorithm"] == "binomial_tree");
  CHECK(rows(Json::array({cut}), a)[1]["decided_by"] == "GCCL_TUNING_FILE");
  const Authorities any = table_of({{.algorithm = row_of("binomial_tree")}}, kBox);
  cut["chunks"] = 3;
  CHECK(rows(Json::array({cut}), any)[1]["algorithm"] == "binomial_tree");
  CHECK(rows(Json::array({cut}), any)[1]["chunks"] == 3);
}

TEST_CASE("GCCL_ALGORITHM and GCCL_ALGO decide for auto") {
  const Json run = {{"collective", "allreduce"}, {"bytes", 65536}, {"algorithms", "auto"}};
  Authorities a;
  REQUIRE(Overrides::parse("allreduce=swing", &a.named).ok());
  CHECK(rows(Json::array({run}), a)[0]["algorithm"] == "swing");
  CHECK(rows(Json::array({run}), a)[0]["decided_by"] == "GCCL_ALGORITHM");
  a = {};
  REQUIRE(AlgorithmLists::parse("allreduce:binomial_tree", &a.lists).ok());
  CHECK(rows(Json::array({run}), a)[0]["algorithm"] == "binomial_tree");
  CHECK(rows(Json::array({run}), a)[0]["decided_by"] == "GCCL_ALGO");
  const Json sequence = {{"sequence",
                          {{{"collective", "allreduce"}, {"bytes", 65536}, {"algorithm", "auto"}},
                           {{"collective", "barrier"}, {"algorithm", "auto"}}}}};
  CHECK(rows(Json::array({sequence}), a).size() == 1);
}

TEST_CASE("a cluster that simulates GCCL's ranks obeys a table as they do: at most four channels") {
  const Json run = {{"collective", "allreduce"}, {"bytes", 65536}, {"algorithms", "auto"}};
  const std::vector<Json> all =
      rows(Json::array({run}),
           table_of({{.algorithm = row_of("ring"), .chunks = 16, .channels = 16}},
                    {.cluster = "host", .nodes = 1, .cards_per_node = 32, .backends = "shm,tcp"}),
           "host");
  CHECK(all[0]["channels"] == 4);
  CHECK(all[0]["chunks"] == 16);
}

TEST_CASE("a table of another machine, or of protocols that a cluster does not have, is wrong input") {
  TuningTable::Machine other = kBox;
  other.cluster = "elsewhere";
  CHECK(refused(table_of({{.algorithm = row_of("ring")}}, other)) ==
        "GCCL_TUNING_FILE: t.json: /machine/cluster: the table is for \"elsewhere\", this is \"pcie-box\"");
  other = kBox;
  other.cards_per_node = 4;
  CHECK(refused(table_of({{.algorithm = row_of("ring")}}, other)).find("/machine/cards_per_node: found 4") !=
        std::string::npos);
  CHECK(refused(table_of({{.algorithm = row_of("ring"), .protocol = "LLL"}}, kBox)).find("/entries/0/protocol") !=
        std::string::npos);
}

TEST_CASE("a table's algorithm that leaves summing to switches takes no protocol by which they do not sum") {
  const auto found = [](const char* cluster, const char* algorithm, const char* protocol) {
    return refused(table_of({{.algorithm = row_of(algorithm), .protocol = protocol}},
                            {.cluster = cluster, .nodes = 512, .cards_per_node = 8}),
                   cluster);
  };
  CHECK(found("dgx-h100-superpod-2048", "ring", "LL") == "accepted");
  CHECK(found("dgx-h100-superpod-2048", "nvls", "Simple") == "accepted");
  CHECK(found("dgx-a100-superpod", "nvls", "LL") == "accepted");  // no such switches: plain steps
  CHECK(
      found("dgx-h100-superpod-2048", "nvls", "LL") ==
      "GCCL_TUNING_FILE: t.json: /entries/0/protocol: found \"LL\", by which switches do not sum (its \"in_switch\" is "
      "false), for nvls, which leaves summing to them; expected another one");
}

TEST_CASE("a table's protocol of calls inside one node is for entries of one node") {
  const auto found = [](Rank nodes_max) {
    return refused(table_of({{.nodes_max = nodes_max, .algorithm = row_of("ring"), .protocol = "LL128"}},
                            {.cluster = "polaris", .nodes = 560, .cards_per_node = 4}),
                   "polaris");
  };
  CHECK(found(1) == "accepted");
  CHECK(found(2) ==
        "GCCL_TUNING_FILE: t.json: /entries/0/protocol: found \"LL128\", which is for calls inside one node here (its "
        "\"network\" is false); expected another one, or \"nodes_max\": 1");
}
