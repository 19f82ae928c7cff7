// What a rank's process does around GCCL: it ends without GCCL_Finalize, in any way, and it forks.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

// All-reduces that differ in their lengths: afterwards every rank has an error, and aborts are in flight between all.
void fail_as_a_program_with_a_bug(int rank) {
  GCCL_Comm world = begin();
  float in[4] = {}, out[4] = {};
  GCCL_Result result = GCCL_Barrier(world);  // a rank that is late may hear of the others' error here
  if (result == GCCL_SUCCESS) result = GCCL_Allreduce(in, out, rank == 1 ? 3 : 4, GCCL_FLOAT32, GCCL_SUM, world);
  if (result == GCCL_SUCCESS) result = GCCL_Barrier(world);
  RANK_CHECK(result != GCCL_SUCCESS);
}

// How every rank of the job ended, where that was not with this exit code.
std::string ended_otherwise(const Job& job, int exit_code, const std::function<void(int)>& body) {
  const auto ends = run(job, body);
  for (const End& e : ends)
    if (e.exit_code != exit_code) return describe(job) + "\n" + texts(ends);
  return "";
}

Job quiet(const std::string& backends, int size = 3) {
  return {.size = size, .backends = backends, .environment = {{"GCCL_LOG", "0"}}, .limit_s = 60};
}

}  // namespace

TEST_CASE("a rank that ends on an error without GCCL_Finalize has the exit code it chose") {
  for (const char* backends : {"tcp", "shm,tcp"})
    for (int i = 0; i < 50; ++i) {
      CAPTURE(i);
      REQUIRE(ended_otherwise(quiet(backends), 7, [](int rank) {
                fail_as_a_program_with_a_bug(rank);
                std::exit(any_reported() ? 1 : 7);
              }) == "");
    }
}

TEST_CASE("exit handlers may take long, and other ways to end a process are as quick as ever") {
  const auto slow = [] { ::usleep(500000); };
  for (const bool registered_first : {true, false}) {
    CAPTURE(registered_first);
    CHECK(ended_otherwise(quiet("tcp"), 7, [&](int rank) {
            if (registered_first) std::atexit(slow);
            fail_as_a_program_with_a_bug(rank);
            if (!registered_first) std::atexit(slow);
            std::exit(any_reported() ? 1 : 7);
          }) == "");
  }
  CHECK(ended_otherwise(quiet("tcp"), 8, [](int rank) {
          fail_as_a_program_with_a_bug(rank);
          std::quick_exit(any_reported() ? 1 : 8);
        }) == "");
  CHECK(ended_otherwise(quiet("tcp"), 9, [](int rank) {
          fail_as_a_program_with_a_bug(rank);
          ::_exit(any_reported() ? 1 : 9);
        }) == "");
}

TEST_CASE("what GCCL opens never is the standard input or error that a program has closed") {
  for (const std::string backends : {"shm", "tcp", "shm,tcp"})
    check({.size = 3, .backends = backends, .nodes = backends == "shm" ? std::vector<int>() : std::vector{0, 0, 1}},
          [](int rank) {
            const auto closed = [](const char* when) {
              for (const int fd : {STDIN_FILENO, STDERR_FILENO})
                if (fcntl(fd, F_GETFD) >= 0) {
                  const std::string name = "/proc/self/fd/" + std::to_string(fd);
                  report(std::string(when) + ": " + name + " is " + std::filesystem::read_symlink(name).string());
                }
            };
            ::close(STDIN_FILENO);
            ::close(STDERR_FILENO);
            GCCL_Comm world = begin(), c = GCCL_COMM_NULL;
            closed("after GCCL_Init");
            void* memory = nullptr;
            RANK_SUCCESS(GCCL_Mem_alloc(&memory, 1 << 20));
            closed("after GCCL_Mem_alloc");
            std::vector<float> in(1 << 18, float(rank)), out(1 << 18);
            RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
            for (const std::size_t count : {std::size_t(1), in.size()})
              RANK_SUCCESS(GCCL_Allreduce(in.data(), memory, count, GCCL_FLOAT32, GCCL_SUM, c));
            RANK_SUCCESS(GCCL_Send(in.data(), 1, GCCL_FLOAT32, (rank + 1) % 3, c));
            RANK_SUCCESS(GCCL_Recv(out.data(), 1, GCCL_FLOAT32, (rank + 2) % 3, c));
            RANK_CHECK(static_cast<float*>(memory)[in.size() - 1] == 3);
            closed("after messages");
            RANK_SUCCESS(GCCL_Mem_free(memory));
            RANK_SUCCESS(GCCL_Finalize());
          });
}

