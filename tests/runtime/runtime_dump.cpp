// What ranks leave behind when a call takes too long: dumps that say who waits for whom.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "libgccl/json/pickle.hpp"
#include "tests/support/program.hpp"
#include "tests/support/rank_job.hpp"

using namespace ranks;
using Json = nlohmann::json;

namespace {

std::string contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Rank 2 of 3 never comes to the second all-reduce.
void hang(const std::string& backends, const std::string& prefix, const std::string& format) {
  Job job = {.size = 3, .backends = backends};
  job.environment = {{"GCCL_TIMEOUT_MS", "300"}, {"GCCL_DUMP", prefix}, {"GCCL_DUMP_FORMAT", format}};
  check(job, [](int rank) {
    GCCL_Comm world = begin();
    double x = 1, sum = 0;
    RANK_SUCCESS(GCCL_Allreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, world));
    if (rank == 2)
      ::usleep(500000);
    else
      expect(GCCL_Allreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, world), GCCL_ERR_TIMEOUT, "allreduce");
    std::_Exit(any_reported());
  });
}

// Its ranks write dumps in GCCL's own form at the signal.
Job dumping_job(const std::string& prefix) {
  return {.size = 2,
          .environment = {{"GCCL_DUMP", prefix}, {"GCCL_DUMP_SIGNAL", "USR1"}, {"GCCL_DUMP_FORMAT", "json"}}};
}

}  // namespace

TEST_CASE("ranks whose call takes too long leave dumps in either form, and the one that did not come leaves none") {
  gccl::test::Folder folder;
  for (const char* backends : {"shm", "tcp"}) {
    const std::string prefix = folder.path / (std::string(backends) + "_");
    hang(backends, prefix, "json");
    for (const char* rank : {"0", "1"}) {
      const std::string text = contents(prefix + rank + ".json");
      CAPTURE(text);
      CHECK(contains(text, "\"schema\": \"gccl/dump/1\""));
      CHECK(text == Json::parse(text).dump(1) + "\n");  // keys in order, each once
      CHECK(contains(text, "\"text\": \"allreduce #2 of 1 x f64, sum\""));
      CHECK(contains(text, "\"state\": \"started\""));
      CHECK(contains(text, "\"waits_for\""));
    }
    CHECK(contents(prefix + "2.json").empty());
  }
  const std::string prefix = folder.path / "fr_";
  hang("shm", prefix, "torch");
  const std::string pickle = contents(prefix + "0");
  CHECK(pickle.substr(0, 3) == "\x80\x02}");
  CHECK(contains(pickle, "nccl:all_reduce"));
  CHECK(contains(pickle, "started"));
}

TEST_CASE("a rank writes a dump when it is asked, by a call or by a signal") {
  gccl::test::Folder folder;
  const std::string prefix = folder.path / "fr_", asked = folder.path / "asked.json";
  check(dumping_job(prefix), [&](int rank) {
    GCCL_Comm world = begin();
    double x = 1, sum = 0;
    RANK_SUCCESS(GCCL_Allreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, world));
    if (rank == 0) {
      RANK_SUCCESS(GCCL_Dump(world, asked.c_str()));
      expect(GCCL_Dump(world, ""), GCCL_ERR_INVALID_ARGUMENT, "no path");
      expect(GCCL_Dump(world, (folder.path / "none/x").c_str()), GCCL_ERR_SYSTEM, "no folder");
      expect_text("cannot write the dump", "why");
      for (int i = 0; i < 200 && contents(prefix + "1.json").empty(); ++i) {
        ::usleep(10000);
      }
      RANK_CHECK(contains(contents(prefix + "1.json"), "GCCL_DUMP_SIGNAL"));
    } else {
      ::raise(SIGUSR1);
    }
    RANK_SUCCESS(GCCL_Barrier(world));
    RANK_SUCCESS(GCCL_Finalize());
  });
  CHECK(contains(contents(asked), "\"state\": \"completed\""));
}

