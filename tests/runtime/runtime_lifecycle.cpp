// From GCCL_Init to GCCL_Finalize, hundreds of times: nothing is left behind. Several ranks in one process, the
// progress thread, callbacks, metrics.
#include <doctest/doctest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/own_entries.hpp"
#include "tests/support/rank_job.hpp"
#include "tests/support/wide.hpp"

using namespace ranks;

namespace {

// Mappings of segments in shared memory; only those that still have a name when `named`.
int segments(bool named) {
  std::ifstream maps("/proc/self/maps");
  int n = 0;
  for (std::string line; std::getline(maps, line);)
    n += line.find("/gccl-") != std::string::npos && !(named && line.find("(deleted)") != std::string::npos);
  return n;
}

// An all-gather over memory that the ranks shared before they were born.
struct Meeting {
  std::atomic<int> arrived[8];
  std::byte said[8][8192];
};
struct Guest {
  Meeting* meeting;
  int rank, size, round = 0;
  bool meet() {
    meeting->arrived[rank] = ++round;
    for (int r = 0; r < size; ++r)
      for (int tries = 0; meeting->arrived[r] < round; ++tries)
        if (tries < 500000) {
          ::usleep(20);
        } else {
          return false;
        }
    return true;
  }
};
int gather(const void* mine, void* all, std::size_t bytes, void* context) {
  auto& g = *static_cast<Guest*>(context);
  if (bytes > sizeof g.meeting->said[0]) return 1;
  std::memcpy(g.meeting->said[g.rank], mine, bytes);
  if (!g.meet()) return 1;
  for (int r = 0; r < g.size; ++r)
    std::memcpy(static_cast<std::byte*>(all) + std::size_t(r) * bytes, g.meeting->said[r], bytes);
  return g.meet() ? 0 : 1;
}

void rounds(const Job& job, int n) {
  void* const memory = ::mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  check(job, [&](int rank) {
    Guest guest{static_cast<Meeting*>(memory), rank, job.size};
    GCCL_Config config = GCCL_CONFIG_INIT;
    config.allgather = gather;
    config.allgather_context = &guest;
    std::size_t files = 0, threads = 0, heap = 0;
    for (int i = 0; i < n && !any_reported(); ++i) {
      if (i == n / 5) {  // by then whatever is kept for good has been made
        files = gccl::test::own("fd");
        threads = gccl::test::own_at_rest("task");
        heap = ::mallinfo2().uordblks;
      }
      GCCL_Comm world = GCCL_COMM_NULL, half = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Init(&world, &config));
      int one = 1, sum = 0;
      RANK_SUCCESS(GCCL_Allreduce(&one, &sum, 1, GCCL_INT32, GCCL_SUM, world));
      RANK_CHECK(sum == job.size);
      RANK_CHECK(segments(true) == 0);  // a rank that is killed from here on leaves no file
      if (i % 4 == 0) {
        RANK_SUCCESS(GCCL_Comm_split(world, rank % 2, 0, &half));
        std::vector<float> x(20000, 1), y(20000);
        GCCL_Request request = GCCL_REQUEST_NULL;
        RANK_SUCCESS(GCCL_Iallreduce(x.data(), y.data(), x.size(), GCCL_FLOAT32, GCCL_SUM, half, &request));
        if (i % 8 == 0) RANK_SUCCESS(GCCL_Request_free(&request));
        RANK_SUCCESS(GCCL_Wait(&request));
        RANK_SUCCESS(GCCL_Barrier(half));
        if (i % 16 == 0) RANK_SUCCESS(GCCL_Comm_free(&half));
      }
      RANK_SUCCESS(GCCL_Finalize());
      RANK_CHECK(segments(false) == 0);
    }
    RANK_CHECK(gccl::test::own("fd") == files);
    RANK_CHECK(gccl::test::comes_to("task", threads));
    const std::size_t grown = ::mallinfo2().uordblks - heap;
    if (grown < SIZE_MAX / 2 && grown > 8192 + std::size_t(n) * 16)
      report("the heap grew by " + std::to_string(grown) + " bytes");
  });
  ::munmap(memory, sizeof(Meeting));
}

