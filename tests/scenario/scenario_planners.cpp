// "auto" as GCCL, NCCL or Open MPI would choose.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "sim/report/findings.hpp"
#include "sim/scenario/plan/point_key.hpp"
#include "sim/scenario/run_campaign.hpp"
#include "tests/support/scenario.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

const Json kH100 = {{"cluster", "../topologies/dgx-h100-superpod-2048.json"}, {"ranks", 16}};

Json allreduce(const Json& more) {
  Json run = {{"collective", "allreduce"}, {"bytes", {1024, "512KiB", "1GiB"}}};
  run.update(more);
  return Json::array({run});
}
std::vector<std::string> of_rows(const Campaign& plan, const char* key) {
  std::vector<std::string> all;
  for (const Json& head : row_heads(plan)) all.push_back(head.value(key, ""));
  return all;
}

}  // namespace

TEST_CASE("\"auto\" with stated chunks is the fastest of all algorithms with these chunks") {
  // The second one's transport has preferences, which were measured with chunks of its own.
  const Json switched = {{"cluster", "../topologies/marenostrum5-acc.json"}, {"ranks", 16}},
             processes = {{"cluster", "../topologies/host.json"}, {"ranks", 8}};
  for (const Json& cluster : {switched, processes})
    for (const char* const collective : {"broadcast", "allreduce", "allgather"})
      for (const Json& slicing : Json::array({{{"chunks", 1}}, {{"chunks", 8}, {"channels", 2}}})) {
        Json run = {{"collective", collective}, {"bytes", {1024, "1MiB", "64MiB"}}, {"algorithms", {"all", "auto"}}};
        const Campaign plan = plan_of(with(run, slicing), cluster);
        std::map<Count, double> fastest_us;
        for (const Point& p : plan.points) {
          const auto at = fastest_us.try_emplace(p.asked[0], *p.predicted_us).first;
          at->second = std::min(at->second, *p.predicted_us);
        }
        for (const Point& p : plan.points) {
          CAPTURE(p.part().algorithm());
          CAPTURE(p.asked[0]);
          if (p.automatic) CHECK(*p.predicted_us == doctest::Approx(fastest_us.at(p.asked[0])));
        }
        CHECK(std::ranges::count_if(plan.points, &Point::automatic) == 3);
      }
}

TEST_CASE("with the planner nccl \"auto\" is what NCCL would choose, and the row says what that was") {
  const Campaign plan = plan_of(allreduce({{"planner", "nccl"}}), kH100);
  CHECK(of_rows(plan, "planner") == std::vector<std::string>(3, "nccl"));
  CHECK(of_rows(plan, "planner_choice") == std::vector<std::string>{"tree, LL", "tree, LL128", "nvls_tree, Simple"});
  const auto rows = of_rows(plan, "algorithm");
  CHECK(rows[0] == "tree");
  CHECK(rows[1] == "tree");
  const bool multicast = find_algorithm(Collective::allreduce, "nvls_tree") != nullptr;
  CHECK((rows[2] == "ring" || multicast));
  CHECK(of_rows(plan, "planner_note")[0].empty());
  CHECK(of_rows(plan, "planner_note")[2].empty() == multicast);
}

TEST_CASE("with the planner openmpi calls are those of its fixed rules, in one chunk") {
  const Campaign plan = plan_of(allreduce({{"planner", "openmpi"}, {"bytes", {32, 16384, 1 << 20}}}), kH100);
  CHECK(of_rows(plan, "planner_choice") == std::vector<std::string>{"segmented_ring", "rabenseifner", "rabenseifner"});
  for (const Json& head : row_heads(plan)) {
    CHECK(head["chunks"] == 1);
    CHECK(head["channels"] == 1);
    CHECK(head["auto"] == true);
  }
}

TEST_CASE("other rows than the planner's say nothing of it, and a run without one is GCCL's") {
  const Campaign plan =
      plan_of(allreduce({{"planner", "nccl"}, {"algorithms", {"swing", "auto"}}, {"bytes", 64}}), kH100);
  CHECK(of_rows(plan, "planner") == std::vector<std::string>{"", "nccl"});
  CHECK(of_rows(plan_of(allreduce(Json::object()), kH100), "planner") == std::vector<std::string>(3, ""));
  CHECK(of_rows(plan_of(allreduce({{"planner", "gccl"}}), kH100), "planner") == std::vector<std::string>(3, ""));
}

