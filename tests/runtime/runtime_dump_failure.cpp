// What dumps say of the failure that they were written for: whom it is about, whether the rank had polled before, and
// which of several failures it is.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/has.hpp"
#include "tests/support/program.hpp"
#include "tests/support/rank_job.hpp"

namespace runtime_dump_failure {
using namespace ranks;
using Json = nlohmann::json;

// The communicator of all ranks in the dump of each of three ranks.
std::vector<Json> worlds(const std::string& prefix) {
  std::vector<Json> all;
  for (const char* rank : {"0", "1", "2"}) {
    const Json dump = Json::parse(std::ifstream(prefix + rank + ".json"));
    all.push_back(dump["communicators"][0]);
  }
  return all;
}

Job dumping(const std::string& prefix) {
  return {.size = 3, .environment = {{"GCCL_DUMP", prefix}, {"GCCL_DUMP_FORMAT", "json"}}};
}

#ifndef __SANITIZE_THREAD__  // which starts threads: then nobody knows that no other thread may send
TEST_CASE("a difference that ranks find while they wait names whom it is about, not who has found it") {
  gccl::test::Folder folder;
  const std::string left = folder.path / "left_", circle = folder.path / "circle_";
  for (const std::string& prefix : {left, circle})
    check(dumping(prefix), [&](int rank) {
      const GCCL_Comm world = begin();
      float x = 0;
      RANK_SUCCESS(GCCL_Barrier(world));
      // Rank 1 leaves without the message, or waits for one itself.
      if (rank == 0 || (rank == 1 && prefix == circle))
        expect(GCCL_Recv(&x, 1, GCCL_FLOAT32, rank == 0 ? 1 : 0, world), GCCL_ERR_MISMATCH, "recv");
      GCCL_Finalize();
    });
  for (const Json& c : worlds(left)) {
    CAPTURE(c.dump());
    CHECK(c["failure_code"] == GCCL_ERR_MISMATCH);
    CHECK(c["failure_rank"] == 1);
    CHECK(!c.contains("failure_ranks"));
  }
  int found = 0;
  for (const Json& c : worlds(circle)) {
    CAPTURE(c.dump());
    CHECK(c["failure_code"] == GCCL_ERR_MISMATCH);
    CHECK(c["failure_rank"] != 2);
    if (!c.contains("failure_ranks")) continue;
    std::vector<int> ranks = c["failure_ranks"];
    std::sort(ranks.begin(), ranks.end());
    CHECK(ranks == std::vector<int>{0, 1});
    ++found;
  }
  CHECK(found > 0);
}
#endif

TEST_CASE("a rank that was busy with something else when its communicator failed says for how long") {
  gccl::test::Folder folder;
  const std::string prefix = folder.path / "fr_";
  check(dumping(prefix), [&](int rank) {
    const GCCL_Comm world = begin();
    static int me = 0;
    me = rank;
    GCCL_Op op = 0;
    RANK_SUCCESS(GCCL_Op_create(
        [](const void*, void*, std::size_t, GCCL_Dtype, void*) {
          if (me == 1) ::usleep(2000000);
        },
        nullptr, &op));
    std::vector<float> x(300000);
    RANK_SUCCESS(GCCL_Barrier(world));
    RANK_SUCCESS(GCCL_Comm_set_timeout(world, 1500));
    expect(GCCL_Allreduce(GCCL_IN_PLACE, x.data(), x.size(), GCCL_FLOAT32, op, world), GCCL_ERR_TIMEOUT, "allreduce");
    std::_Exit(any_reported());
  });
  const std::vector<Json> all = worlds(prefix);
  std::vector<std::int64_t> ns;
  for (const Json& c : all) ns.push_back(c["failure_unpolled_ns"].get<std::int64_t>());
  CHECK(ns[1] >= 2'000'000'000);
  CHECK(std::max(ns[0], ns[2]) < 1'000'000'000);
}

TEST_CASE("a later failure replaces the dump of an earlier one where calls had ended meanwhile, and only there") {
  gccl::test::Folder folder;
  const std::string prefix = folder.path / "fr_";
  check({.size = 2, .environment = {{"GCCL_DUMP", prefix}, {"GCCL_DUMP_FORMAT", "json"}}}, [&](int rank) {
    GCCL_Comm world = begin(), first = copy_of(world), second = copy_of(world);
    float x[2] = {}, all[2] = {};
    if (rank == 0) {
      const auto reason = [&] {
        const Json dump = Json::parse(std::ifstream(prefix + "0.json"));
        return dump["reason"].get<std::string>();
      };
      for (GCCL_Comm c : {world, first, second}) RANK_SUCCESS(GCCL_Comm_set_timeout(c, 200));
      expect(GCCL_Barrier(first), GCCL_ERR_TIMEOUT, "first");
      RANK_CHECK(gccl::test::has(reason(), "barrier #"));
      expect(GCCL_Allreduce(GCCL_IN_PLACE, x, 1, GCCL_FLOAT32, GCCL_SUM, second), GCCL_ERR_TIMEOUT, "second");
      RANK_CHECK(gccl::test::has(reason(), "barrier #"));
      RANK_SUCCESS(GCCL_Comm_set_timeout(world, GCCL_TIMEOUT_NONE));
      for (int i = 0; i < 20; ++i) RANK_SUCCESS(GCCL_Broadcast(x, 1, GCCL_FLOAT32, 1, world));
      RANK_SUCCESS(GCCL_Comm_set_timeout(world, 200));
      expect(GCCL_Allgather(x, all, 1, GCCL_FLOAT32, world), GCCL_ERR_TIMEOUT, "world");
      RANK_CHECK(gccl::test::has(reason(), "allgather #"));
    } else {
      ::usleep(600000);
      for (int i = 0; i < 20; ++i) RANK_SUCCESS(GCCL_Broadcast(x, 1, GCCL_FLOAT32, 1, world));
      ::usleep(600000);
    }
    std::_Exit(any_reported());
  });
}

}  // namespace runtime_dump_failure
