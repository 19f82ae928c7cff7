// Ranks are killed; those that are left make a smaller communicator and go on.
#include <doctest/doctest.h>
#include <malloc.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

// Not by silence, which here takes so long that no rank of a busy machine is called failed for it.
constexpr double kSoon = 50;
const std::pair<const std::string, std::string> kNoSilence{"GCCL_DETECTION_MS", "100000"};

// Kills this process so much later, whatever it does then.
void die_in(int microseconds) {
  ::signal(SIGALRM, [](int) { ::kill(::getpid(), SIGKILL); });
  const itimerval after = {{0, 0}, {0, microseconds}};
  RANK_CHECK(::setitimer(ITIMER_REAL, &after, nullptr) == 0);
}

// All-reduces of `count` doubles until one fails; then the rest shrink and all-reduce again, with the right sum. The
// last of the victims is killed so much after it has missed the others, where `late_us` is not 0: while all shrink.
void kill_and_go_on(Job job, const std::set<int>& victims, std::size_t count, int late_us = 0) {
  job.environment.insert(kNoSilence);
  const int late = late_us > 0 ? *victims.rbegin() : -1;
  Running running(job, [&](int rank) {
    GCCL_Comm world = begin();
    std::vector<double> x(count, rank + 1.0), y(count);
    ready(world);
    GCCL_Result result = GCCL_SUCCESS;
    const auto began = Clock::now();
    while (result == GCCL_SUCCESS && seconds_since(began) < 60)
      result = GCCL_Allreduce(x.data(), y.data(), count, GCCL_FLOAT64, GCCL_SUM, world);
    expect(result, GCCL_ERR_PEER_LOST, "allreduce");
    const auto lost = Clock::now();
    if (rank == late) die_in(late_us);
    GCCL_Comm comm = world;
    // With two victims the second may be alive when the first is missed, and die in the shrinking or after it.
    for (int round = 0; round < 4; ++round) {
      GCCL_Comm smaller = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Comm_shrink(comm, &smaller));
      if (!smaller) return;
      comm = smaller;
      int size = 0;  // until the late one has died
      RANK_SUCCESS(GCCL_Comm_size(comm, &size));
      do {
        result = GCCL_Allreduce(x.data(), y.data(), count, GCCL_FLOAT64, GCCL_SUM, comm);
      } while (result == GCCL_SUCCESS && size > job.size - int(victims.size()) && seconds_since(lost) < 60);
      std::uint64_t ok = result == GCCL_SUCCESS;
      if (GCCL_Comm_agree(comm, &ok) == GCCL_SUCCESS && ok) break;
    }
    RANK_SUCCESS(result);
    RANK_CHECK(seconds_since(lost) < kSoon);
    int size = 0, mine = -1, failed = 0, who[8];
    double sum = 0;
    int before = 0;
    for (int r = 0; r < job.size; ++r)
      if (!victims.contains(r)) {
        sum += r + 1.0;
        before += r < rank;
      }
    RANK_SUCCESS(GCCL_Comm_size(comm, &size));
    RANK_SUCCESS(GCCL_Comm_rank(comm, &mine));
    RANK_CHECK(size == job.size - int(victims.size()));
    RANK_CHECK(mine == before);
    for (const double v : y) RANK_CHECK(v == sum);
    RANK_SUCCESS(GCCL_Comm_get_failed(world, who, 8, &failed));
    RANK_CHECK(std::set<int>(who, who + failed) == victims);
    for (int i = 0; i < 3; ++i) RANK_SUCCESS(GCCL_Barrier(comm));
    RANK_SUCCESS(GCCL_Comm_free(&comm));
    GCCL_Finalize();
  });
  CHECK(running.await_ready(job.size));
  usleep(20000);
  for (const int v : victims)
    if (v != late) running.kill(v, SIGKILL);
  check_others(running.wait(), victims, describe(job) + ", " + std::to_string(count) + " doubles");
}

}  // namespace