TEST_CASE("hundreds of rounds of init and finalize leave no file, thread or memory behind") {
  rounds({.size = 2, .backends = "shm"}, gccl::test::wide() ? 1000 : 300);
  rounds({.size = 3, .backends = "shm"}, 50);
  rounds({.size = 2, .backends = "tcp"}, gccl::test::wide() ? 200 : 100);
  rounds({.size = 1, .backends = "shm,tcp"}, gccl::test::wide() ? 200 : 100);
  rounds({.size = 2, .backends = "shm", .environment = {{"GCCL_PROGRESS_THREAD", "1"}}}, 100);
}

TEST_CASE(
    "shared memory has no name once a job has begun, whatever communicators come and go: nothing is left if it is "
    "killed") {
  check({.size = 3}, [](int rank) {
    GCCL_Comm world = begin();
    if (!world) return;
    RANK_SUCCESS(GCCL_Barrier(world));  // the others have begun too
    std::atomic<bool> ended{false};
    int looks = 0, named = 0;
    std::thread watcher([&] {
      for (; !ended || looks == 0; ++looks) named = std::max(named, segments(true));
    });
    for (int i = 0; i < 100; ++i) {
      GCCL_Comm c = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Comm_split(world, 0, rank, &c));
      RANK_SUCCESS(GCCL_Barrier(c));
      RANK_SUCCESS(GCCL_Comm_free(&c));
    }
    ended = true;
    watcher.join();
    RANK_CHECK(segments(false) >= 3);
    if (named > 0) report(std::to_string(named) + " segments had a name, in " + std::to_string(looks) + " looks");
    RANK_SUCCESS(GCCL_Finalize());
    RANK_CHECK(segments(false) == 0);
  });
}

TEST_CASE("init fails on every rank when one cannot take part, and can be tried again") {
  check({.size = 3, .backends = "shm", .environment = {{"GCCL_START_TIMEOUT_MS", "5000"}}}, [](int rank) {
    // Shared memory does not reach another machine.
    setenv("GCCL_HOST", rank == 2 ? "there" : "here", 1);
    GCCL_Comm world = GCCL_COMM_NULL;
    RANK_CHECK(GCCL_Init(&world, nullptr) != GCCL_SUCCESS);
    RANK_CHECK(std::string(GCCL_Last_error()).find("reaches rank") != std::string::npos);
    RANK_CHECK(world == GCCL_COMM_NULL);
    RANK_CHECK(segments(false) == 0);
    setenv("GCCL_HOST", "here", 1);
    RANK_SUCCESS(GCCL_Init(&world, nullptr));
    RANK_SUCCESS(GCCL_Barrier(world));
    RANK_SUCCESS(GCCL_Finalize());
  });
}