TEST_CASE("a rank that exits while it dials a stopped one ends at once") {
  Job soon = quiet("tcp", 2);
  soon.limit_s = 20;
  Running job(soon, [](int rank) {
    GCCL_Comm world = begin();
    std::printf("here\n");
    std::fflush(stdout);
    if (rank == 1) ::pause();
    ::usleep(300000);  // now the other one is stopped
    float x = 0;
    GCCL_Comm_set_timeout(world, 300);
    RANK_CHECK(GCCL_Send(&x, 1, GCCL_FLOAT32, 1, world) == GCCL_ERR_TIMEOUT);
    std::exit(any_reported() ? 1 : 7);
  });
  REQUIRE(job.await(0, "here"));
  REQUIRE(job.await(1, "here"));
  job.kill(1, SIGSTOP);
  CHECK_FALSE(job.await(0, "what it never prints"));  // until it has ended, while the other one is stopped
  job.kill(1, SIGKILL);
  const auto ends = job.wait();
  CHECK_MESSAGE((ends[0].exit_code == 7 && !ends[0].late), texts(ends));
}

TEST_CASE("an exit handler from before GCCL_Init may finalize: over what is connected; else it is an error, no hang") {
  for (const bool connected : {true, false}) {
    CAPTURE(connected);
    static bool was_connected;
    was_connected = connected;
    CHECK(ended_otherwise(quiet("tcp"), 7, [](int) {
            std::atexit([] {
              const GCCL_Result result = GCCL_Finalize();
              if ((result == GCCL_SUCCESS) != was_connected) {
                std::printf("%d %s\n", result, GCCL_Last_error());
                std::fflush(stdout);
                ::_exit(1);
              }
            });
            GCCL_Comm world = begin();
            // All pairs, in both directions.
            int in[3] = {}, out[3] = {};
            for (int i = 0; was_connected && i < 3; ++i) RANK_SUCCESS(GCCL_Alltoall(in, out, 1, GCCL_INT32, world));
            for (int i = 0; was_connected && i < 3; ++i) RANK_SUCCESS(GCCL_Barrier(world));
            std::exit(any_reported() ? 1 : 7);
          }) == "");
  }
}

TEST_CASE("an exit handler from before GCCL_Init learns what its failed call was about") {
  CHECK(ended_otherwise(quiet("tcp"), 7, [](int) {
          std::atexit([] {
            int rank = 0;
            const bool said = GCCL_Comm_rank(GCCL_COMM_NULL, &rank) == GCCL_ERR_INVALID_ARGUMENT &&
                              std::string(GCCL_Last_error()).find("comm is GCCL_COMM_NULL") == 0;
            ::_exit(said ? 7 : 1);
          });
          std::thread([] { (void)GCCL_Comm_size(GCCL_COMM_NULL, nullptr); }).join();
          int size = 0;
          (void)GCCL_Comm_size(GCCL_COMM_NULL, &size);  // this thread has a text from here on
          std::exit(1);
        }) == "");
}