TEST_CASE("a world that comes after one in which a dump was asked for writes none by itself") {
  gccl::test::Folder folder;
  const std::string prefix = folder.path / "fr_";
  check(dumping_job(prefix), [&](int rank) {
    GCCL_Comm world = begin();
    const std::string path = prefix + std::to_string(rank) + ".json";
    const auto wait_for_each_other = [&] {
      if (rank == 1) ::usleep(300000);
      RANK_SUCCESS(GCCL_Barrier(world));
      if (rank == 0) ::usleep(300000);
      RANK_SUCCESS(GCCL_Barrier(world));
    };
    // Written where a wait stalls, which none need do where both are late.
    const auto both_have_dumped = [&] {
      int both = 0;
      for (int i = 0; i < 20 && !both; ++i) {
        wait_for_each_other();
        both = contains(contents(path), "GCCL_DUMP_SIGNAL");
        RANK_SUCCESS(GCCL_Allreduce(GCCL_IN_PLACE, &both, 1, GCCL_INT32, GCCL_MIN, world));
      }
      return both != 0;
    };
    ::raise(SIGUSR1);
    RANK_CHECK(both_have_dumped());
    RANK_SUCCESS(GCCL_Finalize());
    std::filesystem::remove(path);
    world = begin();
    wait_for_each_other();
    RANK_CHECK(!std::filesystem::exists(path));
    ::raise(SIGUSR1);
    RANK_CHECK(both_have_dumped());
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("gccl doctor names the rank whose operation or root differs, by dumps of either form") {
  gccl::test::Folder folder;
  const std::string sum = "allreduce of 4 x f32, sum", max = "allreduce of 4 x f32, max";
  const std::string from_0 = "broadcast of 4 x f32, root 0", from_1 = "broadcast of 4 x f32, root 1";
  for (const bool root : {false, true})
    for (const char* format : {"torch", "json"}) {
      const std::string prefix = folder.path / (std::string(format) + (root ? "_root_" : "_op_"));
      check({.size = 4,
             .environment = {{"GCCL_TIMEOUT_MS", "5000"}, {"GCCL_DUMP", prefix}, {"GCCL_DUMP_FORMAT", format}}},
            [&](int rank) {
              GCCL_Comm world = begin();
              const bool other = rank == 2;
              float x[4] = {}, y[4];
              RANK_SUCCESS(GCCL_Allreduce(x, y, 4, GCCL_FLOAT32, GCCL_SUM, world));
              if (other) ::usleep(200000);  // when it is found, all others have entered it
              GCCL_Result result = root ? GCCL_Broadcast(x, 4, GCCL_FLOAT32, other, world)
                                        : GCCL_Allreduce(x, y, 4, GCCL_FLOAT32, other ? GCCL_MAX : GCCL_SUM, world);
              if (result == GCCL_SUCCESS) result = GCCL_Barrier(world);  // what a rank only sends it need not wait for
              RANK_CHECK(result != GCCL_SUCCESS);
              std::_Exit(any_reported());
            });
      std::vector<std::string> words = {"doctor"};
      for (const char* rank : {"0", "1", "2", "3"})
        words.push_back(prefix + rank + (format == std::string("json") ? ".json" : ""));
      const gccl::test::Ended said = gccl::test::run_gccl(words);
      CAPTURE(said.out + said.err);
      CHECK(said.code == 1);
      CHECK(contains(said.out, "culprit: rank 2\ncall #2 differs: "));
      CHECK(contains(said.out, "rank 2 calls " + (root ? from_1 : max)));
      CHECK(contains(said.out, "ranks 0, 1, 3 call " + (root ? from_0 : sum)));
    }
}

TEST_CASE("a rank that writes a dump after a call has failed says what was in flight then") {
  gccl::test::Folder folder;
  for (const bool message : {false, true})
    for (const char* end : {"", ".json"}) {
      const std::string prefix =
          folder.path / (std::string(message ? "message_" : "call_") + (*end ? "own_" : "torch_"));
      const auto file = [&](int rank) { return prefix + std::to_string(rank) + end; };
      check({.size = 3}, [&](int rank) {
        GCCL_Comm world = begin();
        double x = 1, sum = 0;
        RANK_SUCCESS(GCCL_Allreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, world));
        RANK_SUCCESS(GCCL_Comm_set_timeout(world, 300));
        if (rank == 2) {
          ::usleep(600000);
        } else if (message) {
          expect(GCCL_Recv(&x, 1, GCCL_FLOAT64, 2, world), GCCL_ERR_TIMEOUT, "recv");
        } else {
          GCCL_Request next = nullptr;
          RANK_SUCCESS(GCCL_Iallreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, world, &next));
          expect(GCCL_Barrier(world), GCCL_ERR_TIMEOUT, "barrier");
          expect(GCCL_Wait(&next), GCCL_ERR_TIMEOUT, "allreduce");
        }
        RANK_SUCCESS(GCCL_Dump(world, file(rank).c_str()));
        std::_Exit(any_reported());
      });
      const std::string text = contents(file(0));
      const gccl::test::Ended said = gccl::test::run_gccl({"doctor", file(0), file(1), file(2)});
      CAPTURE(text);
      CAPTURE(said.out + said.err);
      CHECK(said.code == 1);
      CHECK(contains(said.out, "culprit: rank 2\n"));
      if (message) {
        CHECK(contains(said.out, "waits to receive 1 x f64 from rank 2, which has not sent it"));
      } else {
        CHECK(contains(said.out, "ranks 0, 1 wait in call #2 (allreduce of 1 x f64, sum); rank 2 has not entered it"));
        CHECK(contains(text, "scheduled"));  // the barrier behind it
        CHECK(contains(text, "waits_for"));
      }
    }
}

TEST_CASE("in the dump of a rank that waits in GCCL_Finalize that has not completed") {
  gccl::test::Folder folder;
  const std::string prefix = folder.path / "fr_";
  check(dumping_job(prefix), [&](int rank) {
    GCCL_Comm world = begin();
    double x = 1, sum = 0;
    RANK_SUCCESS(GCCL_Allreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, world));
    const std::string file = prefix + "1.json";
    if (rank == 1)
      ::raise(SIGUSR1);
    else
      for (int i = 0; i < 200 && contents(file).empty(); ++i) ::usleep(10000);
    RANK_SUCCESS(GCCL_Finalize());
  });
  const std::string text = contents(prefix + "1.json");
  CAPTURE(text);
  CHECK(contains(text, "\"text\": \"Finalize or Comm_free (collective #2)\""));
  CHECK(contains(text, "\"state\": \"started\""));
}