// `mine` of the ranks of a job, all driven by this thread.
void drive(const std::vector<int>& mine, int size) {
  std::vector<GCCL_Comm> worlds(mine.size());
  RANK_SUCCESS(GCCL_Init_ranks(worlds.data(), mine.data(), int(mine.size()), nullptr));
  if (any_reported()) return;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    int rank = -1, n = -1;
    RANK_SUCCESS(GCCL_Comm_rank(worlds[i], &rank));
    RANK_SUCCESS(GCCL_Comm_size(worlds[i], &n));
    RANK_CHECK(rank == mine[i]);
    RANK_CHECK(n == size);
  }
  for (const std::size_t count : {std::size_t(1), std::size_t(3000), std::size_t(200000)}) {
    std::vector<std::vector<double>> in(mine.size(), std::vector<double>(count)), out = in, moved = in;
    RANK_SUCCESS(GCCL_Group_start());
    for (std::size_t i = 0; i < mine.size(); ++i) {
      for (std::size_t k = 0; k < count; ++k) in[i][k] = double(mine[i] + 1) * double(k % 1000);
      RANK_SUCCESS(GCCL_Allreduce(in[i].data(), out[i].data(), count, GCCL_FLOAT64, GCCL_SUM, worlds[i]));
      RANK_SUCCESS(GCCL_Send(in[i].data(), count, GCCL_FLOAT64, (mine[i] + 1) % size, worlds[i]));
      RANK_SUCCESS(GCCL_Recv(moved[i].data(), count, GCCL_FLOAT64, (mine[i] + size - 1) % size, worlds[i]));
      RANK_SUCCESS(GCCL_Barrier(worlds[i]));
    }
    RANK_SUCCESS(GCCL_Group_end());
    for (std::size_t i = 0; i < mine.size(); ++i)
      for (std::size_t k = 0; k < count; ++k) {
        RANK_CHECK(out[i][k] == double(size * (size + 1) / 2) * double(k % 1000));
        RANK_CHECK(moved[i][k] == double((mine[i] + size - 1) % size + 1) * double(k % 1000));
      }
  }
  RANK_SUCCESS(GCCL_Finalize());
}

TEST_CASE("another secret on one rank is found when ranks start, also where they need none to reach each other") {
  check({.size = 3, .backends = "shm", .environment = {{"GCCL_SECRET", "theirs"}}}, [](int rank) {
    if (rank == 2) setenv("GCCL_SECRET", "another", 1);
    GCCL_Comm world = GCCL_COMM_NULL;
    expect(GCCL_Init(&world, nullptr), GCCL_ERR_AUTHENTICATION, "init");
    expect_text("rank 2 has another secret than rank 0", "init");
    RANK_CHECK(world == GCCL_COMM_NULL);
  });
}

TEST_CASE("ranks that no transport joins report which were tried, and what each would need") {
  for (const char* backends : {"shm", "tcp"})
    check({.size = 2, .backends = backends}, [&](int rank) {
      setenv("GCCL_HOST", rank ? "one" : "another", 1);
      unsetenv("GCCL_SECRET");
      GCCL_Comm world = GCCL_COMM_NULL;
      expect(GCCL_Init(&world, nullptr), GCCL_ERR_SYSTEM, "init");
      expect_text("no backend of \"" + std::string(backends) + "\" reaches rank " + std::to_string(1 - rank), "init");
      expect_text("on another node", "init");
      expect_text("GCCL_SECRET", "init");
      expect_text("GCCL_HOST", "init");
    });
  // With a secret it is the address that keeps others away.
  check({.size = 2, .backends = "tcp"}, [&](int rank) {
    setenv("GCCL_HOST", rank ? "one" : "another", 1);
    setenv("GCCL_SECRET", "0123456789abcdef0123456789abcdef", 1);
    setenv("GCCL_ADDRESS", "127.0.0.1", 1);
    GCCL_Comm world = GCCL_COMM_NULL;
    expect(GCCL_Init(&world, nullptr), GCCL_ERR_SYSTEM, "init");
    expect_text("tcp here listens on GCCL_ADDRESS=127.0.0.1 alone", "init");
  });
}

TEST_CASE("one process is several ranks, which one thread drives in groups") {
  for (const char* backends : {"shm", "tcp"}) {
    check({.size = 1, .backends = backends, .environment = {{"GCCL_SIZE", "3"}}}, [](int) { drive({0, 1, 2}, 3); });
    check({.size = 2, .backends = backends, .environment = {{"GCCL_SIZE", "5"}}}, [](int process) {
      drive(process == 0 ? std::vector<int>{0, 3} : std::vector<int>{4, 2, 1}, 5);
    });
  }
}