TEST_CASE("a rank whose main thread has ended goes on in the others, makes communicators, and may begin there") {
  for (const char* backends : {"shm", "tcp"})
    for (const bool begins_there : {false, true})
      check({.size = 2, .backends = backends}, [begins_there](int rank) {
        const GCCL_Comm begun = begins_there ? GCCL_COMM_NULL : begin();
        const auto communicate = [=] {
          const GCCL_Comm world = begins_there ? begin() : begun;
          GCCL_Comm other = GCCL_COMM_NULL;
          RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &other));
          for (GCCL_Comm comm : {world, other})
            for (const std::size_t count : {1, 100, 1000000}) {
              std::vector<int> x(count, rank);
              RANK_SUCCESS(GCCL_Allreduce(GCCL_IN_PLACE, x.data(), count, GCCL_INT32, GCCL_SUM, comm));
              RANK_CHECK(x == std::vector<int>(count, 1));
            }
          RANK_SUCCESS(GCCL_Finalize());
        };
        if (rank == 0) without_main_thread(communicate);
        communicate();
      });
}

// While the others wait for it.
TEST_CASE("a rank that is killed when its main thread has ended is lost") {
  const std::vector<End> ends = run({.size = 2}, [](int rank) {
    const GCCL_Comm world = begin();
    std::vector<int> x(1000000);
    RANK_SUCCESS(GCCL_Allreduce(GCCL_IN_PLACE, x.data(), x.size(), GCCL_INT32, GCCL_SUM, world));
    if (rank == 0) without_main_thread([] { ::raise(SIGKILL); });
    expect(GCCL_Allreduce(GCCL_IN_PLACE, x.data(), x.size(), GCCL_INT32, GCCL_SUM, world), GCCL_ERR_PEER_LOST, "call");
  });
  CHECK(ends[0].signal == SIGKILL);
  check_others(ends, {0});
}

TEST_CASE("a killed rank is missed although a child that it forked lives on") {
  for (const char* backends : {"tcp", "shm,tcp"}) {
    CAPTURE(backends);
    Running job({.size = 3, .backends = backends, .nodes = {0, 1, 2}, .limit_s = 100}, [](int rank) {
      GCCL_Comm world = begin();
      float in[4] = {}, out[4];
      GCCL_Result result = GCCL_SUCCESS;
      for (int i = 0; result == GCCL_SUCCESS; ++i) {
        if (i == 100 && rank == 1) {
          const pid_t child = ::fork();
          if (child == 0) {
            for (const int fd : {0, 1, 2}) ::close(fd);
            ::pause();
          }
          std::printf("child %d\n", int(child));
          std::fflush(stdout);
        }
        result = GCCL_Allreduce(in, out, 4, GCCL_FLOAT32, GCCL_SUM, world);
      }
      RANK_CHECK(result == GCCL_ERR_PEER_LOST);
      RANK_CHECK(std::string(GCCL_Last_error()).find("rank 1") != std::string::npos);
      GCCL_Finalize();
    });
    REQUIRE(job.await(1, "child "));
    ::usleep(200000);
    job.kill(1, SIGKILL);
    const auto ends = job.wait();
    const int child = std::atoi(ends[1].text.substr(ends[1].text.find("child ") + 6).c_str());
    CHECK(::kill(child, SIGKILL) == 0);  // it has lived until now
    CHECK_MESSAGE(ends[0].good(), texts(ends));
    CHECK_MESSAGE(ends[2].good(), texts(ends));
  }
}