// The rank that does not come is in no call. Each of the others waits in one communicator's call, with one of another
// in flight; which is the first to take too long is found while the thread that waits for the other polls.
TEST_CASE("a failure that is found while a thread waits on another communicator leaves a dump of both") {
  gccl::test::Folder folder;
  const std::string prefix = folder.path / "fr_";
  Job job = {.size = 3};
  job.environment = {{"GCCL_DUMP", prefix}, {"GCCL_DUMP_FORMAT", "json"}};
  check(job, [](int rank) {
    GCCL_Comm world = begin(), other = copy_of(world);
    double x[2] = {1, 1}, sum[2] = {};
    RANK_SUCCESS(GCCL_Allreduce(x, sum, 1, GCCL_FLOAT64, GCCL_SUM, other));
    RANK_SUCCESS(GCCL_Comm_set_timeout(other, 300));
    RANK_SUCCESS(GCCL_Comm_set_timeout(world, 2000));
    if (rank == 2) {
      ::usleep(1000000);
    } else {
      GCCL_Request request = nullptr;
      RANK_SUCCESS(GCCL_Iallreduce(x, sum, 1, GCCL_FLOAT64, GCCL_SUM, other, &request));
      RANK_CHECK(GCCL_Allreduce(x + 1, sum + 1, 1, GCCL_FLOAT64, GCCL_SUM, world) != GCCL_SUCCESS);
      expect(GCCL_Wait(&request), GCCL_ERR_TIMEOUT, "other");
    }
    std::_Exit(any_reported());
  });
  const std::string text = contents(prefix + "0.json");
  CAPTURE(text);
  CHECK(contains(text, "\"world\": true"));
  CHECK(contains(text, "\"world\": false"));
  CHECK(contains(text, "\"text\": \"allreduce #2 of 1 x f64, sum\""));
  CHECK(!contains(text, "\"skipped\""));
}

