// What is compared before anything moves: every argument under GCCL_CHECK, and the settings of all ranks at the start.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/folder.hpp"
#include "tests/support/rank_job.hpp"

using namespace ranks;

TEST_CASE("GCCL_CHECK compares every argument before the call, and nothing that may differ") {
  for (Job job : transports(3)) {
    job.environment["GCCL_CHECK"] = "1";
    check(job, [](int rank) {
      const GCCL_Comm world = begin();
      GCCL_Op extra, op;
      const auto add = [](const void* in, void* inout, size_t n, GCCL_Dtype, void*) {
        for (size_t i = 0; i < n; ++i) static_cast<long*>(inout)[i] += static_cast<const long*>(in)[i];
      };
      if (rank == 0) RANK_SUCCESS(GCCL_Op_create(add, nullptr, &extra));
      RANK_SUCCESS(GCCL_Op_create(add, nullptr, &op));
      GCCL_Dtype type, odd_type;
      RANK_SUCCESS(GCCL_Type_create(8, &type));
      RANK_SUCCESS(GCCL_Type_create(rank == 1 ? 4 : 8, &odd_type));
      long v = rank + 1, sum = 0;
      RANK_SUCCESS(GCCL_Allreduce(&v, &sum, 1, type, op, world));
      RANK_CHECK(sum == 6);
      // Lengths that fit, with nothing for some.
      const std::size_t sent[] = {std::size_t(rank), 0, 2}, due[] = {rank == 0   ? std::size_t(0)
                                                                     : rank == 1 ? std::size_t(0)
                                                                                 : std::size_t(2),
                                                                     rank == 0   ? std::size_t(1)
                                                                     : rank == 1 ? std::size_t(0)
                                                                                 : std::size_t(2),
                                                                     rank == 1 ? std::size_t(0) : std::size_t(2)};
      long x[8] = {}, y[8] = {};
      RANK_SUCCESS(GCCL_Alltoallv(x, sent, nullptr, y, due, nullptr, GCCL_INT64, world));
      const auto each = [&](const std::string& what, const std::vector<std::string>& texts, const auto& call) {
        GCCL_Comm c = copy_of(world);
        expect(call(c), GCCL_ERR_MISMATCH, what);
        for (const std::string& text : texts) expect_text(text, what);
        RANK_SUCCESS(GCCL_Comm_free(&c));
      };
      const bool odd = rank == 1;
      each("root", {"rank 0 calls", "root 0", "rank 1 calls", "root 1"},
           [&](GCCL_Comm c) { return GCCL_Broadcast(x, 1, GCCL_INT64, odd, c); });
      each("count", {"of 1 x i64", "of 2 x i64"},
           [&](GCCL_Comm c) { return GCCL_Allgather(x, y, odd ? 2 : 1, GCCL_INT64, c); });
      each("size", {"user-defined type (8 bytes)", "user-defined type (4 bytes)"},
           [&](GCCL_Comm c) { return GCCL_Broadcast(x, 1, odd_type, 0, c); });
      each("operation", {"sum", "user-defined operation"},
           [&](GCCL_Comm c) { return GCCL_Allreduce(x, y, 1, GCCL_INT64, odd ? op : GCCL_SUM, c); });
      const std::size_t ones[] = {1, 1, 1}, zero[] = {0, 1, 1};
      each("alltoallv", {"alltoallv #1", "rank 1", "0 elements where its recvcounts[1] is 1"},
           [&](GCCL_Comm c) { return GCCL_Alltoallv(x, odd ? zero : ones, nullptr, y, ones, nullptr, GCCL_INT64, c); });
      each("allgatherv", {"allgatherv #1", "other lengths"},
           [&](GCCL_Comm c) { return GCCL_Allgatherv(x, y, odd ? zero : ones, nullptr, GCCL_INT64, c); });
      RANK_SUCCESS(GCCL_Finalize());
    });
  }
}

TEST_CASE("with GCCL_CHECK an alltoallv whose lengths differ between two ranks ends on all, and nothing is written") {
  for (Job job : transports(3)) {
    job.environment["GCCL_CHECK"] = "1";
    check(job, [](int rank) {
      const GCCL_Comm world = begin();
      // By rank, to and from each: rank 1 is due 5 of rank 0, and is sent 4. Rank 2 has nothing to do with it.
      const std::size_t sent[3][3] = {{1, 4, 3}, {2, 1, 0}, {3, 0, 1}}, due[3][3] = {{1, 2, 3}, {5, 1, 0}, {3, 0, 1}};
      std::vector<int> in(20, rank), out(20, -1);
      expect(GCCL_Alltoallv(in.data(), sent[rank], nullptr, out.data(), due[rank], nullptr, GCCL_INT32, world),
             GCCL_ERR_MISMATCH, "alltoallv");
      expect_text("alltoallv #1: rank 0 sends rank 1 4 elements where its recvcounts[0] is 5", "which");
      RANK_CHECK(out == std::vector<int>(20, -1));
      GCCL_Finalize();
    });
  }
}

