// Scenarios that are wrong: what is said of them.
#include <doctest/doctest.h>

#include "tests/support/scenario.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

TEST_CASE("mistakes are reported with their place") {
  const std::pair<Json, std::string> kCases[] = {
      {with(kRing, {{"byts", 8}}), "/runs/0: unknown key \"byts\"; did you mean \"bytes\"?"},
      {with(kRing, {{"bytes", true}}), "/runs/0/bytes: found true"},
      {with(kRing, {{"groups", 4}}), "/runs/0/groups: found 4, expected an object, or lists of ranks"},
      {with(kRing, {{"bytes", -5}}), "/runs/0/bytes: found -5"},
      {with(kRing, {{"collective", "allreduc"}}),
       "/runs/0/collective: found \"allreduc\"; did you mean \"allreduce\"?"},
      {with(kRing, {{"algorithms", "rng"}}),
       "/runs/0/algorithms: allreduce has no algorithm \"rng\"; did you mean \"ring\"?"},
      {with(kRing, {{"algorithms", {"ring", "bruck"}}}),
       "/runs/0/algorithms/1: allreduce has no algorithm \"bruck\" (it is one of a"},
      {with(kRing, {{"algorithms", {"ring", "ring"}}}), "/runs/0/algorithms/1: algorithm \"ring\" appears twice"},
      {with(kRing, {{"algorithms", Json::array()}}), "/runs/0/algorithms: has 0 elements"},
      {with(kRing, {{"dtype", "f31"}}), "/runs/0/dtype: found \"f31\"; did you mean \"f3"},
      {with(kRing, {{"root", 0}}), "/runs/0/root: allreduce has no \"root\""},
      {with(kRing, {{"counts", {{"distribution", "random"}}}}), "/runs/0/counts: allreduce has no \"counts\""},
      {with(kRing, {{"lanes", 4}, {"chunks", 2}}), "/runs/0/lanes: 4 channels for 2 chunks"},
      {with(kRing, {{"channels", 4}, {"shares", 2}}), "/runs/0/channels: 4 channels for 2 chunks"},
      {with(kRing, {{"chunks", 4}, {"shares", 4}}), "/runs/0/shares: is \"chunks\" by its old name"},
      {with(kRing, {{"window", 33}}), "/runs/0/window: found 33"},
      {with(kRing, {{"protocol", "LL128"}}),
       "/runs/0/protocol: pcie-box has no protocol \"LL128\"; expected one of auto, LL, Simple"},
      {with(kRing, {{"engine", "simgrd"}}), "/runs/0/engine: found \"simgrd\"; did you mean \"simgrid\"?"},
      {with(kRing, {{"engine", {"model", "model"}}}), "/runs/0/engine/1: \"model\" appears twice"},
      {with(kRing, {{"algorithm", "ring"}}), "/runs/0: unknown key \"algorithm\"; did you mean \"algorithms\"?"},
      {with(kRing, {{"stragglers", {{{"rank", 8}}}}}), "/runs/0/stragglers/0/rank: found rank 8, expected one below 8"},
      {with(kRing, {{"stragglers", {{{"rank", 1}, {"start_us", -1}}}}}), "/runs/0/stragglers/0/start_us: found -1"},
      {with(kRing, {{"payload", "verify"}, {"bytes", "8GiB"}}), "/runs/0: checking the payload"},
      {with(kRing, {{"shares", 4096}, {"bytes", "1GiB"}, {"sequence", Json::array()}}), "/runs/0: unknown key"},
      {{{{"collective", "broadcast"}, {"bytes", 8}, {"root", 8}}},
       "/runs/0/root: found rank 8, but the communicator has only 8 ranks"},
      {{{{"collective", "barrier"}, {"bytes", 8}}}, "/runs/0/bytes: a barrier moves no bytes"},
      {{{{"collective", "allreduce"}}}, "/runs/0: key \"bytes\" is missing"},
      {{{{"bytes", 8}}}, "/runs/0: key \"collective\" is missing"},
      {{{{"sequence", Json::array()}}}, "/runs/0/sequence: has 0 elements"},
      {{{{"sequence", {{{"collective", "allreduce"}, {"bytes", {8, 16}}}}}}}, "/runs/0/sequence/0/bytes: found [8,16]"},
      {{{{"sequence", {{{"collective", "allreduce"}, {"bytes", 8}, {"algorithm", "all"}}}}}},
       "/runs/0/sequence/0/algorithm: allreduce has no"},
      {{{{"sequence", {{{"collective", "barrier"}}}}, {"bytes", 8}}}, "/runs/0: unknown key \"bytes\""},
      {{{{"collective", "alltoallv"}, {"bytes", 8}, {"in_place", true}, {"counts", {{"distribution", "skewed"}}}}},
       "/runs/0/counts: skewed counts"},
      {Json::array(), "/runs: has 0 elements"},
      {with(kRing, {{"expect", Json::object()}}), "/runs/0/expect: states no check"},
      {with(kRing, {{"expect", {{"fastest", "swing"}}}}),
       "/runs/0/expect/fastest: \"swing\" is not among the algorithms of this run"},
      {with(kRing, {{"expect", {{"fastest", "ring"}, {"bytes", 8}}}}),
       "/runs/0/expect/bytes: 8 B is not a size of this run"},
      {with(kRing, {{"expect", {{"max_time_us", 1}, {"ranks", 4}}}}),
       "/runs/0/expect/ranks: found 4; expected one of 8"},
      {with(kRing, {{"expect", {{"max_time_us", 1}, {"cluster", "x"}}}}),
       "/runs/0/expect/cluster: found \"x\"; expected one of "},
      {with(kRing, {{"expect", {{"max_time_us", 1e308}}}}),
       "/runs/0/expect/max_time_us: found 1e+308, expected a time below 9e9 s (285 years)"},
      {with(kRing, {{"expect", {{"max_time_us", -1}}}}),
       "/runs/0/expect/max_time_us: found -1, expected a time of at least 0"},
      {with(kRing, {{"stragglers", {{{"rank", 1}, {"start_us", 9.3e15}}}}}),
       "/runs/0/stragglers/0/start_us: found 9.3e+15, expected a time below"},
      {with(kRing, {{"dtype", ""}}), "/runs/0/dtype: found \"\"; expected one of i8"},
      {with(kRing, {{"algorithms", {"all", "all"}}}), "/runs/0/algorithms/1: \"all\" appears twice"},
      {with(kRing, {{"algorithms", {"auto", "ring", "auto"}}}), "/runs/0/algorithms/2: \"auto\" appears twice"},
      {with(kRing, {{"expect", {{"max_time_us", 1}, {"engine", "simgrid"}}}}),
       "/runs/0/expect/engine: engine \"simgrid\" is not used"},
      {with(kRing, {{"expect", {{"correct", true}}}}), "/runs/0/expect/correct: the run does not check"},
      {with(kRing, {{"expect", {{"within_percent_of", {{"algorithm", "best"}, {"percent", 5}}}}}}),
       "/runs/0/expect/within_percent_of: compares the automatic"},
      {with(kRing, {{"expect", {{"within_percent_of", {{"percent", 5}}}}}}),
       "/runs/0/expect/within_percent_of: expected exactly one of \"algorithm\", \"run\" and \"result\""},
      {with(kRing, {{"expect", {{"within_percent_of", {{"run", "a"}, {"result", "b"}, {"percent", 5}}}}}}),
       "/runs/0/expect/within_percent_of: expected exactly one of"},
      {with(kRing, {{"expect", {{"within_percent_of", {{"run", "a"}}}}}}),
       "/runs/0/expect/within_percent_of: key \"percent\" is missing"},
      {with(kRing, {{"label", "healthy"}, {"expect", {{"within_percent_of", {{"run", "helthy"}, {"percent", 5}}}}}}),
       "/runs/0/expect/within_percent_of/run: no run has the label \"helthy\"; did you mean \"healthy\"?"},
      {with(kRing, {{"label", "healthy"}, {"expect", {{"within_percent_of", {{"run", "healthy"}, {"percent", 5}}}}}}),
       "/runs/0/expect/within_percent_of/run: is the label of this run itself"},
      {Json::array({with(kRing, {{"expect", {{"within_percent_of", {{"run", "x"}, {"percent", 5}}}}}})[0],
                    with(kRing, {{"label", "x"}})[0], with(kRing, {{"label", "x"}})[0]}),
       "/runs/0/expect/within_percent_of/run: several runs have the label \"x\""},
      {Json::array({with(kRing, {{"expect", {{"within_percent_of", {{"run", "x"}, {"percent", 5}}}}}})[0],
                    {{"label", "x"}, {"collective", "barrier"}}}),
       "/runs/0/expect/within_percent_of/run: found a run of barrier, expected one of allreduce as here"},
      {Json::array({with(kRing, {{"expect", {{"within_percent_of", {{"run", "x"}, {"percent", 5}}}}}})[0],
                    {{"label", "x"}, {"sequence", {{{"collective", "barrier"}}}}}}),
       "/runs/0/expect/within_percent_of/run: found a run of several collectives, expected one of allreduce"},
      {Json::array({with(kRing, {{"expect", {{"within_percent_of", {{"run", "x"}, {"percent", 5}}}}}})[0],
                    with(kRing, {{"label", "x"}, {"bytes", 128}})[0]}),
       "/runs/0/expect/within_percent_of/run: the run \"x\" has no result for allreduce ring, 64 B, 8 ranks of "
       "pcie-box "
       "(model)"},
      {with(kRing, {{"expect", {{"within_percent_of", {{"result", "../topologies/pcie-bx.json"}, {"percent", 5}}}}}}),
       "/runs/0/expect/within_percent_of/result: there is no file "},
      {with(kRing, {{"expect", {{"within_percent_of", {{"result", "../topologies/pcie-box.json"}, {"percent", 5}}}}}}),
       (kRoot / "topologies/pcie-box.json").string() +
           ": /schema: found \"gccl/cluster/1\", expected \"gccl/result/1\""},
      {{{{"sequence", {{{"collective", "barrier"}}}},
         {"expect", {{"within_percent_of", {{"algorithm", "best"}, {"percent", 5}}}}}}},
       "/runs/0/expect/within_percent_of: is about a single collective; a run of several can be compared with a "
       "\"run\" or a \"result\""},
      {{{{"sequence", {{{"collective", "barrier"}}}}, {"expect", {{"fastest", "tree"}}}}},
       "/runs/0/expect/fastest: is about a single"},
  };
  for (const auto& row : kCases) {
    const auto& runs = row.first;
    const auto& expected = row.second;
    const std::string found = complaint(runs);
    CAPTURE(runs.dump());
    CAPTURE(found);
    CAPTURE(expected);
    CHECK(found.starts_with(expected));
    CHECK(found.find('\n') == std::string::npos);
  }
  CHECK(complaint(Json::array({kRing}), {{"ranks", 0}}) == "/ranks: found 0, expected an integer from 1 to 1048576");
  CHECK(complaint(Json::array({kRing}), {{"ranks", {2, 9}}}).starts_with("/ranks/1: found 9 ranks, but "));
  CHECK(complaint(Json::array({kRing}), {{"cluster", "../topologies/pcie-bx.json"}})
            .find("did you mean \"pcie-box.json\"?") != std::string::npos);
  CHECK(complaint(Json::array({kRing}), {{"schema", "gccl/scenario/2"}})
            .starts_with("/schema: found \"gccl/scenario/2\""));
}

