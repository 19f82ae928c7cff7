// What the library says on standard error, and what it refuses to begin with: GCCL_LOG, GCCL_ALGORITHM, wrong
// variables.
#include <doctest/doctest.h>
#include <sched.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

// What all ranks printed while doing some calls, each several times.
std::string said(const Job& job) {
  const std::vector<End> ends = run(job, [&](int rank) {
    for (int round = 0; round < 2; ++round) {
      GCCL_Comm world = begin();
      std::vector<float> x(1000, 1), y(2000);
      const std::size_t counts[] = {2, 2}, places[] = {5, 0};
      for (int i = 0; i < 5 && round == 0; ++i) {
        RANK_SUCCESS(GCCL_Allreduce(x.data(), y.data(), 1000, GCCL_FLOAT32, GCCL_SUM, world));
        RANK_SUCCESS(GCCL_Allreduce(x.data(), y.data(), 10, GCCL_FLOAT32, GCCL_SUM, world));
        if (job.size == 2)
          RANK_SUCCESS(GCCL_Alltoallv(x.data(), counts, places, y.data(), counts, places, GCCL_FLOAT32, world));
        if (job.size == 2)
          RANK_SUCCESS(GCCL_Alltoallv(x.data(), counts, nullptr, y.data(), counts, nullptr, GCCL_FLOAT32, world));
      }
      RANK_CHECK(y[9] == (round == 0 ? float(job.size) : 0));
      (void)rank;
      RANK_SUCCESS(GCCL_Finalize());
    }
  });
  std::string text;
  for (const End& e : ends) {
    CHECK_MESSAGE(e.good(), texts(ends));
    text += e.text;
  }
  return text;
}

TEST_CASE("by default nothing is said") { CHECK(said({.size = 2, .backends = "shm,tcp"}) == ""); }

TEST_CASE("an unknown variable is warned about once, by one rank, with the nearest name") {
  const std::string text = said({.size = 3, .environment = {{"GCCL_ALGORITM", "allreduce=ring"}}});
  CHECK(text == "gccl warning: GCCL_ALGORITM is no variable of GCCL: did you mean GCCL_ALGORITHM?\n");
  CHECK(said({.size = 2, .environment = {{"GCCL_ALGORITM", "x"}, {"GCCL_LOG", "0"}}}) == "");
}

TEST_CASE("what cannot serve a collective is warned about once, whatever the lengths of its calls") {
  const std::string text =
      said({.size = 2, .backends = "tcp", .nodes = {0, 1}, .environment = {{"GCCL_ALGORITHM", "allreduce=nvls"}}});
  CHECK(count(text, "cannot serve allreduce") == 1);
}

TEST_CASE("GCCL_LOG=2 says who is where, the nodes, the settings, and each plan once") {
  std::string text = said({.size = 4,
                           .backends = "shm,tcp",
                           .nodes = {0, 1, 0, 1},
                           .environment = {{"GCCL_LOG", "2"}, {"GCCL_TIMEOUT_MS", "60000"}}});
  for (int r = 0; r < 4; ++r) {
    const std::string head = "gccl info: rank " + std::to_string(r) + " of 4: GCCL " GCCL_TEST_VERSION ", process ";
    CHECK_MESSAGE(count(text, head) == 2, text);  // two starts
  }
  CHECK_MESSAGE(count(text, "(node 1), shm to rank 3 of 4, tcp to ranks 0, 2 of 4\n") == 2, text);
  CHECK_MESSAGE(
      count(text, "gccl info: topology: 2 nodes: node 0 has ranks 0, 2 of 4; node 1 has ranks 1, 3 of 4\n") == 2, text);
  CHECK_MESSAGE(count(text, "gccl info: settings: backends shm,tcp, timeout 60000 ms, ") == 2, text);
  CHECK(count(text, "GCCL_TIMEOUT_MS=60000") == 2);
  CHECK(count(text, "known to these ranks alone") == 0);  // the secret
  CHECK_MESSAGE(count(text, "gccl info: plan: allreduce of 1000 elements of 4 bytes on 4 ranks: ") == 1, text);
  CHECK_MESSAGE(count(text, "gccl info: plan: allreduce of 10 elements of 4 bytes on 4 ranks: ") == 1, text);
  CHECK_MESSAGE(count(text, "over shm and tcp; by ") >= 2, text);
  // What the program did not call (Finalize's comparison) is named as that.
  CHECK_MESSAGE(count(text, "plan: allgather of ") == count(text, " of 1 byte on 4 ranks, for GCCL's own use: "), text);
  CHECK_MESSAGE(count(text, "for GCCL's own use: ") > 0, text);
  text = said({.size = 2, .environment = {{"GCCL_LOG", "2"}, {"GCCL_ALGORITHM", "allreduce=ring"}}});
  CHECK_MESSAGE(count(text,
                      "allreduce of 1000 elements of 4 bytes on 2 ranks: ring, 1 chunk, 1 channel, "
                      "compiled, over shm; by GCCL_ALGORITHM\n") == 1,
                text);
  CHECK_MESSAGE(count(text, "gccl info: plan: alltoallv on 2 ranks: pairwise") == 1, text);
}

