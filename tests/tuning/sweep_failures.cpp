// A sweep whose processes are killed, as the kernel does where memory is short.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "libgccl/cluster/read/load.hpp"
#include "libgccl/select/tuning_table.hpp"
#include "sim/tuning/exports.hpp"
#include "sim/tuning/sweep.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/project.hpp"

using namespace gccl;
using namespace gccl::sim;

TEST_CASE("a place whose process is killed is searched once more; one that always is stands in \"failed\"") {
  const test::Folder folder;
  ::setenv("ONCE", (folder.path / "once").c_str(), 1);
  SweepQuestion q;
  q.file = test::kRoot / "topologies/ethernet-cpu.json";
  q.cluster = load_cluster(q.file);
  q.collectives = {Collective::allgather};
  q.bytes = {64};
  q.ranks = {2, 3, 4};
  q.search.refined = 0;
  const auto killed = [](const Workload& w) {
    if (w.cards.size() == 4) ::raise(SIGKILL);
    // The first process on three ranks alone.
    if (w.cards.size() == 3 && ::open(std::getenv("ONCE"), O_CREAT | O_EXCL | O_CLOEXEC, 0600) >= 0) ::raise(SIGKILL);
    return run_flow(w);
  };
  const auto d = sweep(q, {.model = killed, .simgrid = killed, .flow = killed}, {.jobs = 2, .progress = {}});
  CHECK(d["complete"] == false);
  CHECK(d["cells"].size() == 2);
  REQUIRE(d["failed"].size() == 1);
  CHECK(d["failed"][0]["at"] == "allgather of 64 B on 4 ranks");
  CHECK(d["failed"][0]["why"].get<std::string>().find("out of memory") != std::string::npos);
}

TEST_CASE(
    "a place between that always is killed is named once, and neighbours with different winners do not ask again") {
  SweepQuestion q;
  q.file = test::kRoot / "topologies/ethernet-cpu.json";
  q.cluster = load_cluster(q.file);
  q.collectives = {Collective::allreduce};
  q.bytes = {4 << 10, 16 << 10};
  q.ranks = {8};
  q.bisections = 0;
  const auto killed = [](const Workload& w) {
    if (w.operations[0].call.count == 2048) ::raise(SIGKILL);
    return run_flow(w);
  };
  const auto d = sweep(q, {.model = killed, .simgrid = killed, .flow = killed}, {.jobs = 2, .progress = {}});
  REQUIRE(d["cells"].size() == 2);
  const auto &low = d["cells"][0]["tried"][0], &high = d["cells"][1]["tried"][0];
  CHECK((low["algorithm"] != high["algorithm"] || low["chunks"] != high["chunks"]));
  REQUIRE(d["failed"].size() == 1);
  CHECK(d["failed"][0]["at"] == "allreduce of 8 KiB on 8 ranks");
  // Estimated, as nothing is known of it; nothing else stands between.
  for (const auto& place : d["between"]) CHECK(place.contains("estimated"));
  CHECK(!d["between"].empty());
}

static Count gone = 0;  // bytes of the calls whose process is killed

TEST_CASE("files say nothing of a size that was to be searched and has no result, whatever is beside it") {
  SweepQuestion q;
  q.file = test::kRoot / "topologies/ethernet-cpu.json";
  q.cluster = load_cluster(q.file);
  q.collectives = {Collective::allreduce};
  q.bytes = {64, 4 << 10, 256 << 10, 4 << 20, 16 << 20};
  q.ranks = {8};
  for (const Count bytes : {64, 256 << 10, 16 << 20}) {
    CAPTURE(bytes);
    gone = bytes;
    const auto killed = [](const Workload& w) {
      if (w.operations[0].call.count * 4 == gone) ::raise(SIGKILL);
      return run_flow(w);
    };
    const Engines engines{.model = killed, .simgrid = killed, .flow = killed};
    const auto d = sweep(q, engines, {.jobs = 2, .progress = {}});
    REQUIRE(d["missing"].size() == 1);
    CHECK(d["missing"][0]["bytes"] == gone);
    const TuningTable table = tuning_table(d, *q.cluster);
    CHECK(table.description.ends_with("not complete."));
    const PreparedTable prepared(table, 8, d["missing"][0]["nodes"]);
    std::size_t found = 0;
    for (const Count asked : q.bytes) found += prepared.find(Collective::allreduce, asked) != nullptr;
    CHECK(found == 4);
    CHECK(!prepared.find(Collective::allreduce, gone));
    CHECK(!prepared.find(Collective::allreduce, gone + gone / 4));
    CHECK(!prepared.find(Collective::allreduce, gone - gone / 4));
    for (const auto& place : d["between"]) {
      const Count at = place["bytes"];
      CHECK((at * 8 < gone || at > gone * 8 || prepared.find(Collective::allreduce, at)));
    }
    // Open MPI's rule at that size: the last of those that begin no later.
    const std::string rules = openmpi_rules(d, Operations::commute);
    CHECK(rules.find("# Not complete: 1 of 5 places were not simulated; there Open MPI chooses as ever.") !=
          std::string::npos);
    std::istringstream lines(rules.substr(rules.find("segment\n") + 8));
    Count from = 0;
    int algorithm = -1, at = -1;
    for (std::string line; std::getline(lines, line);)
      if (std::istringstream(line) >> from >> algorithm && line.find("0 0  #") != std::string::npos && from <= gone)
        at = algorithm;
    CHECK(at == 0);
  }
}