TEST_CASE("a rank that waits in GCCL_CHECK's comparison says before which call, and in which the others are") {
  check({.size = 3, .environment = {{"GCCL_CHECK", "1"}}}, [](int rank) {
    const GCCL_Comm world = begin();
    float x[5] = {};
    RANK_SUCCESS(GCCL_Barrier(world));
    RANK_SUCCESS(GCCL_Comm_set_timeout(world, 1000));
    if (rank == 2) {
      ::usleep(1500000);
    } else {
      expect(GCCL_Allreduce(GCCL_IN_PLACE, x, 5, GCCL_FLOAT32, GCCL_SUM, world), GCCL_ERR_TIMEOUT, "allreduce");
      expect_text("allreduce #2 of 5 x f32, sum (GCCL_CHECK before it): ", "which");
      expect_text(rank == 0 ? "rank 1 is in allreduce #2 of 5 x f32, sum and waits for rank "
                            : "rank 0 is in allreduce #2 of 5 x f32, sum and waits for rank ",
                  "the other");
    }
    std::_Exit(any_reported());
  });
}

TEST_CASE("settings that must be the same are compared at the start, on every rank") {
  struct Setting {
    const char *name, *usual, *odd;
    std::vector<std::string> texts;
  };
  const std::vector<Setting> settings = {
      {"GCCL_ALGORITHM",
       "allreduce=direct",
       "allreduce=ring",
       {"GCCL_ALGORITHM", "rank 0 has \"allreduce=direct\"", "rank 1 has \"allreduce=ring\""}},
      {"GCCL_ALGORITHM",
       "",
       "allreduce=ring",
       {"GCCL_ALGORITHM", "rank 0 has nothing", "rank 1 has \"allreduce=ring\""}},
      {"GCCL_CHECK", "0", "1", {"GCCL_CHECK", "rank 0 has \"0\"", "rank 1 has \"1\""}},
      {"GCCL_BACKENDS", "shm,tcp", "tcp,shm", {"GCCL_BACKENDS", "rank 0 has \"shm,tcp\"", "rank 1 has \"tcp,shm\""}},
      {"GCCL_BACKENDS", "tcp", "shm", {"GCCL_BACKENDS", "rank 0 has \"tcp\"", "rank 1 has \"shm\""}},
      // What one rank cannot use is everybody's error.
      {"GCCL_ALGORITHM", "", "allreduce=rink", {"GCCL_ALGORITHM", "no algorithm \"rink\""}},
      {"GCCL_BACKENDS", "shm", "shn", {"backend \"shn\""}},
      {"GCCL_BACKENDS", "shm", "shm,,tcp", {"GCCL_BACKENDS is \"shm,,tcp\", expected"}},
      {"GCCL_CHECK", "0", "true", {"GCCL_CHECK is \"true\", expected"}},
      {"GCCL_CHECK", "true", "0", {"GCCL_CHECK is \"true\", expected"}},  // rank 0, where the others meet
      {"GCCL_ADDRESS", "127.0.0.1", "999.0.0.1", {"GCCL_ADDRESS: "}},
      {"GCCL_START_TIMEOUT_MS", "60000", "soon", {"GCCL_START_TIMEOUT_MS is \"soon\", expected"}},
  };
  for (const Setting& s : settings)
    check({.size = 3, .backends = "shm"}, [&s](int rank) {
      setenv(s.name, rank == 1 ? s.odd : s.usual, 1);
      GCCL_Comm world = GCCL_COMM_NULL;
      const auto began = Clock::now();
      const GCCL_Result result = GCCL_Init(&world, nullptr);
      RANK_CHECK((result == GCCL_ERR_INVALID_USAGE || result == GCCL_ERR_INVALID_ARGUMENT));
      for (const std::string& text : s.texts) expect_text(text, s.name);
      RANK_CHECK(seconds_since(began) < 30);
    });
  // Measured parameters: what is in the files counts, whatever they are called.
  const gccl::test::Folder folder;
  const auto set = [&](const char* name, const char* transports) {
    return folder
        .write(name,
               std::string(R"({"schema":"gccl/parameters/1","name":"p","card":{"overhead_ns":1,"combine_GBps":1,)") +
                   R"("copy_GBps":1},"eager_bytes":1,"transports":)" + transports + "}")
        .string();
  };
  const std::string fast = set("fast.json", R"({"tcp":{"overhead_ns":1}})"),
                    same = set("same.json", R"({"tcp":{"overhead_ns":1.0,"source":"s"}})"),
                    slow = set("slow.json", R"({"tcp":{"overhead_ns":2}})"),
                    wrong = set("wrong.json", R"({"tcp":{"overhead_ns":-2}})");
  struct Sets {
    std::string usual, odd;
    std::vector<std::string> texts;  // none: they fit
  };
  const std::vector<Sets> sets = {
      {fast, same, {}},
      {fast, slow, {"GCCL_PARAMETERS differs", "rank 0 has", "fast.json", "rank 1 has", "slow.json"}},
      {"", slow, {"GCCL_PARAMETERS differs: rank 0 has nothing", "slow.json"}},
      {fast, wrong, {"rank 1 could not start: GCCL_PARAMETERS: ", "wrong.json: /transports/tcp/overhead_ns"}},
      {fast, fast + "x", {"GCCL_PARAMETERS: ", "fast.jsonx"}},
  };
  for (const Sets& s : sets)
    check({.size = 2, .backends = "shm"}, [&s](int rank) {
      setenv("GCCL_PARAMETERS", (rank == 1 ? s.odd : s.usual).c_str(), 1);
      GCCL_Comm world = GCCL_COMM_NULL;
      const GCCL_Result result = GCCL_Init(&world, nullptr);
      RANK_CHECK((result == GCCL_SUCCESS) == s.texts.empty());
      for (const std::string& text : s.texts)
        if (rank == 0 || text.find("could not") == text.npos) expect_text(text, "GCCL_PARAMETERS");
      if (result == GCCL_SUCCESS) RANK_SUCCESS(GCCL_Finalize());
    });
  // Tables that mean the same, and backends that come from the configuration.
  check({.size = 2, .backends = "tcp"}, [](int rank) {
    setenv("GCCL_ALGORITHM", rank ? "allreduce=ring,broadcast=binomial" : "broadcast=binomial,allreduce=ring", 1);
    setenv("GCCL_BACKENDS", "tcp", 1);
    GCCL_Config config = GCCL_CONFIG_INIT;
    config.backends = rank ? "shm" : nullptr;
    GCCL_Comm world = GCCL_COMM_NULL;
    RANK_CHECK(GCCL_Init(&world, &config) == GCCL_ERR_INVALID_USAGE);
    expect_text("GCCL_Config.backends", "backends");
  });
  check({.size = 2, .backends = "shm"}, [](int rank) {
    setenv("GCCL_ALGORITHM", rank ? "allreduce=ring,broadcast=binomial" : "broadcast=binomial,allreduce=ring", 1);
    begin();
    RANK_SUCCESS(GCCL_Finalize());
  });
}