TEST_CASE("a child may call nothing, and whatever it tries and however it ends, the parents go on") {
  for (const char* backends : {"shm", "tcp", "shm,tcp"})
    for (const bool progress_thread : {false, true}) {
      Job job{.size = 3, .backends = backends, .limit_s = 100};
      if (progress_thread) job.environment["GCCL_PROGRESS_THREAD"] = "1";
      check(job, [](int rank) {
        GCCL_Comm world = begin();
        int in[4] = {1, 2, 3, 4}, out[4] = {};
        RANK_SUCCESS(GCCL_Allreduce(in, out, 4, GCCL_INT32, GCCL_SUM, world));
        GCCL_Request request = GCCL_REQUEST_NULL;
        RANK_SUCCESS(GCCL_Iallreduce(in, out, 4, GCCL_INT32, GCCL_SUM, world, &request));
        if (rank == 1) {
          const pid_t child = ::fork();
          if (child == 0) {
            int wrong = 0;
            const auto refused = [&wrong](GCCL_Result result) {
              wrong +=
                  result != GCCL_ERR_INVALID_USAGE || std::string(GCCL_Last_error()).find("fork") == std::string::npos;
            };
            GCCL_Comm other = GCCL_COMM_NULL;
            GCCL_Request begun = request;
            int x = 0;
            refused(GCCL_Comm_rank(world, &x));
            refused(GCCL_Allreduce(in, out, 4, GCCL_INT32, GCCL_SUM, world));
            refused(GCCL_Iallreduce(in, out, 4, GCCL_INT32, GCCL_SUM, world, &begun));
            refused(GCCL_Wait(&begun));
            refused(GCCL_Test(&begun, &x));
            refused(GCCL_Send(in, 1, GCCL_INT32, 0, world));
            refused(GCCL_Barrier(world));
            refused(GCCL_Comm_split(world, 0, 0, &other));
            refused(GCCL_Comm_free(&world));
            refused(GCCL_Abort(world, 1));
            refused(GCCL_Progress());
            refused(GCCL_Group_start());
            refused(GCCL_Group_end());
            refused(GCCL_Init(&other, nullptr));
            refused(GCCL_Finalize());
            std::exit(wrong);
          }
          int status = 0;
          ::waitpid(child, &status, 0);
          RANK_CHECK(WIFEXITED(status));
          RANK_CHECK(WEXITSTATUS(status) == 0);
        }
        RANK_SUCCESS(GCCL_Wait(&request));
        for (int i = 0; i < 100; ++i) {
          RANK_SUCCESS(GCCL_Allreduce(in, out, 4, GCCL_INT32, GCCL_SUM, world));
          RANK_CHECK(out[3] == 12);
        }
        RANK_SUCCESS(GCCL_Finalize());
      });
    }
}

// As of a lock that threads hold while they are inside GCCL: forking waits for them, and they must not wait for it.
TEST_CASE("a fork handler from before GCCL_Init may wait for GCCL") {
  Job job = quiet("tcp", 2);
  job.limit_s = 30;
  CHECK(ended_otherwise(job, 7, [](int) {
          ::pthread_atfork(
              [] {
                GCCL_Config alone = GCCL_CONFIG_INIT;
                alone.rank = 0;
                alone.size = 1;
                GCCL_Comm c = GCCL_COMM_NULL;
                RANK_SUCCESS(GCCL_Init(&c, &alone));  // makes sockets
                RANK_SUCCESS(GCCL_Comm_free(&c));
              },
              nullptr, nullptr);
          GCCL_Comm world = begin();
          const pid_t child = ::fork();
          if (child == 0) ::_exit(0);
          ::waitpid(child, nullptr, 0);
          RANK_SUCCESS(GCCL_Barrier(world));
          RANK_SUCCESS(GCCL_Finalize());
          std::exit(any_reported() ? 1 : 7);
        }) == "");
}

TEST_CASE("a process that has finalized may have children that use GCCL themselves") {
  check({.size = 2, .backends = "tcp", .limit_s = 100}, [](int) {
    GCCL_Comm world = begin();
    RANK_SUCCESS(GCCL_Barrier(world));
    RANK_SUCCESS(GCCL_Finalize());
    const pid_t child = ::fork();
    if (child == 0) {
      RANK_SUCCESS(GCCL_Init(&world, nullptr));
      RANK_SUCCESS(GCCL_Barrier(world));
      RANK_SUCCESS(GCCL_Finalize());
      std::exit(any_reported() ? 1 : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    RANK_CHECK(status == 0);
  });
}
