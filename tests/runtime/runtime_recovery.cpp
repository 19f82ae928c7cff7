// Going on without ranks that have failed, where that is made hard.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/from_environment.hpp"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

// Calls f in a child of this process that is the first of a process-id namespace of its own; true in this process where
// there is one.
bool in_own_namespace(const std::function<void()>& f) {
  if (::unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) return false;
  without_leak_check();  // it starts a process, which goes into that namespace
  gccl::test::Child child([&] {
    ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    ::mount("proc", "/proc", "proc", 0, nullptr);
    f();
    return any_reported() ? 1 : 0;
  });
  if (child.wait() != 0) report("the process in a namespace of its own");
  return true;
}

bool no_ipv6_datagrams = false;

}  // namespace

// In place of the C library's: it finds no descriptor where a test says so.
extern "C" int socket(int family, int type, int protocol) noexcept {
  if (no_ipv6_datagrams && family == AF_INET6 && (type & 0xf) == SOCK_DGRAM) return errno = EMFILE, -1;
  return int(::syscall(SYS_socket, family, type, protocol));
}

namespace {

bool has_ipv6() {
  sockaddr_in6 here{};
  here.sin6_family = AF_INET6;
  here.sin6_addr = in6addr_loopback;
  const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool has = fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0;
  if (fd >= 0) ::close(fd);
  return has;
}

// Until so many are left, all-reduces, agreements and copies that fail are answered by shrinking.
void go_on_until(int left, GCCL_Comm world) {
  GCCL_Comm comm = world;
  const auto began = Clock::now();
  for (;;) {
    int size = 0;
    RANK_SUCCESS(GCCL_Comm_size(comm, &size));
    std::vector<double> x(1000, 1.0), y(1000);
    GCCL_Result result = GCCL_SUCCESS;
    for (int i = 0; result == GCCL_SUCCESS && (size > left || i < 3); ++i) {
      result = GCCL_Allreduce(x.data(), y.data(), x.size(), GCCL_FLOAT64, GCCL_SUM, comm);
      if (result == GCCL_SUCCESS) RANK_CHECK(y[999] == size);
      if (result == GCCL_SUCCESS && i % 3 == 1) {
        GCCL_Comm half = GCCL_COMM_NULL;
        result = GCCL_Comm_split(comm, 0, 0, &half);
        if (half) GCCL_Comm_free(&half);
      }
      if (seconds_since(began) > 60) return report("too long");
    }
    if (result != GCCL_SUCCESS && result != GCCL_ERR_PEER_LOST && result != GCCL_ERR_REMOTE) {
      report("returned " + std::to_string(int(result)) + ": " + GCCL_Last_error());
      return;
    }
    std::uint64_t good = result == GCCL_SUCCESS;
    if (GCCL_Comm_agree(comm, &good) == GCCL_SUCCESS && good && size == left) return;
    GCCL_Comm smaller = GCCL_COMM_NULL;
    const GCCL_Result made = GCCL_Comm_shrink(comm, &smaller);
    if (made != GCCL_SUCCESS) {
      report("shrink returned " + std::to_string(int(made)) + ": " + GCCL_Last_error());
      return;
    }
    comm = smaller;
  }
}

}  // namespace

