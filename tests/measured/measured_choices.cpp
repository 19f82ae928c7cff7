// "choices" of a parameter set: what stands for a library's own choice in measured rows.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/measured/table_text.hpp"
#include "tests/support/program.hpp"

using namespace gccl::test;
using Json = nlohmann::json;

namespace {

// Three nodes of two cards; two protocols, of which one costs next to nothing, so that the planner takes it.
Json cluster() {
  return Json::parse(R"({"schema":"gccl/cluster/1","name":"chosen","parameters":{
    "card":{"overhead_ns":100,"combine_GBps":0,"copy_GBps":0},"eager_bytes":"64KiB",
    "links":{"wire":{"bandwidth_GBps":50,"latency_ns":100},"cable":{"bandwidth_GBps":50,"latency_ns":500}},
    "protocols":{"quick":{"operation_ns":1},"slow":{"operation_ns":90000}},
    "choices":[
      {"collective":"allreduce","nodes_min":2,"nodes_max":2,"bytes_max":"64KiB","algorithm":"tree","protocol":"slow"},
      {"collective":"allreduce","nodes_min":2,"algorithm":"ring","protocol":"slow","source":"s"},
      {"collective":"allgather","algorithm":"ring"}]},
    "nodes":[{"count":3,"cards":2,"inside":{"kind":"full_mesh","link":"wire"},
      "nics":{"count":2,"bus":"wire","port":"cable"}}],"fabric":{"kind":"switch"}})");
}

struct Said {
  std::string algorithm, protocol, planner;
  bool operator==(const Said&) const = default;
};
std::ostream& operator<<(std::ostream& o, const Said& s) {
  return o << s.algorithm << "," << s.protocol << "," << s.planner;
}

Said said(const std::string& row, const std::vector<std::string>& more = {}, const Json& on = cluster()) {
  const Folder folder;
  folder.write("c.json", on.dump());
  folder.write("m.csv", kColumns + row + ",50,,,src,\n");
  std::vector<std::string> args{"validate", "m.csv", "--cluster", "c.json", "--json", "-"};
  args.insert(args.end(), more.begin(), more.end());
  const Ended e = run_gccl(args, folder.path);
  CAPTURE(e.err);
  REQUIRE(e.code == 0);
  const Json point = Json::parse(e.out)["rows"][0];
  return {point["predicted_algorithm"], point["predicted_protocol"], point["planner"]};
}

}  // namespace

TEST_CASE("the first choice that is for a call stands for the library's, of rows that leave it to the library") {
  CHECK(said("s,2,2,all_reduce,NCCL default (auto),auto,65536") == Said{"tree", "slow", "library"});
  CHECK(said("s,2,2,all_reduce,RCCL default (auto),auto,65537") == Said{"ring", "slow", "library"});
  CHECK(said("s,3,2,all_reduce,default,auto,1024") == Said{"ring", "slow", "library"});
  CHECK(said("s,1,2,all_gather,NCCL default (auto),auto,1024") == Said{"ring", "quick", "library"});
  CHECK(said("s,1,2,all_reduce,NCCL default (auto),auto,1024").planner == "gccl");
  CHECK(said("s,1,2,alltoall,NCCL default (auto),auto,1024").planner == "gccl");
  // What a row states counts more.
  CHECK(said("s,2,2,all_reduce,NCCL default (auto),quick,1024") == Said{"tree", "quick", "library"});
  CHECK(said("s,2,2,all_reduce,Ring,auto,1024") == Said{"ring", "quick", ""});
  // So does who is to plan.
  CHECK(said("s,2,2,all_reduce,NCCL default (auto),auto,1024", {"--planner", "gccl"}).planner == "gccl");
  CHECK(said("s,2,2,all_reduce,MPI,auto,1024").planner == "gccl");
}

TEST_CASE("a base's choices hold until a set has its own") {
  const Folder folder;
  Json base = cluster()["parameters"];
  base["schema"] = "gccl/parameters/1";
  base["name"] = "base";
  folder.write("base.json", base.dump());
  Json on = cluster();
  const std::string row = "s,2,2,all_reduce,NCCL default (auto),auto,1024";
  on["parameters"] = {{"base", (folder.path / "base.json").string()}};
  CHECK(said(row, {}, on) == Said{"tree", "slow", "library"});
  on["parameters"]["choices"] = Json::array({{{"collective", "allreduce"}, {"algorithm", "pairwise"}}});
  CHECK(said(row, {}, on) == Said{"pairwise", "quick", "library"});
  on["parameters"]["choices"] = Json::array();
  CHECK(said(row, {}, on).planner == "gccl");
}

TEST_CASE("what is wrong in a choice is reported with its place") {
  const auto refusal = [&](const char* pointer, const Json& value) {
    Json on = cluster();
    on[Json::json_pointer("/parameters/choices" + std::string(pointer))] = value;
    const Folder folder;
    folder.write("c.json", on.dump());
    const Ended e = run_gccl({"topology", "c.json"}, folder.path);
    CHECK(e.code == 2);
    return e.err;
  };
  CHECK(refusal("/0/algorithm", "rings").find("found \"rings\", expected an algorithm of allreduce") !=
        std::string::npos);
  CHECK(refusal("/0/protocol", "slw").find("did you mean \"slow\"") != std::string::npos);
  CHECK(refusal("/0/nodes_max", 1).find("/choices/0/nodes_max") != std::string::npos);
  CHECK(refusal("/0/bytes", 1).find("bytes_max") != std::string::npos);
  CHECK(refusal("/2", cluster()["parameters"]["choices"][0]).find("an earlier choice is for all of its calls") !=
        std::string::npos);
}