TEST_CASE("more ranks than processors are those that share what they are bound to") {
  cpu_set_t all;
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
  std::vector<std::size_t> processors;
  for (std::size_t p = 0; p < CPU_SETSIZE; ++p)
    if (CPU_ISSET(p, &all)) processors.push_back(p);
  const auto outnumber = [&](int size, std::size_t apart) {
    const std::vector<End> ends = run({.size = size, .environment = {{"GCCL_LOG", "2"}}}, [&](int rank) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(processors[std::size_t(rank) * apart], &one);
      RANK_CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
      begin();
      RANK_SUCCESS(GCCL_Finalize());
    });
    const std::string text = texts(ends);
    CHECK_MESSAGE(count(text, "more ranks than processors ") == 1, text);
    return count(text, "more ranks than processors yes") == 1;
  };
  CHECK_FALSE(outnumber(1, 0));
  CHECK(outnumber(2, 0));
  if (processors.size() > 1) CHECK_FALSE(outnumber(2, 1));
}

TEST_CASE("an algorithm that was asked for and cannot serve a call is warned about, once, with what is used") {
  const std::string text = said({.size = 2, .environment = {{"GCCL_ALGORITHM", "alltoallv=hierarchical"}}});
  CHECK(text ==
        "gccl warning: GCCL_ALGORITHM: hierarchical cannot serve alltoallv on 2 ranks (it takes blocks side by side, "
        "without displacements): pairwise is used\n");
}

TEST_CASE("wrong values and names are errors of the start that say what was expected") {
  const std::vector<std::pair<std::map<std::string, std::string>, std::string>> cases = {
      {{{"GCCL_TIMEOUT_MS", "abc"}}, "GCCL_TIMEOUT_MS is \"abc\", expected milliseconds from 1 on, or -1 for no limit"},
      {{{"GCCL_CHECK", "yes"}}, "GCCL_CHECK is \"yes\", expected a whole number from 0 to 2"},
      {{{"GCCL_LOG", "info"}}, "GCCL_LOG is \"info\", expected a whole number from 0 to 2"},
      {{{"GCCL_ALGORITHM", "allreduce=rng"}}, "there is no algorithm \"rng\" for allreduce; did you mean \"ring\"?"},
      {{{"GCCL_ALGORITHM", "alreduce=ring"}}, "there is no collective \"alreduce\"; did you mean \"allreduce\"?"},
      {{{"GCCL_ALGORITHM", "barrier=whatever_it_takes"}}, "; expected one of dissemination, tree, direct"},
      {{{"GCCL_ALGORITHM", "allreduce=hierarchical(ring,swing),broadcast=chian"}}, "; did you mean \"chain\"?"},
      {{{"GCCL_ALGORITHM", "ring"}}, "\"ring\" is not COLLECTIVE=ALGORITHM"},
      {{{"GCCL_ALGORITHM", "allreduce=ring,broadcast=chain,allreduce=tree"}},
       "ring and tree for allreduce: expected one"},
  };
  for (const auto& wrong : cases)
    check({.size = 1, .environment = wrong.first}, [&words = wrong.second](int) {
      GCCL_Comm world = GCCL_COMM_NULL;
      RANK_CHECK(GCCL_Init(&world, nullptr) == GCCL_ERR_INVALID_ARGUMENT);
      const std::string text = GCCL_Last_error();
      if (text.find(words) == text.npos) report("\"" + text + "\" does not say \"" + words + "\"");
      RANK_CHECK(world == GCCL_COMM_NULL);
    });
}

}  // namespace