TEST_CASE("where the cluster has NCCL's protocols the plan has the one that NCCL chose") {
  const Folder folder;
  const Json protocols = {
      {"LL", {{"operation_ns", 100000}}}, {"LL128", {{"operation_ns", 50000}}}, {"Simple", Json::object()}};
  const Json cluster = {
      {"schema", "gccl/cluster/1"},
      {"name", "protocols"},
      {"parameters", {{"base", (kRoot / "cost-models/nvidia-h100.json").string()}, {"protocols", protocols}}},
      {"nodes",
       {{{"count", 2},
         {"cards", 8},
         {"inside", {{"kind", "switch"}, {"link", "nvlink"}}},
         {"nics", {{"count", 8}, {"bus", "nic_bus"}, {"port", "nic"}}}}}},
      {"fabric", {{"kind", "switch"}}}};
  const std::string file = folder.write("c.json", cluster.dump()).string();
  const auto protocols_of = [&](const char* planner) {
    return of_rows(plan_of(allreduce({{"planner", planner}}), {{"cluster", file}}), "protocol");
  };
  CHECK(protocols_of("nccl") == std::vector<std::string>{"LL", "LL128", "Simple"});
  CHECK(protocols_of("gccl") == std::vector<std::string>(3, "Simple"));  // the others start later
  CHECK(of_rows(plan_of(allreduce({{"planner", "nccl"}, {"protocol", "Simple"}}), {{"cluster", file}}), "protocol") ==
        std::vector<std::string>(3, "Simple"));
}

TEST_CASE("a collective without rules is planned by GCCL, and the row says so") {
  const Json barrier = {{"collective", "barrier"}, {"planner", "nccl"}};
  const Campaign plan = plan_of(Json::array({barrier}), kH100);
  CHECK(of_rows(plan, "planner_choice")[0].empty());
  CHECK(of_rows(plan, "planner_note")[0] == "NCCL has no algorithms to choose from here: planned by GCCL");
}

TEST_CASE("tasks of a sequence have planners of their own") {
  const Json runs = {{{"sequence",
                       {{{"collective", "allreduce"}, {"bytes", 1024}, {"planner", "nccl"}},
                        {{"collective", "allreduce"}, {"bytes", 1024}}}}}};
  const Campaign plan = plan_of(runs, kH100);
  REQUIRE(plan.points.size() == 1);
  REQUIRE(plan.points[0].streams[0].size() == 2);
  CHECK(plan.points[0].streams[0][0].others.at(0).theirs == "tree, LL");
  CHECK(plan.points[0].streams[0][1].others.empty());
}

TEST_CASE("a planner given to the run replaces the scenario's, and makes other points of a journal") {
  Json document = whole(allreduce({{"algorithms", "auto"}}));
  document.update(kH100);
  const Campaign own = make_campaign(scenario_of(document), {}),
                 nccl = make_campaign(scenario_of(document), {.engine = {}, .seed = {}, .planner = PlannerKind::nccl});
  CHECK(of_rows(nccl, "planner") == std::vector<std::string>(3, "nccl"));
  CHECK(point_keys(own)[0] != point_keys(nccl)[0]);
  CHECK(point_keys(own) == point_keys(make_campaign(scenario_of(document), {})));
}

TEST_CASE("a planner that does not exist, or knows nothing of the cluster, is wrong input") {
  CHECK(refusal(allreduce({{"planner", "ncl"}}), kH100)
            .ends_with("/runs/0/planner: found \"ncl\"; did you mean \"nccl\"?"));
  CHECK(
      refusal(allreduce({{"planner", "nccl"}}), {{"cluster", "../topologies/tpu-v4-4096.json"}, {"ranks", 16}})
          .ends_with("/runs/0: planner \"nccl\": the parameters of tpu-v4-4096 have no \"nccl\" object that says which "
                     "architecture its cards are of"));
}

TEST_CASE("the report says what the other library would choose, up to which size, and what stands for it") {
  Json rows = Json::array();
  const auto add = [&](std::uint64_t bytes, const char* algorithm, const char* choice, const char* note) {
    rows.push_back({{"cluster", "c"},
                    {"collective", "allreduce"},
                    {"algorithm", algorithm},
                    {"engine", "model"},
                    {"ranks", 16},
                    {"bytes", bytes},
                    {"time_us", 10},
                    {"auto", true},
                    {"planner", "nccl"},
                    {"planner_choice", choice}});
    if (*note) rows.back()["planner_note"] = note;
  };
  add(1024, "tree", "tree, LL", "");
  add(65536, "tree", "tree, LL", "");
  add(1 << 30, "ring", "nvls_tree, Simple", "no such row");
  const Json all = findings({{"runs", rows}});
  REQUIRE(all.size() == 1);
  CHECK(all[0]["notes"][0] ==
        "planned as nccl would: tree, LL to 64 KiB; nvls_tree, Simple to the largest size; nvls_tree, Simple is "
        "simulated as ring (no such row).");
}