TEST_CASE("of calls with lengths a dump has the sum, sizes that PyTorch's analyser accepts, and whether ranks agree") {
  gccl::test::Folder folder;
  const auto file = [&](int rank, const char* end = "") { return folder.path / ("fr_" + std::to_string(rank) + end); };
  check({.size = 2}, [&](int rank) {
    GCCL_Comm world = begin();
    double in[8] = {}, out[8] = {};
    const std::size_t counts[] = {2, 3};
    RANK_SUCCESS(GCCL_Allgatherv(in, out, counts, nullptr, GCCL_FLOAT64, world));
    RANK_SUCCESS(GCCL_Reduce_scatterv(in, out, counts, GCCL_FLOAT64, GCCL_SUM, world));
    const std::size_t mine[] = {counts[rank], counts[rank]};
    RANK_SUCCESS(GCCL_Alltoallv(in, counts, nullptr, out, mine, nullptr, GCCL_FLOAT64, world));
    RANK_SUCCESS(GCCL_Dump(world, file(rank).c_str()));
    RANK_SUCCESS(GCCL_Dump(world, file(rank, ".json").c_str()));
    RANK_SUCCESS(GCCL_Finalize());
  });
  Json dump;
  std::string error;
  REQUIRE(gccl::json::from_pickle(contents(file(1)), &dump, &error));
  const auto& entries = dump["entries"];
  REQUIRE(entries.size() == 3);
  // As torch/distributed/flight_recorder/components/types.py compares them: out = in * ranks, and the other way round.
  CHECK(entries[0]["profiling_name"] == "nccl:all_gather");
  CHECK(entries[0]["input_sizes"].dump() == "[[3]]");
  CHECK(entries[0]["output_sizes"].dump() == "[[6]]");
  CHECK(entries[1]["profiling_name"] == "nccl:reduce_scatter");
  CHECK(entries[1]["input_sizes"].dump() == "[[6]]");
  CHECK(entries[1]["output_sizes"].dump() == "[[3]]");
  const auto& calls = dump["gccl"]["communicators"][0]["calls"];
  CHECK(calls[0]["count"] == 5);
  CHECK(calls[1]["count"] == 5);
  CHECK(calls[2]["count"] == 6);
  CHECK(calls[0]["lengths"] == calls[1]["lengths"]);
  CHECK(!calls[2].contains("lengths"));
  CHECK(gccl::test::run_gccl({"doctor", file(0), file(1)}).code == 0);
  // Another rank's lengths.
  Json other = Json::parse(contents(file(0, ".json")));
  other["communicators"][0]["calls"][1]["lengths"] = "0123456789abcdef";
  std::ofstream(file(0, ".json")) << other.dump();
  const gccl::test::Ended said = gccl::test::run_gccl({"doctor", file(0, ".json"), file(1, ".json")});
  CHECK_MESSAGE(contains(said.out, "call #2 differs: "), said.out << said.err);
}

TEST_CASE("a rank that waits for a message of its own is named by its dump") {
  gccl::test::Folder folder;
  for (const char* end : {"", ".json"}) {
    const auto file = [&](int rank) { return folder.path / ("fr_" + std::to_string(rank) + end); };
    check({.size = 2}, [&](int rank) {
      GCCL_Comm world = begin();
      double x = 1;
      RANK_SUCCESS(GCCL_Comm_set_timeout(world, 300));
      GCCL_Request request = nullptr;
      if (rank == 0) RANK_SUCCESS(GCCL_Irecv(&x, 1, GCCL_FLOAT64, 0, world, &request));
      RANK_SUCCESS(GCCL_Dump(world, file(rank).c_str()));
      std::_Exit(any_reported());
    });
    const gccl::test::Ended said = gccl::test::run_gccl({"doctor", file(0), file(1)});
    CAPTURE(said.out + said.err);
    CHECK(contains(
        said.out,
        "culprit: rank 0\nrank 0 has begun to receive 1 x f64 from rank 0, which is itself, and has not sent it"));
  }
}

TEST_CASE("a dump says whether a thread waits, which messages are in flight, and what the communicator failed with") {
  gccl::test::Folder folder;
  const std::string early = folder.path / "early.json", late = folder.path / "late.json";
  check({.size = 2}, [&](int rank) {
    GCCL_Comm world = begin();
    double x = 1, y[2] = {};
    RANK_SUCCESS(GCCL_Barrier(world));
    if (rank == 1) {
      RANK_SUCCESS(GCCL_Send(&x, 1, GCCL_FLOAT64, 0, world));
      ::usleep(600000);
      std::_Exit(any_reported());
    }
    RANK_SUCCESS(GCCL_Comm_set_timeout(world, 300));
    RANK_SUCCESS(GCCL_Recv(y, 1, GCCL_FLOAT64, 1, world));
    GCCL_Request request = GCCL_REQUEST_NULL, next = GCCL_REQUEST_NULL;
    RANK_SUCCESS(GCCL_Irecv(y, 1, GCCL_FLOAT64, 1, world, &request));
    RANK_SUCCESS(GCCL_Iallreduce(&x, y + 1, 1, GCCL_FLOAT64, GCCL_SUM, world, &next));
    RANK_SUCCESS(GCCL_Dump(world, early.c_str()));
    expect(GCCL_Wait(&next), GCCL_ERR_TIMEOUT, "allreduce");
    RANK_SUCCESS(GCCL_Dump(world, late.c_str()));
    std::_Exit(any_reported());
  });
  const Json before = Json::parse(contents(early)), after = Json::parse(contents(late));
  CHECK(after["written_ns"].get<std::int64_t>() - before["written_ns"].get<std::int64_t>() > 200'000'000);
  for (const Json* const d : {&before, &after}) {
    const Json& c = (*d)["communicators"][0];
    CAPTURE(c.dump());
    CHECK(c["messages"] == Json::array({{{"peer", 1}, {"sent", 0}, {"received", 2}}}));
    REQUIRE(c["transfers"].size() == 1);
    CHECK(c["transfers"][0]["number"] == 2);
    CHECK(c["transfers"][0]["waits"] == false);
    CHECK(!c["calls"][0].contains("waits"));
    CHECK(c["calls"][1]["waits"] == (d == &after));
    CHECK(c.contains("failure_code") == (d == &after));
  }
  CHECK(after["communicators"][0]["failure_code"] == GCCL_ERR_TIMEOUT);
  CHECK(after["communicators"][0]["failure_rank"] == 1);
}