TEST_CASE("with the progress thread an operation completes without any call") {
  for (const char* backends : {"shm", "tcp"})
    check({.size = 2, .backends = backends, .environment = {{"GCCL_PROGRESS_THREAD", "1"}}}, [](int rank) {
      GCCL_Comm world = begin();
      for (const std::size_t count : {std::size_t(1), std::size_t(1) << 18}) {
        std::vector<double> x(count, rank + 1), y(count);
        GCCL_Request request = GCCL_REQUEST_NULL;
        static std::atomic<int> outcome;
        outcome = 0;
        if (rank == 1) usleep(20000);
        RANK_SUCCESS(GCCL_Iallreduce(x.data(), y.data(), count, GCCL_FLOAT64, GCCL_SUM, world, &request));
        RANK_SUCCESS(GCCL_On_complete(
            request, [](GCCL_Result r, void*) { outcome = r == GCCL_SUCCESS ? 1 : 2; }, nullptr));
        for (int i = 0; i < 20000 && outcome == 0; ++i) usleep(1000);
        RANK_CHECK(outcome == 1);
        RANK_CHECK(y[count - 1] == 3);
        RANK_SUCCESS(GCCL_Wait(&request));
      }
      RANK_SUCCESS(GCCL_Finalize());
    });
}

TEST_CASE("releasing a communicator waits for nobody, after a last barrier that everybody began") {
  for (const char* backends : {"shm", "tcp"})
    check({.size = 3, .backends = backends}, [](int rank) {
      GCCL_Comm world = begin();
      for (int round = 0; round < 10; ++round) {
        GCCL_Comm c[2] = {};
        GCCL_Request last[2] = {};
        int token = 0;
        for (GCCL_Comm& made : c) RANK_SUCCESS(GCCL_Comm_split(world, 0, rank, &made));
        RANK_SUCCESS(GCCL_Irecv(&token, 1, GCCL_INT32, rank, c[0], &last[0]));
        RANK_CHECK(GCCL_Comm_release(&c[0]) == GCCL_ERR_INVALID_USAGE);  // an operation is in flight
        RANK_SUCCESS(GCCL_Send(&rank, 1, GCCL_INT32, rank, c[0]));
        RANK_SUCCESS(GCCL_Wait(&last[0]));
        for (int i = 0; i < 2; ++i) RANK_SUCCESS(GCCL_Ibarrier(c[i], &last[i]));
        // In another order on each rank, and rank 0 lets the others wait for a message in between.
        for (int i = 0; i < 2; ++i) {
          const int which = (i + rank) % 2;
          if (rank != 0 && i == 1) RANK_SUCCESS(GCCL_Recv(&token, 1, GCCL_INT32, 0, world));
          RANK_SUCCESS(GCCL_Wait(&last[which]));
          RANK_SUCCESS(GCCL_Comm_release(&c[which]));
          RANK_CHECK(c[which] == GCCL_COMM_NULL);
          for (int r = 1; rank == 0 && i == 0 && r < 3; ++r) RANK_SUCCESS(GCCL_Send(&rank, 1, GCCL_INT32, r, world));
        }
      }
      GCCL_Comm none = GCCL_COMM_NULL;
      RANK_CHECK(GCCL_Comm_release(&none) == GCCL_ERR_INVALID_ARGUMENT);
      RANK_CHECK(GCCL_Comm_release(nullptr) == GCCL_ERR_INVALID_ARGUMENT);
      RANK_SUCCESS(GCCL_Finalize());
    });
}