// An operation that errs on one rank, as a processor may; every rank combines all inputs by itself.
TEST_CASE("a rank whose result differs from the others' is named with GCCL_CHECK=2") {
  for (Job job : transports(3)) {
    job.environment["GCCL_CHECK"] = "2";
    job.environment["GCCL_ALGORITHM"] = "allreduce=direct";
    check(job, [](int rank) {
      GCCL_Comm world = begin();
      std::vector<float> x(100, 1), y(100);
      GCCL_Op op = 0;
      static bool errs = false;
      RANK_SUCCESS(GCCL_Op_create(
          [](const void* in, void* inout, std::size_t n, GCCL_Dtype, void*) {
            for (std::size_t i = 0; i < n; ++i) static_cast<float*>(inout)[i] += static_cast<const float*>(in)[i];
            if (errs) *static_cast<unsigned char*>(inout) |= 1;
          },
          nullptr, &op));
      for (int i = 0; i < 3; ++i) {
        RANK_SUCCESS(GCCL_Allreduce(x.data(), y.data(), 100, GCCL_FLOAT32, op, world));
        RANK_CHECK(y[99] == 3);
        RANK_SUCCESS(GCCL_Allreduce(x.data(), y.data(), 100, GCCL_FLOAT32, GCCL_AVG, world));
        RANK_CHECK(y[99] == 1);
        RANK_SUCCESS(GCCL_Broadcast(x.data(), 100, GCCL_FLOAT32, 1, world));
        RANK_SUCCESS(
            GCCL_Reduce_scatter(GCCL_IN_PLACE, std::vector<float>(300, 1).data(), 100, GCCL_FLOAT32, GCCL_AVG, world));
      }
      std::vector<float> nan(4, rank == 0 ? NAN : -NAN), all(12);  // whose bits no rank promises
      RANK_SUCCESS(GCCL_Allreduce(nan.data(), all.data(), 4, GCCL_FLOAT32, GCCL_SUM, world));
      errs = rank == 1;
      expect(GCCL_Allreduce(x.data(), y.data(), 100, GCCL_FLOAT32, op, world), GCCL_ERR_MISMATCH, "allreduce");
      expect_text("rank 1 has another result than 2 of 3 ranks", "who");
      GCCL_Metrics m;
      m.struct_bytes = sizeof m;
      RANK_SUCCESS(GCCL_Get_performance_metrics(world, &m));
      RANK_CHECK(m.calls[0].calls == 8);  // all-reduces
      RANK_CHECK(m.calls[0].failed == 1);
      GCCL_Finalize();
    });
  }
}