TEST_CASE("of the files beside one that is missing, those of its kind are offered") {
  const Folder folder;
  folder.write("parameters.json", R"({"name": "p", "schema": "gccl/parameters/1"})");
  folder.write("cluster.json", R"({"of": {"schema": "gccl/result/1"}, "all": [{}, []], "schema": "gccl/cluster/1")");
  folder.write("result.json", R"({"runs": [{"schema": "gccl/cluster/1"}], "schema": "gccl/result/1"})");
  folder.write("scenario.json", R"({"schema": "gccl/scenario/1"})");
  folder.write("number.json", R"({"schema": 1})");
  folder.write("array.json", R"([{"schema": "gccl/cluster/1"}, "schema", "gccl/cluster/1"])");
  folder.write("text.json", "schema gccl/cluster/1");
  folder.write("empty.json", "");
  std::filesystem::create_directory(folder.path / "folder.json");
  const std::string missing = (folder.path / "zzzzzzzzzzzzzzzz.json").string();
  CHECK(complaint(Json::array({kRing}), {{"cluster", missing}}) ==
        "/cluster: there is no file " + missing + "; expected one of cluster.json");
  const Json expect = {{"within_percent_of", {{"result", missing}, {"percent", 1}}}};
  CHECK(complaint(with(kRing, {{"expect", expect}})) ==
        "/runs/0/expect/within_percent_of/result: there is no file " + missing + "; expected one of result.json");
  const std::filesystem::path mine = folder.write(
      "mine.json", R"({"schema": "gccl/cluster/1", "name": "c", "parameters": "zzzzzzzz/zzzzzzzz.json", "nodes": []})");
  std::filesystem::create_directory(folder.path / "zzzzzzzz");
  folder.write("zzzzzzzz/p.json", R"({"schema": "gccl/parameters/1"})");
  folder.write("zzzzzzzz/c.json", R"({"schema": "gccl/cluster/1"})");
  const std::string found = complaint(Json::array({kRing}), {{"cluster", mine.string()}});
  CHECK_MESSAGE(found.ends_with("; expected one of p.json"), found);
}