TEST_CASE("one of four ranks is killed, and three go on") {
  for (const Job& job : transports(4))
    for (const int victim : {0, 2})
      for (const std::size_t count : {std::size_t(1), std::size_t(1) << 18}) kill_and_go_on(job, {victim}, count);
}

TEST_CASE("two of four ranks are killed at once") {
  for (const char* backends : {"shm", "tcp"})
    for (const std::set<int>& victims : {std::set<int>{0, 1}, std::set<int>{1, 3}})
      kill_and_go_on({.size = 4, .backends = backends}, victims, 1000);
}

TEST_CASE("another rank is killed while they shrink") {
  for (const char* backends : {"shm", "tcp"})
    for (int late_us = 100; late_us < 20000; late_us = late_us * 7 / 4)
      kill_and_go_on({.size = 4, .backends = backends}, {0, 2}, 1000, late_us);
}

TEST_CASE("the last rank goes on alone") {
  for (const char* backends : {"shm", "tcp"})
    for (const int victim : {0, 1}) kill_and_go_on({.size = 2, .backends = backends}, {victim}, 1000);
}

TEST_CASE("ranks that agree without a failure get the AND of their flags") {
  for (const Job& job : transports(3))
    check(job, [](int rank) {
      GCCL_Comm world = begin();
      for (int i = 0; i < 20; ++i) {
        std::uint64_t flags = ~(std::uint64_t(1) << rank);
        RANK_SUCCESS(GCCL_Comm_agree(world, &flags));
        RANK_CHECK(flags == ~std::uint64_t(7));
      }
      int failed = -1;
      RANK_SUCCESS(GCCL_Comm_get_failed(world, nullptr, 0, &failed));
      RANK_CHECK(failed == 0);
      GCCL_Comm same = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Comm_shrink(world, &same));
      int size = 0;
      RANK_SUCCESS(GCCL_Comm_size(same, &size));
      RANK_CHECK(size == 3);
      RANK_SUCCESS(GCCL_Barrier(same));
      RANK_SUCCESS(GCCL_Finalize());
    });
}

TEST_CASE("communicators on which ranks agreed leave nothing behind when they are freed") {
  for (const char* backends : {"shm", "tcp"})
    check({.size = 2, .backends = backends}, [](int rank) {
      GCCL_Comm world = begin();
      std::size_t heap = 0;
      constexpr int kRounds = 400;
      for (int i = 0; i < kRounds && !any_reported(); ++i) {
        if (i == kRounds / 5) heap = ::mallinfo2().uordblks;
        GCCL_Comm part = GCCL_COMM_NULL;
        RANK_SUCCESS(GCCL_Comm_split(world, 0, rank, &part));
        std::uint64_t flags = 3;
        RANK_SUCCESS(GCCL_Comm_agree(part, &flags));
        RANK_CHECK(flags == 3);
        RANK_SUCCESS(GCCL_Comm_free(&part));
      }
      const std::size_t grown = ::mallinfo2().uordblks - heap;
      if (grown < SIZE_MAX / 2 && grown > 100 * kRounds) report("the heap grew by " + std::to_string(grown) + " bytes");
      RANK_SUCCESS(GCCL_Finalize());
    });
}

TEST_CASE("what is in flight goes on while a rank agrees") {
  for (const Job& job : transports(3))
    check(job, [](int rank) {
      GCCL_Comm world = begin();
      constexpr std::size_t kCount = 1 << 20;
      std::vector<float> x(kCount, 1.0f);
      GCCL_Request request = GCCL_REQUEST_NULL;
      std::uint64_t flags = 1;
      RANK_SUCCESS(GCCL_Iallreduce(GCCL_IN_PLACE, x.data(), kCount, GCCL_FLOAT32, GCCL_SUM, world, &request));
      if (rank == 0) RANK_SUCCESS(GCCL_Comm_agree(world, &flags));  // the others need it before they agree
      RANK_SUCCESS(GCCL_Wait(&request));
      if (rank != 0) RANK_SUCCESS(GCCL_Comm_agree(world, &flags));
      RANK_CHECK(std::count(x.begin(), x.end(), 3.0f) == std::ptrdiff_t(kCount));
      RANK_SUCCESS(GCCL_Finalize());
    });
}

