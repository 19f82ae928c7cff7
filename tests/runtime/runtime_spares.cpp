// A program whose ranks are killed, under `gccl launch` with spares, and with ranks that are started again: it grows to
// its size again and comes to its end.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/program.hpp"
#include "tests/support/rank_job.hpp"

namespace {

constexpr int kSize = 3;
constexpr std::int32_t kSteps = 40;

#define MUST_SUCCEED(call)                                                               \
  do {                                                                                   \
    if (const GCCL_Result result_ = (call); result_ != GCCL_SUCCESS) {                   \
      std::fprintf(stderr, #call " returned %d: %s\n", int(result_), GCCL_Last_error()); \
      std::_Exit(9);                                                                     \
    }                                                                                    \
  } while (false)

// Where all are, after a new rank has come: a step that all have completed, from a rank that was there.
std::int32_t catch_up(GCCL_Comm comm, std::int32_t step) {
  std::int32_t mine = step, least = 0;
  MUST_SUCCEED(GCCL_Allreduce(&mine, &least, 1, GCCL_INT32, GCCL_MAX, comm));
  return least;
}

// Steps, each an all-reduce. Rank 1 kills itself before step 10, and the process that has come in its place before step
// 25.
void live() {
  const char* const go = std::getenv("GCCL_TEST_GO");  // a file to wait for
  while (go && ::access(go, F_OK) != 0) ::usleep(1000);
  GCCL_Comm comm = GCCL_COMM_NULL;
  MUST_SUCCEED(GCCL_Init(&comm, nullptr));
  int rank = -1, size = 0, joined = 0;
  MUST_SUCCEED(GCCL_Comm_get_joined(comm, nullptr, 0, &joined));
  const std::int32_t first = joined > 0 ? catch_up(comm, 0) : 0;
  for (std::int32_t step = first; step < kSteps;) {
    MUST_SUCCEED(GCCL_Comm_rank(comm, &rank));
    MUST_SUCCEED(GCCL_Comm_size(comm, &size));
    if (rank == 1 && ((first == 0 && step == 10) || (first == 10 && step == 25))) ::kill(::getpid(), SIGKILL);
    double mine = rank + 1.0, sum = 0;
    GCCL_Result r = GCCL_Allreduce(&mine, &sum, 1, GCCL_FLOAT64, GCCL_SUM, comm);
    if (r == GCCL_SUCCESS) {
      if (size != kSize || sum != kSize * (kSize + 1) / 2) std::_Exit(8);
      ++step;
      continue;
    }
    if (r != GCCL_ERR_PEER_LOST) MUST_SUCCEED(r);
    GCCL_Comm whole = GCCL_COMM_NULL;
    MUST_SUCCEED(GCCL_Comm_grow(comm, 1, 60000, &whole));
    GCCL_Comm_free(&comm);
    comm = whole;
    step = catch_up(comm, step);
  }
  MUST_SUCCEED(GCCL_Finalize());
  std::printf("rank %d of %d: all steps from %d on\n", rank, size, int(first));
}

}  // namespace

TEST_CASE("a rank of the program that is launched below" * doctest::skip()) { live(); }

TEST_CASE("a program under gccl launch outlives ranks that are killed, with spares or by starting them again") {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  for (const std::string backends : {"shm", "tcp"})
    for (const std::vector<std::string>& options : {std::vector<std::string>{"--spares", "2"},
                                                    {"--spares", "3"},
                                                    {"--restart", "2"},
                                                    {"--spares", "1", "--restart", "1"}}) {
      std::vector<std::string> arguments = {"launch", "-n", "3", "--timeout", "120"};
      arguments.insert(arguments.end(), options.begin(), options.end());
      arguments.insert(arguments.end(),
                       {"--", self, "--no-skip", "--test-case=a rank of the program that is launched below"});
      const gccl::test::Ended e = gccl::test::Program(arguments, {.environment = {"GCCL_BACKENDS=" + backends}}).wait();
      CAPTURE(backends);
      CAPTURE(options[0] + options[1]);
      CHECK_MESSAGE(e.code == 0, e.err << e.out);
      for (const char* line : {"rank 0 of 3: all steps from 0 on", "rank 1 of 3: all steps from 25 on",
                               "rank 2 of 3: all steps from 0 on"})
        CHECK_MESSAGE(e.lines().contains(line), e.err << e.out);
    }
}

TEST_CASE("a launcher that stands still meanwhile, and sees all ends at once, knows a job that has done well") {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const gccl::test::Folder folder;
  gccl::test::Program launcher({"launch", "-n", "3", "--spares", "2", "--timeout", "120", "--", self, "--no-skip",
                                "--test-case=a rank of the program that is launched below"},
                               {.environment = {"GCCL_TEST_GO=" + (folder.path / "go").string()}});
  const std::string id = std::to_string(launcher.pid());
  // Of its processes in this state those that run the program: one is the launcher's own guard.
  const auto processes = [&](const std::string& state) {
    std::istringstream all(gccl::test::read_text("/proc/" + id + "/task/" + id + "/children"));
    std::size_t count = 0;
    for (std::string pid; all >> pid;)
      count += gccl::test::read_text("/proc/" + pid + "/stat").find("(test_runtime) " + state) != std::string::npos;
    return count;
  };
  const auto comes = [](const auto& condition) {
    const auto began = ranks::Clock::now();
    while (!condition() && ranks::seconds_since(began) < 60) ::usleep(1000);
    return condition();
  };
  REQUIRE(comes([&] { return processes("") == 5; }));
  ::kill(launcher.pid(), SIGSTOP);
  folder.write("go", "");
  const bool all_ended = comes([&] { return processes("Z") == 5; });
  ::kill(launcher.pid(), SIGCONT);
  CHECK(all_ended);
  const gccl::test::Ended e = launcher.wait();
  CHECK_MESSAGE(e.code == 0, e.err << e.out);
}

TEST_CASE("ranks that outlive two failures leave the dumps of the first, all of one world") {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const gccl::test::Folder folder;
  const std::string prefix = folder.path / "fr_";
  const gccl::test::Ended e =
      gccl::test::Program({"launch", "-n", "3", "--timeout", "120", "--spares", "2", "--", self, "--no-skip",
                           "--test-case=a rank of the program that is launched below"},
                          {.environment = {"GCCL_DUMP=" + prefix, "GCCL_DUMP_FORMAT=json"}})
          .wait();
  CHECK_MESSAGE(e.code == 0, e.err << e.out);
  for (const char* rank : {"0", "2"}) {
    const std::string text = gccl::test::read_text(prefix + rank + ".json");
    CAPTURE(text);
    CHECK(text.find("\"text\": \"allreduce #11 of 1 x f64, sum\"") != std::string::npos);
    CHECK(text.find("#12") == std::string::npos);
  }
  const gccl::test::Ended said = gccl::test::run_gccl({"doctor", prefix + "0.json", prefix + "2.json"});
  CHECK_MESSAGE(said.out.find("culprit: rank 1\n") == 0, said.out << said.err);
}

// bash, as it closes descriptors of two digits.
TEST_CASE("a spare may be started by a program that closes all descriptors but the standard streams") {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string closes =
      "for fd in $(ls /proc/$$/fd); do if [ $fd -gt 2 ]; then eval \"exec $fd>&-\"; fi; done; exec \"$@\"";
  const gccl::test::Ended e =
      gccl::test::Program({"launch", "-n", "3", "--timeout", "120", "--spares", "2", "--", "bash", "-c", closes, "bash",
                           self, "--no-skip", "--test-case=a rank of the program that is launched below"})
          .wait();
  CHECK_MESSAGE(e.code == 0, e.err << e.out);
  for (const char* line :
       {"rank 0 of 3: all steps from 0 on", "rank 1 of 3: all steps from 25 on", "rank 2 of 3: all steps from 0 on"})
    CHECK_MESSAGE(e.lines().contains(line), e.err << e.out);
}

#ifndef __SANITIZE_THREAD__  // which starts threads of its own: only a process of one thread is refused
TEST_CASE("a rank that joins while it is one" * doctest::skip()) {
  GCCL_Comm comm = GCCL_COMM_NULL, again = GCCL_COMM_NULL;
  MUST_SUCCEED(GCCL_Init(&comm, nullptr));
  int rank = -1;
  MUST_SUCCEED(GCCL_Comm_rank(comm, &rank));
  if (rank == 1) {
    if (GCCL_Join(&again, nullptr) != GCCL_ERR_INVALID_USAGE) std::_Exit(7);
    std::printf("twice: %s\n", GCCL_Last_error());
  }
  MUST_SUCCEED(GCCL_Finalize());
}

TEST_CASE("a rank that joins a second time gets an error") {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const gccl::test::Ended e = gccl::test::Program({"launch", "-n", "2", "--timeout", "120", "--", self, "--no-skip",
                                                   "--test-case=a rank that joins while it is one"})
                                  .wait();
  CHECK_MESSAGE(e.code == 0, e.err << e.out);
  CHECK_MESSAGE(e.out.find("twice: this process is rank 1 of 2 of the job at tcp://") != e.out.npos, e.err << e.out);
}
#endif

TEST_CASE("a rank that leaves and joins again" * doctest::skip()) {
  GCCL_Comm comm = GCCL_COMM_NULL, again = GCCL_COMM_NULL;
  MUST_SUCCEED(GCCL_Init(&comm, nullptr));
  int rank = -1;
  MUST_SUCCEED(GCCL_Comm_rank(comm, &rank));
  MUST_SUCCEED(GCCL_Finalize());
  std::fflush(stdout);
  if (rank == 0) return;
  (void)GCCL_Join(&again, nullptr);
  std::printf("joined\n");
}

TEST_CASE("a rank that has left and joins again is ended when nobody is left to admit it") {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const gccl::test::Ended e = gccl::test::Program({"launch", "-n", "2", "--timeout", "120", "--", self, "--no-skip",
                                                   "--test-case=a rank that leaves and joins again"})
                                  .wait();
  CHECK_MESSAGE(e.code == 0, e.err << e.out);
  CHECK_MESSAGE(e.out.find("\njoined") == e.out.npos, e.err << e.out);
  CHECK_MESSAGE(e.err.find("rank 1 waits to join (GCCL_Join), and nobody is left to admit it: ending it") != e.err.npos,
                e.err << e.out);
}
