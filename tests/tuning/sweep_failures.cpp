// A sweep whose processes are killed, as the kernel does where memory is short.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "libgccl/cluster/read/load.hpp"
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