TEST_CASE("absurd work is refused with its size") {
  const Json big = {{"cluster", "../topologies/dgx-h100-superpod-2048.json"}};
  CHECK(complaint({{{"collective", "allreduce"}, {"bytes", "4GiB"}, {"algorithms", "ring"}, {"shares", 4096}}}, big)
            .find("would send about 3.4e+10 messages, more than 2e+09") != std::string::npos);
  // Few messages, but each rank copies every block several times.
  CHECK(complaint({{{"collective", "alltoall"}, {"bytes", "4GiB"}, {"algorithms", "bruck"}, {"shares", 4096}}}, big)
            .find("steps, more than 4e+09") != std::string::npos);
  // 2 * 2047 steps of 2048 ranks are 8.4e6 messages.
  CHECK(complaint({{{"collective", "allreduce"},
                    {"bytes", "8MiB"},
                    {"algorithms", "ring"},
                    {"chunks", 1},
                    {"channels", 1},
                    {"repeats", 1000}}},
                  big) ==
        "/runs/0: ring of 8 MiB, done 1000 times, would send about 8.4e+09 messages, more than 2e+09");
  // Three times 2048 ranks with 64 channels each, 1000 times.
  const Json many = {
      {"collective", "broadcast"}, {"bytes", 4}, {"algorithm", "binomial"}, {"chunks", 64}, {"channels", 64}};
  CHECK(complaint({{{"sequence", {many, many, many}}, {"repeats", 1000}}}, big) ==
        "/runs/0: binomial of 4 B, done 1000 times, would need about 3.9e+08 channels of its ranks, more than "
        "2.7e+08");
  // A root in the middle does as much as rank 0.
  for (const int root : {0, 7})
    for (const auto& [kind, algorithm] :
         {std::pair{"gather", "linear"}, std::pair{"reduce", "direct"}, std::pair{"broadcast", "direct"}}) {
      const char* const collective = kind;
      CHECK_MESSAGE(complaint({{{"collective", collective},
                                {"bytes", "64GiB"},
                                {"algorithms", algorithm},
                                {"root", root},
                                {"chunks", 4096},
                                {"repeats", 1000}}},
                              big)
                            .find(" messages, more than 2e+09") != std::string::npos,
                    collective, " from ", root);
    }
  Json sizes = Json::array();
  for (int i = 1; i <= 256; ++i) sizes.push_back(i * 4);
  Json runs = Json::array();
  for (int i = 0; i < 40; ++i)
    runs.push_back({{"collective", "allreduce"}, {"bytes", sizes}, {"algorithms", "recursive_doubling"}});
  CHECK(complaint(runs).find("more than 10000 points") != std::string::npos);
}