TEST_CASE("ranks start where one can receive no datagrams, and all say that they cannot go on without others") {
  check({.size = 3, .backends = "shm", .environment = {{"GCCL_SECRET", "theirs"}}}, [](int rank) {
    if (rank == 1) ::setenv("GCCL_ADDRESS", "192.0.2.1", 1);  // of no machine
    GCCL_Comm world = begin(), smaller = GCCL_COMM_NULL;
    RANK_SUCCESS(GCCL_Barrier(world));
    int count = 0;
    std::uint64_t flags = 1;
    expect(GCCL_Comm_shrink(world, &smaller), GCCL_ERR_NOT_SUPPORTED, "shrink");
    expect_text("rank 1 could receive no datagrams", "who");
    expect_text("192.0.2.1", "why");
    expect(GCCL_Comm_agree(world, &flags), GCCL_ERR_NOT_SUPPORTED, "agree");
    expect(GCCL_Comm_get_failed(world, nullptr, 0, &count), GCCL_ERR_NOT_SUPPORTED, "get_failed");
    expect(GCCL_Comm_ack_failed(world), GCCL_ERR_NOT_SUPPORTED, "ack_failed");
    RANK_SUCCESS(GCCL_Barrier(world));
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("ranks whose addresses are of different families agree, and go on without one that has ended") {
  if (!has_ipv6()) {
    MESSAGE("not checked: there is no IPv6 here");
    return;
  }
  const std::vector<End> ends = run({.size = 3, .backends = "tcp"}, [](int rank) {
    ::setenv("GCCL_ADDRESS", rank % 2 ? "::1" : "127.0.0.1", 1);
    GCCL_Comm world = begin();
    std::uint64_t flags = rank == 1 ? 5 : 6;
    RANK_SUCCESS(GCCL_Comm_agree(world, &flags));
    RANK_CHECK(flags == 4);
    if (rank == 2) ::_exit(0);
    go_on_until(2, world);
    if (!any_reported()) RANK_SUCCESS(GCCL_Finalize());
  });
  check_others(ends, {2});
}

TEST_CASE("where a rank has no socket for the others' family all say so, and it is lost to nobody") {
  if (!has_ipv6()) {
    MESSAGE("not checked: there is no IPv6 here");
    return;
  }
  for (const bool needed : {true, false}) {
    CAPTURE(needed);
    check({.size = 3, .backends = "tcp"}, [needed](int rank) {
      ::setenv("GCCL_ADDRESS", needed && rank == 1 ? "::1" : "127.0.0.1", 1);
      no_ipv6_datagrams = rank == 0;
      GCCL_Comm world = begin();
      RANK_SUCCESS(GCCL_Barrier(world));
      std::uint64_t flags = 1;
      if (needed) {
        expect(GCCL_Comm_agree(world, &flags), GCCL_ERR_NOT_SUPPORTED, "agree");
        expect_text("rank 0 can send no datagrams to rank 1", "who");
        expect_text("Too many open files", "why");
      } else {
        RANK_SUCCESS(GCCL_Comm_agree(world, &flags));
      }
      RANK_SUCCESS(GCCL_Barrier(world));
      RANK_SUCCESS(GCCL_Finalize());
    });
  }
}

TEST_CASE("ranks that see other process numbers do not take each other for dead") {
  for (const char* backends : {"shm", "tcp"})
    check({.size = 3, .backends = backends, .environment = {{"GCCL_HOST", "one"}}}, [](int rank) {
      const auto body = [] {
        GCCL_Comm world = begin(), same = GCCL_COMM_NULL;
        RANK_SUCCESS(GCCL_Barrier(world));
        int failed = -1, size = 0;
        RANK_SUCCESS(GCCL_Comm_get_failed(world, nullptr, 0, &failed));
        RANK_CHECK(failed == 0);
        RANK_SUCCESS(GCCL_Comm_shrink(world, &same));
        RANK_SUCCESS(GCCL_Comm_size(same, &size));
        RANK_CHECK(size == 3);
        RANK_SUCCESS(GCCL_Barrier(same));
        RANK_SUCCESS(GCCL_Finalize());
      };
      if (rank != 1 || !in_own_namespace(body)) body();
    });
}

TEST_CASE("a rank that closes all descriptors of its process does not lose the others") {
  check({.size = 3, .backends = "shm"}, [](int rank) {
    GCCL_Comm world = begin(), same = GCCL_COMM_NULL;
    std::uint64_t flags = 1;
    RANK_SUCCESS(GCCL_Comm_agree(world, &flags));
    RANK_SUCCESS(GCCL_Barrier(world));
    if (rank == 1)
      for (int fd = 3; fd < 100; ++fd) {
        char path[64], what[64] = {};
        std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (::readlink(path, what, sizeof what - 1) > 0 && std::string(what).find("pidfd") != std::string::npos)
          ::close(fd);
      }
    flags = 1;
    RANK_SUCCESS(GCCL_Comm_agree(world, &flags));
    usleep(50000);
    int failed = -1;
    RANK_SUCCESS(GCCL_Comm_get_failed(world, nullptr, 0, &failed));
    RANK_CHECK(failed == 0);
    RANK_SUCCESS(GCCL_Comm_shrink(world, &same));
    RANK_SUCCESS(GCCL_Barrier(same));
    without_leak_check();
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("a rank that has finalized has left, for those that shrink, while its process goes on") {
  void* const memory =
      ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  for (Job job : transports(3)) {
    job.environment["GCCL_DETECTION_MS"] = "100000";  // none is called failed for silence
    auto& gone_on = *new (memory) std::atomic<int>(0);
    check(job, [&](int rank) {
      GCCL_Comm world = begin(), smaller = GCCL_COMM_NULL;
      // Before a rank leaves: some may not have heard of all when it does, and for them it ends with that.
      (void)GCCL_Barrier(world);
      if (rank == 1) {
        GCCL_Finalize();
        for (const auto left = Clock::now(); gone_on < 2 && seconds_since(left) < 60;) usleep(1000);
        RANK_CHECK(gone_on == 2);
        return;
      }
      RANK_CHECK(GCCL_Barrier(world) != GCCL_SUCCESS);
      int size = 0;
      RANK_SUCCESS(GCCL_Comm_shrink(world, &smaller));
      ++gone_on;
      RANK_SUCCESS(GCCL_Comm_size(smaller, &size));
      RANK_CHECK(size == 2);
      RANK_SUCCESS(GCCL_Barrier(smaller));
      GCCL_Finalize();
    });
  }
  ::munmap(memory, sizeof(std::atomic<int>));
}

TEST_CASE("a smaller communicator is made smaller, and copies and parts are, too") {
  for (const Job& job : transports(5))
    check(job, [&](int rank) {
      GCCL_Comm world = begin(), part = GCCL_COMM_NULL, a = GCCL_COMM_NULL, b = GCCL_COMM_NULL, c = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Comm_split(world, rank % 2, -rank, &part));  // 4 2 0, and 3 1
      (void)GCCL_Barrier(world);
      if (rank == 4 || rank == 1) ::_exit(0);
      if (!job.nodes.empty()) return without_leak_check();  // half may not go on
      int size = 0, mine = -1;
      RANK_SUCCESS(GCCL_Comm_shrink(part, &a));
      RANK_SUCCESS(GCCL_Comm_size(a, &size));
      RANK_SUCCESS(GCCL_Comm_rank(a, &mine));
      RANK_CHECK(size == (rank == 3 ? 1 : 2));
      RANK_CHECK(mine == (rank == 0 ? 1 : 0));
      RANK_SUCCESS(GCCL_Comm_shrink(world, &b));
      RANK_SUCCESS(GCCL_Comm_shrink(world, &c));
      (void)GCCL_Barrier(b);
      (void)GCCL_Barrier(c);
      if (rank == 0) ::_exit(0);
      GCCL_Comm d = GCCL_COMM_NULL, e = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Comm_shrink(c, &d));
      RANK_SUCCESS(GCCL_Comm_shrink(b, &e));
      RANK_SUCCESS(GCCL_Comm_size(d, &size));
      RANK_CHECK(size == 2);
      RANK_SUCCESS(GCCL_Barrier(d));
      RANK_SUCCESS(GCCL_Barrier(e));
      double x = rank, y = 0;
      RANK_SUCCESS(GCCL_Allreduce(&x, &y, 1, GCCL_FLOAT64, GCCL_SUM, e));
      RANK_CHECK(y == 5);
      GCCL_Finalize();
    });
}

TEST_CASE("a rank that is stopped for a while, and one that was killed and has a child, hold nobody for good") {
  for (const char* backends : {"shm", "tcp"}) {
    Running running({.size = 4, .backends = backends}, [&](int rank) {
      GCCL_Comm world = begin();
      std::uint64_t flags = 1;
      RANK_SUCCESS(GCCL_Comm_agree(world, &flags));  // its thread runs
      (void)GCCL_Barrier(world);
      if (rank == 1 && ::fork() == 0) {
        usleep(1500000);
        ::_exit(0);
      }
      if (rank < 2) {
        std::printf("ready\n");
        std::fflush(stdout);
      }
      go_on_until(3, world);
      GCCL_Finalize();
    });
    CHECK(running.await(0, "ready\n"));
    CHECK(running.await(1, "ready\n"));
    running.kill(0, SIGSTOP);
    running.kill(1, SIGKILL);
    usleep(300000);
    running.kill(0, SIGCONT);
    check_others(running.wait(), {1}, backends);
  }
}

TEST_CASE("any of the ranks are killed at any moments") {
  const std::uint64_t first = gccl::test::from_environment("GCCL_TEST_SEED", 1),
                      kills = gccl::test::from_environment("GCCL_TEST_KILLS", 12);
  for (std::uint64_t seed = first; seed < first + kills; ++seed) {
    std::mt19937 random{unsigned(seed)};
    const int size = 2 + int(random() % 4);
    Job job = {.size = size, .backends = random() % 2 ? "shm" : "tcp", .limit_s = 100};
    if (size > 2 && random() % 4 == 0) job = transports(size).back();
    if (!job.nodes.empty()) job.nodes = {};  // those of other machines are not seen to end
    std::set<int> victims;
    const int dead = 1 + int(random() % unsigned(size - 1));
    while (int(victims.size()) < dead) victims.insert(int(random() % unsigned(size)));
    std::vector<int> at_us(static_cast<std::size_t>(size));
    for (int& at : at_us) at = 1 + int(random() % 30000);
    Running running(job, [&](int rank) {
      GCCL_Comm world = begin();
      (void)GCCL_Barrier(world);
      if (victims.contains(rank)) {
        ::signal(SIGALRM, [](int) { ::kill(::getpid(), SIGKILL); });
        const itimerval after = {{0, 0}, {0, at_us[std::size_t(rank)]}};
        ::setitimer(ITIMER_REAL, &after, nullptr);
      }
      go_on_until(size - dead, world);
      RANK_SUCCESS(GCCL_Finalize());
    });
    const std::vector<End> ends = running.wait();
    for (int r = 0; r < size; ++r)
      if (!victims.contains(r))
        CHECK_MESSAGE(ends[std::size_t(r)].good(), "seed " << seed << ": " << describe(job) << "\n" << texts(ends));
  }
}