TEST_CASE("releasing communicators waits for no word of a rank that computes, where messages are checked either") {
  auto* const released = static_cast<std::atomic<bool>*>(
      ::mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  REQUIRE(static_cast<void*>(released) != MAP_FAILED);
  const Job job{
      .size = 2, .backends = "tcp", .environment = {{"GCCL_LINK_CHECK", "1"}, {"GCCL_LINK_LOST_MS", "60000"}}};
  check(job, [released](int rank) {
    GCCL_Comm world = begin();
    std::vector<GCCL_Comm> all(20);
    for (GCCL_Comm& c : all) RANK_SUCCESS(GCCL_Comm_split(world, 0, rank, &c));
    for (const GCCL_Comm c : all) {
      int x = rank;
      if (rank == 0) RANK_SUCCESS(GCCL_Send(&x, 1, GCCL_INT32, 1, c));
      if (rank == 1) RANK_SUCCESS(GCCL_Recv(&x, 1, GCCL_INT32, 0, c));
    }
    // Half a second for each would be ten.
    if (rank == 1) {
      for (int i = 0; i < 5000 && !*released; ++i) usleep(1000);
      RANK_CHECK(*released);
    }
    for (GCCL_Comm& c : all) RANK_SUCCESS(GCCL_Comm_release(&c));
    *released = true;
    RANK_SUCCESS(GCCL_Finalize());
  });
  ::munmap(released, sizeof *released);
}

struct Calls {
  int times = 0;
  GCCL_Result result = GCCL_SUCCESS;
  GCCL_Comm comm = GCCL_COMM_NULL;
  GCCL_Request next = GCCL_REQUEST_NULL;
  int value = 1, sum = 0;
};
void note(GCCL_Result result, void* context) {
  auto& c = *static_cast<Calls*>(context);
  ++c.times;
  c.result = result;
}
void start_another(GCCL_Result result, void* context) {
  note(result, context);
  auto& c = *static_cast<Calls*>(context);
  RANK_SUCCESS(GCCL_Iallreduce(&c.value, &c.sum, 1, GCCL_INT32, GCCL_SUM, c.comm, &c.next));
}

TEST_CASE("a callback runs once, never inside the call that starts, at the latest when the communicator is freed") {
  for (const int size : {1, 2})
    check({.size = size, .backends = "shm"}, [size](int) {
      GCCL_Comm world = begin(), c = GCCL_COMM_NULL;
      GCCL_Request request = GCCL_REQUEST_NULL;
      {
        // Complete before the callback is there, or not yet: it makes no difference.
        Calls calls;
        RANK_SUCCESS(GCCL_Ibarrier(world, &request));
        RANK_SUCCESS(GCCL_On_complete(request, note, &calls));
        RANK_CHECK(calls.times == 0);
        RANK_SUCCESS(GCCL_Wait(&request));
        RANK_SUCCESS(GCCL_Progress());
        RANK_CHECK(calls.times == 1);
        RANK_CHECK(calls.result == GCCL_SUCCESS);
      }
      {
        // A callback starts an operation.
        Calls calls;
        calls.comm = world;
        RANK_SUCCESS(GCCL_Ibarrier(world, &request));
        RANK_SUCCESS(GCCL_On_complete(request, start_another, &calls));
        RANK_SUCCESS(GCCL_Request_free(&request));
        while (calls.times == 0) RANK_SUCCESS(GCCL_Progress());
        RANK_SUCCESS(GCCL_Wait(&calls.next));
        RANK_CHECK(calls.sum == size);
        RANK_CHECK(calls.times == 1);
      }
      {
        // Nothing but blocking calls follows.
        Calls calls;
        RANK_SUCCESS(GCCL_Ibarrier(world, &request));
        RANK_SUCCESS(GCCL_On_complete(request, note, &calls));
        RANK_SUCCESS(GCCL_Wait(&request));
        for (int i = 0; i < 3; ++i) RANK_SUCCESS(GCCL_Barrier(world));
        RANK_CHECK(calls.times == 1);
      }
      Calls before_free, dropped;
      RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
      RANK_SUCCESS(GCCL_Ibarrier(c, &request));
      while (request) {
        int done = 0;
        RANK_SUCCESS(GCCL_Progress());
        if (before_free.times == 0 && !before_free.comm) RANK_SUCCESS(GCCL_On_complete(request, note, &before_free));
        before_free.comm = c;
        RANK_SUCCESS(GCCL_Test(&request, &done));
      }
      RANK_SUCCESS(GCCL_Comm_free(&c));
      RANK_CHECK(before_free.times == 1);
      int x = 0;
      RANK_SUCCESS(GCCL_Irecv(&x, 1, GCCL_INT32, 0, world, &request));
      RANK_SUCCESS(GCCL_On_complete(request, note, &dropped));
      RANK_CHECK(GCCL_Finalize() == GCCL_ERR_INVALID_USAGE);
      RANK_CHECK(dropped.times == 1);
      RANK_CHECK(dropped.result == GCCL_ERR_INVALID_USAGE);
      RANK_SUCCESS(GCCL_Request_free(&request));
    });
}

const GCCL_Call_metrics& of(const GCCL_Metrics& m, const std::string& name) {
  for (const GCCL_Call_metrics& c : m.calls)
    if (c.name && c.name == name) return c;
  static const GCCL_Call_metrics none{};
  report("there are no metrics of " + name);
  return none;
}

TEST_CASE("metrics count calls, bytes, messages and failures") {
  for (const char* backends : {"shm", "tcp"})
    check({.size = 2, .backends = backends}, [](int rank) {
      GCCL_Comm world = begin();
      std::vector<float> x(1 << 20), y(2 << 20);
      for (int i = 0; i < 100; ++i) RANK_SUCCESS(GCCL_Allreduce(x.data(), y.data(), 10, GCCL_FLOAT32, GCCL_SUM, world));
      for (int i = 0; i < 5; ++i) RANK_SUCCESS(GCCL_Allgather(x.data(), y.data(), 1 << 20, GCCL_FLOAT32, world));
      for (int i = 0; i < 7; ++i) RANK_SUCCESS(GCCL_Barrier(world));
      GCCL_Request request = GCCL_REQUEST_NULL;
      for (int i = 0; i < 3; ++i) {
        RANK_SUCCESS(GCCL_Isend(x.data(), 1000, GCCL_FLOAT32, 1 - rank, world, &request));
        RANK_SUCCESS(GCCL_Recv(y.data(), 1000, GCCL_FLOAT32, 1 - rank, world));
        RANK_SUCCESS(GCCL_Wait(&request));
      }
      GCCL_Metrics m{};
      m.struct_bytes = sizeof m;
      RANK_SUCCESS(GCCL_Get_performance_metrics(world, &m));
      RANK_CHECK(m.struct_bytes == sizeof m);
      const GCCL_Call_metrics &r = of(m, "allreduce"), &g = of(m, "allgather");
      RANK_CHECK(r.calls == 100);
      RANK_CHECK(r.bytes == 100 * 40);
      RANK_CHECK(r.failed == 0);
      RANK_CHECK(r.timed >= 1);
      RANK_CHECK(r.timed <= r.calls);
      RANK_CHECK(r.time_ns_min <= r.time_ns_max);
      RANK_CHECK(r.time_ns >= r.time_ns_max);
      RANK_CHECK(g.calls == 5);
      RANK_CHECK(g.timed == 5);  // large ones always are
      RANK_CHECK(g.bytes == 5ull * (8 << 20));
      RANK_CHECK(of(m, "barrier").calls == 7);
      RANK_CHECK(of(m, "send").calls == 3);
      RANK_CHECK(of(m, "recv").bytes == 12000);
      // With two ranks what one sends the other receives, and no call does with less than its data.
      RANK_CHECK(m.messages_sent >= 100 + 5 + 7 + 3);
      RANK_CHECK(m.messages_received >= 100 + 5 + 7 + 3);
      RANK_CHECK(m.bytes_sent >= 100 * 40 + (20ull << 20) + 12000);
      RANK_CHECK(m.bytes_sent < 2 * (100 * 40 + (20ull << 20) + 12000));
      std::uint64_t mine[4] = {m.messages_sent, m.bytes_sent, m.messages_received, m.bytes_received}, both[8];
      RANK_SUCCESS(GCCL_Allgather(mine, both, 4, GCCL_UINT64, world));
      RANK_CHECK(both[0] == both[6]);
      RANK_CHECK(both[1] == both[7]);
      RANK_CHECK(both[4] == both[2]);
      RANK_CHECK(both[5] == both[3]);
      RANK_CHECK(m.plans_built >= 3);
      RANK_CHECK(m.plans_reused >= 99 + 4 + 6);
      RANK_SUCCESS(GCCL_Comm_set_timeout(world, 500));
      RANK_CHECK(GCCL_Recv(y.data(), 1, GCCL_FLOAT32, 1 - rank, world) != GCCL_SUCCESS);
      RANK_SUCCESS(GCCL_Get_performance_metrics(world, &m));
      RANK_CHECK(of(m, "recv").failed == 1);
      GCCL_Finalize();
    });
}

TEST_CASE("metrics count the caller's own calls, and none that others are made of") {
  for (const char* checks : {"0", "1"})
    check({.size = 2, .environment = {{"GCCL_CHECK", checks}}}, [](int rank) {
      GCCL_Comm world = begin(), half = GCCL_COMM_NULL;
      GCCL_Metrics m{};
      const auto counted = [&](const char* kind, std::uint64_t calls, std::uint64_t bytes) {
        m.struct_bytes = sizeof m;
        RANK_SUCCESS(GCCL_Get_performance_metrics(world, &m));
        for (const GCCL_Call_metrics& c : m.calls) {
          if (!c.name) continue;
          const bool this_one = std::string(c.name) == kind;
          if (c.calls != (this_one ? calls : 0) || c.bytes != (this_one ? bytes : 0) || c.timed > c.calls || c.failed)
            report(std::string(c.name) + ": " + std::to_string(c.calls) + " calls, " + std::to_string(c.bytes) +
                   " bytes, " + std::to_string(c.failed) + " failed, " + std::to_string(c.timed) + " timed");
        }
      };
      RANK_SUCCESS(GCCL_Comm_split(world, rank, 0, &half));
      RANK_SUCCESS(GCCL_Comm_free(&half));
      const int first = 0;
      RANK_SUCCESS(GCCL_Comm_create(world, &first, 1, &half));
      RANK_SUCCESS(GCCL_Comm_set_on_failure(world, GCCL_SHRINK));
      counted("none", 0, 0);
      RANK_CHECK(m.bytes_sent > 0);
      float x[2] = {}, y[4];
      for (int i = 0; i < 3; ++i) RANK_SUCCESS(GCCL_Allgather(x, y, 2, GCCL_FLOAT32, world));
      counted("allgather", 3, 3 * 16);
      GCCL_Finalize();
    });
}

}  // namespace