TEST_CASE("a rank that revokes a communicator ends the calls of all, and they go on with another") {
  for (const Job& job : transports(3))
    check(job, [](int rank) {
      GCCL_Comm world = begin(), c = copy_of(world);
      if (rank == 1)
        RANK_SUCCESS(GCCL_Comm_revoke(c));
      else
        expect(GCCL_Barrier(c), GCCL_ERR_REVOKED, "barrier");
      expect(GCCL_Barrier(c), GCCL_ERR_REVOKED, "afterwards");
      expect_text("revoked the communicator", "who");
      GCCL_Comm again = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Comm_shrink(c, &again));
      RANK_SUCCESS(GCCL_Barrier(again));
      GCCL_Comm_free(&c);
      RANK_SUCCESS(GCCL_Comm_free(&again));
      GCCL_Finalize();
    });
}

// While the smaller communicator is made, the shrinking thread waits for other ranks without a lock.
TEST_CASE("a thread that shrinks what another one shrinks gets an error, whenever it comes") {
  for (const Job& job : transports(3))
    check(job, [](int rank) {
      GCCL_Comm world = begin(), c = copy_of(world), made = GCCL_COMM_NULL, mine = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Comm_set_timeout(c, 2000));  // a call that comes when the other has ended waits for nobody
      std::atomic<bool> begun{false}, over{false};
      std::thread other([&] {
        while (rank == 0 && !begun) std::this_thread::yield();
        for (GCCL_Result r = GCCL_ERR_INVALID_USAGE; rank == 0 && !over && r == GCCL_ERR_INVALID_USAGE;) {
          GCCL_Comm another = GCCL_COMM_NULL;
          r = GCCL_Comm_shrink(c, &another);
          RANK_CHECK((r == GCCL_SUCCESS || r == GCCL_ERR_INVALID_USAGE || r == GCCL_ERR_TIMEOUT));
          if (r == GCCL_SUCCESS) made = another;
        }
      });
      begun = true;
      const GCCL_Result r = GCCL_Comm_shrink(c, &mine);
      over = true;
      other.join();
      RANK_CHECK((r == GCCL_SUCCESS || (rank == 0 && r == GCCL_ERR_INVALID_USAGE)));
      if (!made) made = mine;
      RANK_CHECK(made != GCCL_COMM_NULL);
      RANK_SUCCESS(GCCL_Barrier(made));
      RANK_SUCCESS(GCCL_Comm_release(&made));
      RANK_SUCCESS(GCCL_Comm_release(&c));
      RANK_SUCCESS(GCCL_Barrier(world));
      GCCL_Finalize();
    });
}

TEST_CASE("wrong arguments are reported") {
  check({.size = 1, .backends = "shm"}, [](int) {
    GCCL_Comm world = begin();
    int count = 0;
    expect(GCCL_Comm_agree(world, nullptr), GCCL_ERR_INVALID_ARGUMENT, "agree");
    expect(GCCL_Comm_shrink(world, nullptr), GCCL_ERR_INVALID_ARGUMENT, "shrink");
    expect(GCCL_Comm_get_failed(world, nullptr, 1, &count), GCCL_ERR_INVALID_ARGUMENT, "ranks");
    expect(GCCL_Comm_get_failed(world, nullptr, -1, &count), GCCL_ERR_INVALID_ARGUMENT, "capacity");
    expect(GCCL_Comm_get_failed(world, nullptr, 0, nullptr), GCCL_ERR_INVALID_ARGUMENT, "count");
    expect(GCCL_Comm_revoke(GCCL_COMM_NULL), GCCL_ERR_INVALID_ARGUMENT, "revoke");
    GCCL_Comm alone = GCCL_COMM_NULL;
    std::uint64_t flags = 5;
    RANK_SUCCESS(GCCL_Comm_agree(world, &flags));
    RANK_CHECK(flags == 5);
    RANK_SUCCESS(GCCL_Comm_shrink(world, &alone));
    RANK_SUCCESS(GCCL_Finalize());
  });
}
