// What real ranks make of GCCL_TUNING_FILE, GCCL_ALGO and GCCL_Estimate: the algorithm that a table says is the one
// that runs, and what is wrong with a table is an error of the start.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/folder.hpp"
#include "tests/support/program.hpp"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

std::string table(const std::string& entries, const std::string& machine = R"("nodes": 2, "cards_per_node": 4)") {
  return R"({"schema": "gccl/table/1", "name": "t", "machine": {"cluster": "c", )" + machine + R"(}, "entries": [)" +
         entries + "]}";
}

const std::string kEntries = R"(
  {"collective": "allreduce", "to_bytes": 4096, "algorithm": "binomial_tree"},
  {"collective": "allreduce", "from_bytes": 4096, "algorithm": "ring", "chunks": 6, "channels": 3, "window": 4},
  {"collective": "allgather", "ranks_min": 3, "algorithm": "bruck"})";

constexpr std::size_t kAllreduce = 0, kBroadcast = 3, kAllgatherv = 11, kReduceScatterv = 12;  // as GCCL_Metrics counts

// The result is right, and the metrics have the algorithm and who chose it.
void check_allreduce(GCCL_Comm world, std::size_t count, const std::string& algorithm, const std::string& by) {
  int size = 0;
  RANK_SUCCESS(GCCL_Comm_size(world, &size));
  std::vector<std::int32_t> x(count, 3), y(count);
  RANK_SUCCESS(GCCL_Allreduce(x.data(), y.data(), count, GCCL_INT32, GCCL_SUM, world));
  RANK_CHECK(y == std::vector<std::int32_t>(count, 3 * size));
  GCCL_Metrics m{};
  m.struct_bytes = sizeof m;
  RANK_SUCCESS(GCCL_Get_performance_metrics(world, &m));
  if (!m.algorithm[0] || m.algorithm[0] != algorithm || m.decided_by[0] != by)
    report("allreduce of " + std::to_string(count) + ": " + (m.algorithm[0] ? m.algorithm[0] : "nothing") + " by " +
           (m.decided_by[0] ? m.decided_by[0] : "nobody") + ", expected " + algorithm + " by " + by);
  RANK_CHECK(m.algorithm[1] == nullptr);  // no all-gather of the program's so far
}

}  // namespace

TEST_CASE("ranks run the algorithms of their table, and metrics say so") {
  const gccl::test::Folder folder;
  const std::string file = folder.write("t.json", table(kEntries)).string();
  for (const int size : {1, 2, 3, 5})
    for (Job job : transports(size)) {
      job.environment["GCCL_TUNING_FILE"] = file;
      if (job.nodes.size() > 0 && size > 4) job.nodes = {0, 0, 0, 1, 1};
      if (job.nodes.empty() && size > 4) continue;  // more than the machine has on a node
      check(job, [](int) {
        GCCL_Comm world = begin();
        check_allreduce(world, 10, "binomial_tree", "GCCL_TUNING_FILE");
        check_allreduce(world, 1023, "binomial_tree", "GCCL_TUNING_FILE");
        check_allreduce(world, 1024, "ring", "GCCL_TUNING_FILE");
        check_allreduce(world, 300001, "ring", "GCCL_TUNING_FILE");
        RANK_SUCCESS(GCCL_Finalize());
      });
    }
}