TEST_CASE("the oldest collectives in flight are in a dump, however many are begun after them") {
  gccl::test::Folder folder;
  const std::string early = folder.path / "early.json", late = folder.path / "late.json";
  check({.size = 2}, [&](int rank) {
    GCCL_Comm world = begin();
    std::vector<float> x(500);
    RANK_SUCCESS(GCCL_Barrier(world));
    if (rank == 0) {
      RANK_SUCCESS(GCCL_Comm_set_timeout(world, 300));
      GCCL_Request last = GCCL_REQUEST_NULL;
      for (float& each : x) {
        if (last != GCCL_REQUEST_NULL) RANK_SUCCESS(GCCL_Request_free(&last));
        RANK_SUCCESS(GCCL_Iallreduce(GCCL_IN_PLACE, &each, 1, GCCL_FLOAT32, GCCL_SUM, world, &last));
      }
      RANK_SUCCESS(GCCL_Dump(world, early.c_str()));
      expect(GCCL_Wait(&last), GCCL_ERR_TIMEOUT, "the last");
      RANK_SUCCESS(GCCL_Dump(world, late.c_str()));
    } else {
      ::usleep(600000);
    }
    std::_Exit(any_reported());
  });
  for (const std::string& file : {early, late}) {
    const Json dump = Json::parse(contents(file));
    const Json& calls = dump["communicators"][0]["calls"];
    CAPTURE(calls[0].dump());
    CHECK(calls.size() == 2 * 127);
    CHECK(calls[0]["sequence"] == 2);  // after the barrier
    CHECK(calls[0]["state"] == "started");
    CHECK(calls[0].contains("waits_for"));
    CHECK(calls[126]["sequence"] == 128);
    CHECK(calls[127]["sequence"] == 501 - 126);
    for (const Json& c : calls) CHECK(c["waits"] == (file == late));  // for the last, and so for those before it
  }
}

TEST_CASE("a function of GCCL_Op_create that throws leaves dumps on all ranks; what the caller drops leaves none") {
  gccl::test::Folder folder;
  const std::string thrown = folder.path / "thrown_", dropped = folder.path / "dropped_";
  for (const std::string& prefix : {thrown, dropped})
    check({.size = 2, .environment = {{"GCCL_DUMP", prefix}, {"GCCL_DUMP_FORMAT", "json"}}}, [&](int rank) {
      GCCL_Comm world = begin();
      static int me = 0;
      me = rank;
      GCCL_Op op = 0;
      RANK_SUCCESS(GCCL_Op_create(
          [](const void*, void*, std::size_t, GCCL_Dtype, void*) {
            if (me == 1) throw std::runtime_error("a NaN");
          },
          nullptr, &op));
      std::vector<float> x(300000);
      if (prefix == thrown) {
        expect(GCCL_Allreduce(GCCL_IN_PLACE, x.data(), x.size(), GCCL_FLOAT32, op, world), GCCL_ERR_INVALID_USAGE, "");
      } else {
        GCCL_Comm other = GCCL_COMM_NULL;
        RANK_SUCCESS(GCCL_Comm_split(world, 0, rank, &other));
        GCCL_Request request = GCCL_REQUEST_NULL;
        if (rank == 0) RANK_SUCCESS(GCCL_Irecv(x.data(), 1, GCCL_FLOAT32, 1, other, &request));
        const GCCL_Result result = GCCL_Finalize();
        if (rank == 0) RANK_CHECK(result == GCCL_ERR_INVALID_USAGE);
      }
      std::_Exit(any_reported());
    });
  for (const char* rank : {"0.json", "1.json"}) CHECK(contains(contents(thrown + rank), "threw an exception: a NaN"));
  CHECK(contents(dropped + "0.json").empty());
}