TEST_CASE("a rank that is named twice, or is beyond the size, is an error at once") {
  check({.size = 1}, [](int) {
    GCCL_Comm worlds[3];
    const int twice[] = {2, 0, 2}, negative[] = {0, -1}, beyond[] = {0, 9};
    const auto begun = Clock::now();
    GCCL_Config config = GCCL_CONFIG_INIT;
    config.size = 2;
    expect(GCCL_Init_ranks(worlds, beyond, 2, &config), GCCL_ERR_INVALID_ARGUMENT, "a rank beyond the size");
    expect_text("the rank is 9, expected 0 to 1", "a rank beyond the size");
    setenv("GCCL_SIZE", "3", 1);
    expect(GCCL_Init_ranks(worlds, beyond, 2, nullptr), GCCL_ERR_INVALID_ARGUMENT, "beyond the environment's size");
    expect_text("the rank is given as 9, expected less than GCCL_SIZE, which is 3", "beyond the environment's size");
    RANK_CHECK(worlds[0] == GCCL_COMM_NULL && worlds[1] == GCCL_COMM_NULL);
    RANK_CHECK(seconds_since(begun) < 30);  // of 60 that a rank waits for others
    RANK_CHECK(GCCL_Init_ranks(worlds, twice, 3, nullptr) == GCCL_ERR_INVALID_ARGUMENT);
    RANK_CHECK(std::string(GCCL_Last_error()).find("rank 2 twice") != std::string::npos);
    RANK_CHECK(GCCL_Init_ranks(worlds, negative, 2, nullptr) == GCCL_ERR_INVALID_ARGUMENT);
  });
}