TEST_CASE(
    "from a sweep to real ranks: at each size that gccl tune simulated they run what it found to be the fastest") {
  const gccl::test::Folder folder;
  const std::string table = (folder.path / "t.json").string();
  const gccl::test::Ended swept =
      gccl::test::run_gccl({"tune", "host", "--quiet", "--ranks", "4", "--collectives", "allreduce,broadcast",
                            "--bytes", "64,16KiB,1MiB", "--table", table, "--json", "-"});
  CAPTURE(swept.err);
  REQUIRE(swept.code == 0);
  const nlohmann::json cells = nlohmann::json::parse(swept.out)["cells"];
  std::size_t others = 0;  // where the table takes another algorithm than the ranks would
  for (const nlohmann::json& cell : cells)
    others += cell["tried"][0]["algorithm"] != cell["tried"][cell["planner"].get<std::size_t>()]["algorithm"];
  CHECK(cells.size() >= 6);
  REQUIRE(others > 0);
  check({.size = 4, .backends = "shm,tcp", .environment = {{"GCCL_TUNING_FILE", table}}}, [&cells](int) {
    const GCCL_Comm world = begin();
    for (const nlohmann::json& cell : cells) {
      const std::string collective = cell["collective"], due = cell["tried"][0]["algorithm"];
      std::vector<std::uint8_t> x(cell["bytes"].get<std::size_t>(), 1);
      const bool sums = collective == "allreduce";
      if (sums)
        RANK_SUCCESS(GCCL_Allreduce(GCCL_IN_PLACE, x.data(), x.size(), GCCL_UINT8, GCCL_SUM, world));
      else
        RANK_SUCCESS(GCCL_Broadcast(x.data(), x.size(), GCCL_UINT8, 0, world));
      RANK_CHECK(x == std::vector<std::uint8_t>(x.size(), sums ? 4 : 1));
      GCCL_Metrics m{};
      m.struct_bytes = sizeof m;
      RANK_SUCCESS(GCCL_Get_performance_metrics(world, &m));
      const std::size_t kind = sums ? kAllreduce : kBroadcast;
      if (m.algorithm[kind] != due || m.decided_by[kind] != std::string("GCCL_TUNING_FILE"))
        report(collective + " of " + cell["bytes"].dump() + " bytes: " + m.algorithm[kind] + " by " +
               m.decided_by[kind] + ", expected " + due + " by the table");
    }
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("blocks of different lengths are planned by the mean one, which a table's sizes and an estimate mean, too") {
  const auto entries = [](const std::string& kind, const char* short_ones) {
    return R"({"collective": ")" + kind + R"(", "to_bytes": 65536, "algorithm": ")" + short_ones + R"("},
              {"collective": ")" +
           kind + R"(", "from_bytes": 65536, "algorithm": "ring"})";
  };
  const gccl::test::Folder folder;
  const std::string file =
      folder.write("t.json", table(entries("allgatherv", "direct") + "," + entries("reduce_scatterv", "pairwise")))
          .string();
  for (const bool tuned : {true, false})
    for (const int size : {2, 3, 4})
      for (Job job : transports(size)) {
        if (tuned) job.environment["GCCL_TUNING_FILE"] = file;
        check(job, [tuned](int rank) {
          const GCCL_Comm world = begin();
          const auto n = std::size_t(size_of(world)), me = std::size_t(rank);
          // Among them the last size below 64 KiB, and the first that is not.
          for (const std::size_t mean : {std::size_t(1), 16383 / n, (16384 + n - 1) / n, std::size_t(200000)}) {
            std::vector<std::size_t> counts(n, mean), places(n, 0);
            if (tuned) counts[0] -= mean, counts[1] += mean;  // closed forms go by the longest block, too
            for (std::size_t r = 1; r < n; ++r) places[r] = places[r - 1] + counts[r - 1];
            std::vector<float> own(counts[me], float(rank + 1)), all(n * mean, 1), gathered(n * mean), sums(counts[me]);
            RANK_SUCCESS(GCCL_Allgatherv(own.data(), gathered.data(), counts.data(), nullptr, GCCL_FLOAT32, world));
            RANK_SUCCESS(GCCL_Reduce_scatterv(all.data(), sums.data(), counts.data(), GCCL_FLOAT32, GCCL_SUM, world));
            for (std::size_t r = 0; r < n; ++r)
              for (std::size_t i = 0; i < counts[r]; ++i) RANK_CHECK(gathered[places[r] + i] == float(r + 1));
            RANK_CHECK(sums == std::vector<float>(counts[me], float(n)));
            GCCL_Metrics m{};
            m.struct_bytes = sizeof m;
            RANK_SUCCESS(GCCL_Get_performance_metrics(world, &m));
            for (const auto& [kind, short_ones, at] :
                 {std::tuple("allgatherv", "direct", kAllgatherv), {"reduce_scatterv", "pairwise", kReduceScatterv}}) {
              const std::string ran = m.algorithm[at];
              GCCL_Prediction p{};
              p.struct_bytes = sizeof p;
              RANK_SUCCESS(GCCL_Estimate(world, kind, mean, GCCL_FLOAT32, &p));
              const std::string due = tuned ? (n * mean < 16384 ? short_ones : "ring") : p.algorithm;
              if (ran != due || (tuned && due != p.algorithm) || std::string(m.decided_by[at]) != p.decided_by)
                report(std::string(kind) + " of " + std::to_string(mean) + " elements a rank: " + ran + " by " +
                       m.decided_by[at] + ", expected " + due + ", estimated " + p.algorithm + " by " + p.decided_by);
            }
          }
          RANK_SUCCESS(GCCL_Finalize());
        });
      }
}

TEST_CASE("metrics have the algorithms of the program's calls, not of what GCCL gathers for itself") {
  for (const char* check_first : {"0", "1"})
    check({.size = 3, .environment = {{"GCCL_CHECK", check_first}, {"GCCL_ALGORITHM", "allreduce=ring"}}}, [](int) {
      GCCL_Comm world = begin();
      copy_of(world);
      check_allreduce(world, 10, "ring", "GCCL_ALGORITHM");  // and no all-gather
      // As long as what GCCL_CHECK gathers: that plan is there already.
      std::vector<std::byte> x(40), y(3 * x.size());
      RANK_SUCCESS(GCCL_Allgather(x.data(), y.data(), 40, GCCL_UINT8, world));
      GCCL_Metrics m{};
      m.struct_bytes = sizeof m;
      RANK_SUCCESS(GCCL_Get_performance_metrics(world, &m));
      RANK_CHECK(m.algorithm[1] != nullptr);
      RANK_SUCCESS(GCCL_Finalize());
    });
}

TEST_CASE("the environment goes before the table, and a communicator has the entries of its own ranks") {
  const gccl::test::Folder folder;
  const std::string file = folder.write("t.json", table(kEntries)).string();
  check({.size = 3, .environment = {{"GCCL_TUNING_FILE", file}, {"GCCL_ALGO", "allreduce:0-1KiB:ring"}}}, [](int rank) {
    GCCL_Comm world = begin();
    check_allreduce(world, 10, "ring", "GCCL_ALGO");
    check_allreduce(world, 300, "binomial_tree", "GCCL_TUNING_FILE");
    const auto gathered = [](GCCL_Comm comm) -> std::string {
      int size = 0;
      RANK_SUCCESS(GCCL_Comm_size(comm, &size));
      std::vector<double> x(4), y(4 * std::size_t(size));
      RANK_SUCCESS(GCCL_Allgather(x.data(), y.data(), 4, GCCL_FLOAT64, comm));
      GCCL_Metrics m{};
      m.struct_bytes = sizeof m;
      RANK_SUCCESS(GCCL_Get_performance_metrics(comm, &m));
      return m.decided_by[1];
    };
    GCCL_Comm pair = GCCL_COMM_NULL;
    RANK_SUCCESS(GCCL_Comm_split(world, rank == 0 ? GCCL_UNDEFINED : 0, rank, &pair));
    RANK_CHECK(gathered(world) == "GCCL_TUNING_FILE");
    if (rank > 0) RANK_CHECK(gathered(pair) != "GCCL_TUNING_FILE");
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("what is wrong with a table or a list is an error of the start on every rank, with its place") {
  const gccl::test::Folder folder;
  const auto file = [&](const char* name, const std::string& text) { return folder.write(name, text).string(); };
  REQUIRE(::mkfifo((folder.path / "fifo").c_str(), 0600) == 0);
  const struct {
    const char *variable, *what;
    std::string value;
  } kCases[] = {
      {"GCCL_TUNING_FILE", "gone.json: no such file", (folder.path / "gone.json").string()},
      {"GCCL_TUNING_FILE", "fifo: is a pipe, expected a file", (folder.path / "fifo").string()},
      {"GCCL_PARAMETERS", "fifo: is a pipe, expected a file", (folder.path / "fifo").string()},
      {"GCCL_TUNING_FILE", "broken.json: not valid JSON at line 2, column ", file("broken.json", "{\n  nonsense")},
      {"GCCL_TUNING_FILE", R"(/entries/0/algorithm: found "rink", expected an algorithm of allreduce; did you mean)",
       file("name.json", table(R"({"collective": "allreduce", "algorithm": "rink"})"))},
      {"GCCL_TUNING_FILE", "small.json: /machine/cards_per_node: found 1, but a node of this job has 3 ranks",
       file("small.json",
            table(R"({"collective": "barrier", "algorithm": "tree"})", R"("nodes": 2, "cards_per_node": 1)"))},
      {"GCCL_TUNING_FILE", R"(/machine/backends: the table is for "tcp", this machine has "shm")",
       file("backends.json", table(R"({"collective": "barrier", "algorithm": "tree"})",
                                   R"("nodes": 2, "cards_per_node": 4, "backends": "tcp")"))},
      {"GCCL_TUNING_FILE", R"(/entries/0/protocol: found "LL", but here calls have no protocols)",
       file("protocol.json", table(R"({"collective": "allreduce", "algorithm": "ring", "protocol": "LL"})"))},
      {"GCCL_ALGO", R"(GCCL_ALGO "allreduce:rink": there is no algorithm "rink" for allreduce; did you mean "ring"?)",
       "allreduce:rink"},
  };
  for (const auto& c : kCases)
    check({.size = 3, .environment = {{c.variable, c.value}}}, [&c](int) {
      GCCL_Comm world = GCCL_COMM_NULL;
      RANK_CHECK(GCCL_Init(&world, nullptr) == GCCL_ERR_INVALID_ARGUMENT);
      expect_text(c.what, c.variable);
      RANK_CHECK(world == GCCL_COMM_NULL);
    });
}

TEST_CASE("tables that differ are an error on every rank that names the ranks and what differs") {
  const gccl::test::Folder folder;
  const std::string usual = folder.write("usual.json", table(kEntries)).string();
  const std::string entries =
      folder.write("entries.json", table(R"({"collective": "allreduce", "algorithm": "swing"})")).string();
  const std::string machine =
      folder.write("machine.json", table(kEntries, R"("nodes": 3, "cards_per_node": 4)")).string();
  const struct {
    std::string variable, first, other;
    std::vector<std::string> texts;
  } kCases[] = {
      {"GCCL_TUNING_FILE",
       usual,
       entries,
       {"what GCCL_TUNING_FILE says differs: rank 0 has ", "3 entries", "rank 1 has", "1 entries"}},
      {"GCCL_TUNING_FILE",
       usual,
       machine,
       {"the machine in GCCL_TUNING_FILE differs: rank 0 has \"c of 2 nodes of 4 cards\", rank 1 has \"c of 3 nodes"}},
      {"GCCL_TUNING_FILE", "", usual, {"the machine in GCCL_TUNING_FILE differs: rank 0 has nothing, rank 1 has"}},
      {"GCCL_ALGO", "ring", "allreduce:ring", {"GCCL_ALGO differs: rank 0 has \"allreduce:ring;", "rank 1 has"}},
  };
  for (const auto& c : kCases)
    check({.size = 2}, [&c](int rank) {
      setenv(c.variable.c_str(), (rank == 1 ? c.other : c.first).c_str(), 1);
      GCCL_Comm world = GCCL_COMM_NULL;
      RANK_CHECK(GCCL_Init(&world, nullptr) == GCCL_ERR_INVALID_USAGE);
      for (const std::string& text : c.texts) expect_text(text, c.variable);
    });
  // Another file of the same content is no difference, nor are other words for the same.
  const std::string copy = folder.write("copy.json", table(kEntries + "  ")).string();
  check({.size = 2}, [&](int rank) {
    setenv("GCCL_TUNING_FILE", (rank ? usual : copy).c_str(), 1);
    setenv("GCCL_ALGO", rank ? "AllReduce:Ring,swing" : "allreduce:swing,ring", 1);
    GCCL_Comm world = begin();
    check_allreduce(world, 300001, "ring", "GCCL_TUNING_FILE");
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("an estimate is the closed form of what the call would do, and sends nothing") {
  const gccl::test::Folder folder;
  // Costs by hand, so that a broadcast's formula can be: one message of a node, 1000 ns and half a ns for each byte.
  const std::string costs = R"({"node": {"alpha_ns": 1000, "ns_per_byte": 0.5}, "overhead_ns": 0})";
  const std::string parameters =
      folder
          .write("p.json", R"({"schema": "gccl/parameters/1", "name": "p", "card": {"overhead_ns": 0, "combine_GBps": 0,
                "copy_GBps": 0}, "eager_bytes": 0, "transports": {"shared-memory": )" +
                               costs + "}}")
          .string();
  check(
      {.size = 2, .environment = {{"GCCL_PARAMETERS", parameters}, {"GCCL_ALGORITHM", "broadcast=binomial"}}}, [](int) {
        GCCL_Comm world = begin(), copy = copy_of(world);
        const auto counters = [&] {
          GCCL_Metrics m{};
          m.struct_bytes = sizeof m;
          RANK_SUCCESS(GCCL_Get_performance_metrics(world, &m));
          return m;
        };
        const GCCL_Metrics before = counters();
        const auto estimate = [](GCCL_Comm comm, const char* collective, std::size_t count) {
          GCCL_Prediction p{};
          p.struct_bytes = sizeof p;
          RANK_SUCCESS(GCCL_Estimate(comm, collective, count, GCCL_FLOAT32, &p));
          return p;
        };
        const auto near = [](double us, double due) { return us > due * .999999 && us < due * 1.000001; };
        const GCCL_Prediction one = estimate(world, "broadcast", 1000);
        RANK_CHECK(near(one.time_us, 1 + 4000 * .5e-3));
        RANK_CHECK(one.group_time_us == one.time_us);
        RANK_CHECK(std::string(one.algorithm) == "binomial");
        RANK_CHECK(std::string(one.decided_by) == "GCCL_ALGORITHM");
        RANK_CHECK(std::string(one.why) == "by GCCL_ALGORITHM");
        RANK_CHECK(estimate(world, "broadcast", 0).time_us == 0);

        // Calls of a group: on one communicator one after the other, on two at the same time.
        RANK_SUCCESS(GCCL_Group_start());
        RANK_CHECK(near(estimate(world, "broadcast", 1000).group_time_us, 3));
        RANK_CHECK(near(estimate(world, "broadcast", 2000).group_time_us, 3 + 5));
        RANK_CHECK(near(estimate(copy, "broadcast", 2000).group_time_us, 8));
        RANK_CHECK(near(estimate(copy, "broadcast", 2000).group_time_us, 10));
        RANK_SUCCESS(GCCL_Group_end());
        RANK_CHECK(near(estimate(world, "broadcast", 1000).group_time_us, 3));

        for (const char* const collective :
             {"allreduce", "allgather", "reduce_scatter", "reduce", "gather", "scatter", "alltoall", "alltoallv",
              "barrier", "sendrecv", "allgatherv", "reduce_scatterv"})
          for (const std::size_t count : {0, 1, 1 << 20}) {
            const GCCL_Prediction p = estimate(world, collective, count);
            if (!(p.time_us >= 0 && p.time_us < 1e6 && p.algorithm && p.why[0]))
              report(std::string(collective) + " of " + std::to_string(count) + " takes " + std::to_string(p.time_us));
          }
        RANK_CHECK(counters().messages_sent == before.messages_sent);
        RANK_CHECK(counters().plans_built == before.plans_built);
        std::vector<float> x(300);
        const std::string planned = estimate(world, "allreduce", 300).algorithm;
        RANK_SUCCESS(GCCL_Allreduce(x.data(), x.data(), 300, GCCL_FLOAT32, GCCL_SUM, world));
        RANK_CHECK(counters().algorithm[0] == planned);

        const auto wrong = [](GCCL_Result result, const std::string& text) {
          expect(result, GCCL_ERR_INVALID_ARGUMENT, text);
          expect_text(text, "GCCL_Estimate");
        };
        GCCL_Prediction p{};
        wrong(GCCL_Estimate(world, "broadcast", 1, GCCL_INT8, &p), "struct_bytes is 0");
        wrong(GCCL_Estimate(world, "broadcast", 1, GCCL_INT8, nullptr), "is null");
        p.struct_bytes = sizeof p;
        wrong(GCCL_Estimate(world, "brodcast", 1, GCCL_INT8, &p), "did you mean \"broadcast\"?");
        wrong(GCCL_Estimate(world, nullptr, 1, GCCL_INT8, &p), "no collective");
        wrong(GCCL_Estimate(world, "broadcast", 1, 77, &p), "77");
        wrong(GCCL_Estimate(world, "broadcast", ~std::size_t(0), GCCL_INT32, &p), "expected at most");
        wrong(GCCL_Estimate(GCCL_COMM_NULL, "broadcast", 1, GCCL_INT8, &p), "comm");
        RANK_SUCCESS(GCCL_Finalize());
      });
}

TEST_CASE("several ranks of one process that ask about their calls in a group ask about one call") {
  check({.size = 1, .environment = {{"GCCL_SIZE", "3"}}}, [](int) {
    const int ranks[] = {0, 1, 2};
    GCCL_Comm worlds[3] = {};
    RANK_SUCCESS(GCCL_Init_ranks(worlds, ranks, 3, nullptr));
    GCCL_Prediction p{};
    p.struct_bytes = sizeof p;
    RANK_SUCCESS(GCCL_Group_start());
    for (int calls = 1; calls <= 2; ++calls) {
      for (const GCCL_Comm world : worlds) RANK_SUCCESS(GCCL_Estimate(world, "allreduce", 100000, GCCL_FLOAT32, &p));
      RANK_CHECK(p.time_us > 0);
      RANK_CHECK(p.group_time_us == calls * p.time_us);
    }
    RANK_SUCCESS(GCCL_Group_end());
    RANK_SUCCESS(GCCL_Finalize());
  });
}
