// Communicators that shrink by themselves when ranks are killed: what each call returns and leaves behind on those that
// are left is the same on all of them, and no rank's part is in a sum twice.
//
// Environment: GCCL_TEST_POLICY_SEEDS (how many, 6) and GCCL_TEST_POLICY_SEED (the first, 1).
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gccl/gccl.h"
#include "gccl/gccl.hpp"
#include "libgccl/communicator/agreed.hpp"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

void die_after(int microseconds) {
  ::signal(SIGALRM, [](int) { ::kill(::getpid(), SIGKILL); });
  const itimerval after = {{0, 0}, {0, std::max(microseconds, 1)}};
  RANK_CHECK(::setitimer(ITIMER_REAL, &after, nullptr) == 0);
}

void live_on() {
  const itimerval never = {};
  ::setitimer(ITIMER_REAL, &never, nullptr);
}

// Rank w adds 8^w to each sum: the digits of a sum to base 8 say how often each rank is in it.
std::uint64_t part_of(int world_rank) { return std::uint64_t(1) << 3 * world_rank; }

// How many ranks are in the sum; -1 where one is in it twice, or another number than `times` the parts has come out.
int parts_in(std::uint64_t sum, std::uint64_t times) {
  if (sum % times != 0) return -1;
  int n = 0;
  for (sum /= times; sum > 0; sum /= 8) {
    if (sum % 8 > 1) return -1;
    n += int(sum % 8);
  }
  return n;
}
bool is_in(int world_rank, std::uint64_t sum, std::uint64_t times) { return (sum / times >> 3 * world_rank & 7) == 1; }

struct Timeline {
  Job job;
  unsigned seed = 0;
  std::set<int> victims;   // in this order; all but the first once the first is missed
  std::vector<int> after;  // microseconds, for each victim
  static constexpr int kSteps = 120;

  explicit Timeline(unsigned s) : seed(s) {
    std::mt19937 random(s * 7919);
    const auto below = [&](unsigned n) { return int(random() % n); };
    job.size = 2 + below(4);
    job.backends = below(2) ? "shm" : "tcp";
    job.environment["GCCL_ON_FAILURE"] = "shrink";
    job.limit_s = 120;
    const int kills = 1 + below(unsigned(std::min(job.size - 1, 2)));
    while (int(victims.size()) < kills) victims.insert(below(unsigned(job.size)));
    for (int i = 0; i < kills; ++i) after.push_back(i == 0 ? below(30000) : below(2) ? below(4000) : below(30000));
  }
  std::string text() const {
    std::string t =
        describe(job) + ", GCCL_TEST_POLICY_SEED=" + std::to_string(seed) + " GCCL_TEST_POLICY_SEEDS=1, killed:";
    for (const int v : victims) t += " " + std::to_string(v);
    return t;
  }
};

// What one rank does in a timeline.
class Steps {
 public:
  Steps(const Timeline& t, int world_rank) : t_(t), me_(world_rank), random_(t.seed) {}

  void run() {
    comm_ = begin();
    if (comm_ && t_.seed % 2 == 0) {
      RANK_SUCCESS(GCCL_Comm_set_on_failure(comm_, GCCL_FAIL));
      comm_ = copy_of(comm_);
      RANK_SUCCESS(GCCL_Comm_set_on_failure(comm_, GCCL_SHRINK));
    }
    if (!comm_) return;
    const auto at = std::distance(t_.victims.begin(), t_.victims.find(me_));
    mine_ = std::size_t(at) < t_.after.size() ? t_.after[std::size_t(at)] : -1;
    RANK_SUCCESS(GCCL_On_failure(comm_, &Steps::hear, this));
    ask();
    RANK_SUCCESS(GCCL_Barrier(comm_));
    if (at == 0) die_after(mine_);
    for (step_ = 1; step_ <= Timeline::kSteps && !any_reported(); ++step_) make_step();
    live_on();
    std::printf("log %llx\n", static_cast<unsigned long long>(log_));
    GCCL_Finalize();  // says so where ranks fail meanwhile
  }

 private:
  static void hear(GCCL_Comm, const GCCL_Failure* f, void* self) {
    Steps& s = *static_cast<Steps*>(self);
    if (f->stage == GCCL_FAILURE_NOTICED) {
      ++s.noticed_;
      if (s.mine_ >= 0 && s.me_ != *s.t_.victims.begin()) die_after(s.mine_);
    } else {
      RANK_CHECK(f->count >= 0);
      for (int i = 0; i < f->count; ++i) RANK_CHECK(s.t_.victims.contains(f->world_ranks[i]));
      RANK_CHECK(f->size == s.size_ - f->count);
      s.size_ = f->size;
      s.rank_ = f->rank;
    }
  }
  void ask() {
    RANK_SUCCESS(GCCL_Comm_size(comm_, &size_));
    RANK_SUCCESS(GCCL_Comm_rank(comm_, &rank_));
  }
  void note(std::uint64_t value) { log_ = (log_ ^ value) * 0x9e3779b97f4a7c15 ^ log_ >> 29; }

  // One call, made anew until it is carried out.
  void make_step() {
    const unsigned kind = random_() % 7, count = std::vector<unsigned>{1, 60, 3000, 50000}[random_() % 4];
    const unsigned root = random_();
    for (int tries = 0; tries < 5; ++tries) {
      const GCCL_Result r = call(kind, count, root);
      note(std::uint64_t(step_) << 8 | std::uint64_t(r));
      if (r == GCCL_SUCCESS) return;
      if (r != GCCL_ERR_RANKS_CHANGED || kind < 3)
        return report("step " + std::to_string(step_) + " kind " + std::to_string(kind) + " returned " +
                      std::to_string(int(r)) + ": " + GCCL_Last_error());
      ask();
    }
    report("handed back too often");
  }

  GCCL_Result call(unsigned kind, std::size_t count, unsigned root_drawn) {
    const auto n = std::size_t(size_), r = std::size_t(rank_);
    const std::uint64_t times = std::uint64_t(step_), part = part_of(me_) * times;
    const int before = size_;
    std::vector<std::uint64_t> in, out;
    const auto sums =
        [&](std::size_t first) {  // of all ranks, or of those left after the first failure, or after the next
          ask();
          const int parts = parts_in(out[first], times);
          RANK_CHECK(size_ <= parts && parts <= before);
          RANK_CHECK(is_in(me_, out[first], times));
          for (std::size_t i = 0; i < count; ++i) RANK_CHECK(out[first + i] == out[first]);
          note(out[first]);
        };
    GCCL_Result result = GCCL_SUCCESS;
    switch (kind) {
      case 0:
        in.assign(count, part), out.assign(count, 0);
        result = GCCL_Allreduce(in.data(), out.data(), count, GCCL_UINT64, GCCL_SUM, comm_);
        if (result == GCCL_SUCCESS) sums(0);
        return result;
      case 1:
        out.assign(count, part);
        result = GCCL_Allreduce(GCCL_IN_PLACE, out.data(), count, GCCL_UINT64, GCCL_SUM, comm_);
        if (result == GCCL_SUCCESS) sums(0);
        return result;
      case 2: result = GCCL_Barrier(comm_); return result;
      case 3:
        in.assign(n * count, part), out.assign(count, 0);
        result = GCCL_Reduce_scatter(in.data(), out.data(), count, GCCL_UINT64, GCCL_SUM, comm_);
        if (result == GCCL_SUCCESS) sums(0);
        return result;
      case 4:
        out.assign(n * count, part);
        result = GCCL_Reduce_scatter(GCCL_IN_PLACE, out.data(), count, GCCL_UINT64, GCCL_SUM, comm_);
        if (result == GCCL_SUCCESS) sums(0);
        if (result == GCCL_ERR_RANKS_CHANGED)
          for (const std::uint64_t v : out) RANK_CHECK(v == part);  // the input is as it was
        return result;
      case 5: {
        in.assign(count, part), out.assign(n * count, 0);
        result = GCCL_Allgather(in.data(), out.data(), count, GCCL_UINT64, comm_);
        if (result != GCCL_SUCCESS) return result;
        std::uint64_t sum = 0;
        for (std::size_t b = 0; b < n; ++b) {
          for (std::size_t i = 0; i < count; ++i) RANK_CHECK(out[b * count + i] == out[b * count]);
          if (b > 0) RANK_CHECK(out[b * count] > out[(b - 1) * count]);  // in the order of ranks
          sum += out[b * count];
        }
        RANK_CHECK(parts_in(sum, times) == int(n));
        RANK_CHECK(out[r * count] == part);
        note(sum);
        return result;
      }
      default: {
        const std::size_t root = root_drawn % n;
        out.assign(count, r == root ? part : 0);
        result = GCCL_Broadcast(out.data(), count, GCCL_UINT64, int(root), comm_);
        if (result != GCCL_SUCCESS) return result;
        RANK_CHECK(parts_in(out[0], times) == 1);
        for (const std::uint64_t v : out) RANK_CHECK(v == out[0]);
        if (r == root) RANK_CHECK(out[0] == part);
        note(out[0]);
        return result;
      }
    }
  }

  const Timeline& t_;
  const int me_;
  std::mt19937 random_;
  GCCL_Comm comm_ = GCCL_COMM_NULL;
  int size_ = 0, rank_ = 0, step_ = 0, mine_ = -1, noticed_ = 0;
  std::uint64_t log_ = 0;
};

unsigned number_in(const char* name, unsigned otherwise) {
  const char* const text = std::getenv(name);
  return text ? unsigned(std::strtoul(text, nullptr, 10)) : otherwise;
}

std::string line_of(const std::string& text, const std::string& begin) {
  const std::size_t at = text.find(begin);
  return at == text.npos ? "" : text.substr(at, text.find('\n', at) - at);
}

}  // namespace

TEST_CASE("ranks killed at random moments: those that are left have the same results, and each part once") {
  const unsigned first = number_in("GCCL_TEST_POLICY_SEED", 1), seeds = number_in("GCCL_TEST_POLICY_SEEDS", 6);
  int killed_of_all = 0;
  for (unsigned seed = first; seed < first + seeds; ++seed) {
    const Timeline t(seed);
    const std::vector<End> ends = run(t.job, [&](int rank) { Steps(t, rank).run(); });
    std::set<std::string> logs;
    bool good = true;
    for (std::size_t r = 0; r < ends.size(); ++r) {
      const bool killed = ends[r].signal == SIGKILL && !ends[r].late && t.victims.contains(int(r));
      killed_of_all += killed;
      good = good && (killed || ends[r].good());
      if (ends[r].good()) logs.insert(line_of(ends[r].text, "log "));
    }
    CHECK_MESSAGE(good, t.text() << "\n" << texts(ends));
    CHECK_MESSAGE(logs.size() == 1, t.text() << ": results differ\n" << texts(ends));
  }
  MESSAGE("seeds " << first << " to " << first + seeds - 1 << ": " << killed_of_all << " ranks were killed");
}

TEST_CASE("an all-reduce goes on in place, a broadcast is handed back once, and the program is told") {
  for (const Job& base : transports(3)) {
    Job job = base;
    job.environment["GCCL_ON_FAILURE"] = "shrink";
    Running running(job, [](int rank) {
      gccl::api::Communicator world(begin());
      struct Heard {
        int noticed = 0, recovered = 0;
        void operator()(const GCCL_Failure& f) {
          ++(f.stage == GCCL_FAILURE_NOTICED ? noticed : recovered);
          RANK_CHECK(f.count == 1 && f.ranks[0] == 1 && f.world_ranks[0] == 1);
          RANK_CHECK(f.size == (f.stage == GCCL_FAILURE_NOTICED ? 3 : 2));
          RANK_CHECK(std::string(f.text).find("rank 1") != std::string::npos);
        }
      } heard;
      world.on_failure(heard);
      std::vector<double> x(1000, rank + 1.0);
      world.barrier();
      if (rank == 1) {
        std::printf("ready\n");
        std::fflush(stdout);
      }
      do {
        x.assign(1000, rank + 1.0);
        world.allreduce(x);
      } while (world.size() == 3);
      // That of all ranks where all had it when rank 1 ended.
      RANK_CHECK(x[0] == 4 || x[0] == 6);
      RANK_CHECK(x[999] == x[0]);
      RANK_CHECK(world.rank() == rank / 2);
      x.assign(1000, rank + 1.0);
      world.allreduce(x);
      RANK_CHECK(x[999] == 4);
      GCCL_Request request = GCCL_REQUEST_NULL;
      for (int i = 0; i < 2; ++i) {
        expect(GCCL_Iallreduce(GCCL_IN_PLACE, x.data(), 1, GCCL_FLOAT64, GCCL_SUM, world.get(), &request),
               GCCL_ERR_RANKS_CHANGED, "begun with old numbers");
        expect(GCCL_Send(x.data(), 1, GCCL_FLOAT64, 0, world.get()), GCCL_ERR_RANKS_CHANGED, "sent with old numbers");
      }
      x.assign(1000, rank + 1.0);
      expect(GCCL_Broadcast(x.data(), 1000, GCCL_FLOAT64, 1, world.get()), GCCL_ERR_RANKS_CHANGED, "broadcast");
      expect_text("lost rank 1", "who");
      RANK_CHECK(x[999] == rank + 1.0);
      world.broadcast(x, 1);
      RANK_CHECK(x[999] == 3);
      world.iallreduce(x).wait();
      RANK_CHECK(heard.noticed == 1);
      RANK_CHECK(heard.recovered == 1);
      const GCCL_Metrics m = world.metrics();
      RANK_CHECK(m.failures_noticed == 1);
      RANK_CHECK(m.recoveries == 1);
      RANK_CHECK(m.ranks_lost == 1);
      RANK_CHECK(m.calls_repeated <= 1);
      RANK_CHECK(m.calls_handed_back == 1);
      world.free();
      GCCL_Finalize();
    });
    CHECK(running.await(1, "ready\n"));
    running.kill(1, SIGKILL);
    const std::vector<End> ends = running.wait();
    for (const std::size_t r : {0u, 2u}) CHECK_MESSAGE(ends[r].good(), describe(job) << "\n" << texts(ends));
  }
}

TEST_CASE("what was in flight is lost, and the next barrier makes the communicator smaller") {
  for (const char* backends : {"shm", "tcp"}) {
    Running running({.size = 3, .backends = backends}, [](int rank) {
      GCCL_Comm world = begin();
      RANK_SUCCESS(GCCL_Comm_set_on_failure(world, GCCL_SHRINK));
      int told = 0;
      RANK_SUCCESS(GCCL_On_failure(
          world, [](GCCL_Comm, const GCCL_Failure*, void* n) { ++*static_cast<int*>(n); }, &told));
      RANK_SUCCESS(GCCL_Barrier(world));
      if (rank == 0) {
        std::printf("ready\n");
        std::fflush(stdout);
        for (;;) ::pause();
      }
      double x = 1;
      GCCL_Request request = GCCL_REQUEST_NULL;
      RANK_SUCCESS(GCCL_Iallreduce(GCCL_IN_PLACE, &x, 1, GCCL_FLOAT64, GCCL_SUM, world, &request));
      expect(GCCL_Wait(&request), GCCL_ERR_PEER_LOST, "in flight");
      RANK_CHECK(told == 1);
      expect(GCCL_Recv(&x, 1, GCCL_FLOAT64, 0, world), GCCL_ERR_PEER_LOST, "on what has failed");
      RANK_SUCCESS(GCCL_Barrier(world));
      RANK_CHECK(told == 2);
      RANK_SUCCESS(GCCL_Comm_ack_failed(world));
      int size = 0, mine = 0;
      RANK_SUCCESS(GCCL_Comm_size(world, &size));
      RANK_SUCCESS(GCCL_Comm_rank(world, &mine));
      RANK_CHECK(size == 2);
      RANK_CHECK(mine == rank - 1);
      if (mine == 0)
        RANK_SUCCESS(GCCL_Send(&x, 1, GCCL_FLOAT64, 1, world));
      else
        RANK_SUCCESS(GCCL_Recv(&x, 1, GCCL_FLOAT64, 0, world));
      RANK_SUCCESS(GCCL_Finalize());
    });
    CHECK(running.await(0, "ready\n"));
    usleep(5000);
    running.kill(0, SIGKILL);
    const std::vector<End> ends = running.wait();
    for (const std::size_t r : {1u, 2u}) CHECK_MESSAGE(ends[r].good(), texts(ends));
  }
}

TEST_CASE("with the policy fail a killed rank is told once, and nothing is repeated") {
  Running running({.size = 2, .backends = "shm"}, [](int rank) {
    GCCL_Comm world = begin();
    int told = 0;
    RANK_SUCCESS(GCCL_On_failure(
        world,
        [](GCCL_Comm comm, const GCCL_Failure* f, void* n) {
          ++*static_cast<int*>(n);
          RANK_CHECK(f->stage == GCCL_FAILURE_NOTICED && f->count == 1 && f->ranks[0] == 0 && f->size == 2);
          double y = 0;
          GCCL_Request request;
          expect(GCCL_Iallreduce(GCCL_IN_PLACE, &y, 1, GCCL_FLOAT64, GCCL_SUM, comm, &request), GCCL_ERR_INVALID_USAGE,
                 "inside");
          GCCL_Comm other = comm;
          expect(GCCL_Comm_free(&other), GCCL_ERR_INVALID_USAGE, "freed inside");
          expect(GCCL_Comm_shrink(comm, &other), GCCL_ERR_INVALID_USAGE, "shrunk inside");
        },
        &told));
    RANK_SUCCESS(GCCL_Barrier(world));
    if (rank == 0) ::kill(::getpid(), SIGKILL);
    for (int i = 0; i < 3; ++i) expect(GCCL_Barrier(world), GCCL_ERR_PEER_LOST, "barrier");
    RANK_CHECK(told == 1);
    GCCL_Finalize();
  });
  const std::vector<End> ends = running.wait();
  CHECK_MESSAGE(ends[1].good(), texts(ends));
}

TEST_CASE("policies that differ are found, and wrong ones refused") {
  check({.size = 2, .backends = "shm"}, [](int rank) {
    GCCL_Comm world = begin();
    expect(GCCL_Comm_set_on_failure(world, rank == 0 ? GCCL_SHRINK : GCCL_FAIL), GCCL_ERR_MISMATCH, "unlike");
    expect_text("rank 0 sets GCCL_SHRINK, rank 1 sets GCCL_FAIL", "who");
    expect(GCCL_Comm_set_on_failure(world, GCCL_Failure_policy(7)), GCCL_ERR_INVALID_ARGUMENT, "policy");
    expect(GCCL_Comm_set_on_failure(GCCL_COMM_NULL, GCCL_FAIL), GCCL_ERR_INVALID_ARGUMENT, "comm");
    expect(GCCL_On_failure(GCCL_COMM_NULL, nullptr, nullptr), GCCL_ERR_INVALID_ARGUMENT, "comm");
    RANK_SUCCESS(GCCL_Barrier(world));
    RANK_SUCCESS(GCCL_Finalize());
  });
  const std::vector<End> ends = run({.size = 2, .backends = "shm"}, [](int rank) {
    if (rank == 1) ::setenv("GCCL_ON_FAILURE", "shrink", 1);
    GCCL_Comm world = GCCL_COMM_NULL;
    expect(GCCL_Init(&world, nullptr), GCCL_ERR_INVALID_USAGE, "unlike environments");
    expect_text("GCCL_ON_FAILURE differs: rank 0 has \"fail\", rank 1 has \"shrink\"", "who");
  });
  for (const End& e : ends) CHECK_MESSAGE(e.good(), texts(ends));
}

TEST_CASE("one communicator of a process shrinks by itself, and those made from it do not") {
  for (const char* backends : {"shm", "tcp"})
    check({.size = 2, .backends = backends}, [](int rank) {
      GCCL_Comm world = begin(), child = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Comm_split(world, 0, rank, &child));
      RANK_SUCCESS(GCCL_Comm_set_on_failure(child, GCCL_SHRINK));
      RANK_SUCCESS(GCCL_Comm_set_on_failure(child, GCCL_SHRINK));
      expect(GCCL_Comm_set_on_failure(world, GCCL_SHRINK), GCCL_ERR_NOT_SUPPORTED, "a second one");
      expect_text("has another communicator with GCCL_SHRINK", "why");
      RANK_SUCCESS(GCCL_Comm_set_on_failure(world, GCCL_FAIL));
      RANK_SUCCESS(GCCL_Comm_set_on_failure(child, GCCL_FAIL));
      RANK_SUCCESS(GCCL_Comm_set_on_failure(world, GCCL_SHRINK));
      GCCL_Comm second = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Comm_split(world, 0, rank, &second));
      expect(GCCL_Comm_set_on_failure(second, GCCL_SHRINK), GCCL_ERR_NOT_SUPPORTED, "a child");
      RANK_SUCCESS(GCCL_Comm_free(&second));
      RANK_SUCCESS(GCCL_Comm_free(&child));
      RANK_SUCCESS(GCCL_Finalize());
    });
}

TEST_CASE("who was given up for its slowness does not go on alone") {
  for (const char* backends : {"shm", "tcp"}) {
    Job job = {.size = 3, .backends = backends};
    job.environment = {{"GCCL_ON_FAILURE", "shrink"}, {"GCCL_TIMEOUT_MS", "300"}};
    check(job, [](int rank) {
      GCCL_Comm world = begin();
      double x = 1, sum = 0;
      RANK_SUCCESS(GCCL_Allreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, world));
      if (rank == 0) ::usleep(900000);
      expect(GCCL_Allreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, world), GCCL_ERR_TIMEOUT, "late");
      GCCL_Finalize();
    });
  }
}

TEST_CASE("ranks up to two calls apart agree on who is furthest, and on what all have completed") {
  // One of three calls, each completed or not: a barrier counts as completed before the others have come.
  for (std::uint32_t first = 0; first < 20; ++first)
    for (unsigned drawn = 0; drawn < 6 * 6 * 6; ++drawn) {
      std::uint32_t calls[3], furthest = 0;
      bool done[3];
      std::uint64_t flags = ~std::uint64_t(0);
      for (unsigned r = 0, d = drawn; r < 3; ++r, d /= 6) {
        calls[r] = first + d % 3;
        done[r] = d % 6 >= 3;
        furthest = std::max(furthest, calls[r]);
        flags &= gccl::Agreed::flags(calls[r], done[r]);
      }
      for (unsigned r = 0; r < 3; ++r) {
        bool by_all = true;
        for (unsigned o = 0; o < 3; ++o) by_all = by_all && (calls[o] > calls[r] || (calls[o] == calls[r] && done[o]));
        CHECK(bool(flags & gccl::Agreed::completed(calls[r])) == by_all);
        CHECK(gccl::Agreed::furthest(flags, calls[r]) == furthest);
      }
    }
}

TEST_CASE("a call with a number that no rank has any more is handed back, not refused") {
  for (const char* backends : {"shm", "tcp"}) {
    Job job{.size = 3, .backends = backends};
    job.environment["GCCL_ON_FAILURE"] = "shrink";
    const std::vector<End> ends = run(job, [](int rank) {
      GCCL_Comm world = begin(), child = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Barrier(world));
      if (rank == 0) ::kill(::getpid(), SIGKILL);
      double x = 1;
      const int ranks[] = {1, 2};
      RANK_SUCCESS(GCCL_Barrier(world));
      expect(GCCL_Broadcast(&x, 1, GCCL_FLOAT64, 2, world), GCCL_ERR_RANKS_CHANGED, "broadcast");
      expect(GCCL_Broadcast(&x, 1, GCCL_FLOAT64, 2, world), GCCL_ERR_INVALID_ARGUMENT, "broadcast anew");
      RANK_SUCCESS(GCCL_Broadcast(&x, 1, GCCL_FLOAT64, 1, world));
      if (rank == 1) ::kill(::getpid(), SIGKILL);
      RANK_SUCCESS(GCCL_Barrier(world));
      expect(GCCL_Comm_create(world, ranks, 2, &child), GCCL_ERR_RANKS_CHANGED, "create");
      RANK_SUCCESS(GCCL_Finalize());
    });
    CHECK_MESSAGE(ends[2].good(), texts(ends));
  }
}

TEST_CASE("an exception of the program's function ends the communicator on all ranks, and none is a call behind") {
  for (const int stage : {GCCL_FAILURE_NOTICED, GCCL_FAILURE_RECOVERED}) {
    Job job{.size = 3, .backends = "shm"};
    job.environment["GCCL_ON_FAILURE"] = "shrink";
    const std::vector<End> ends = run(job, [stage](int rank) {
      GCCL_Comm world = begin();
      const auto thrower = [](GCCL_Comm, const GCCL_Failure* f, void* at) {
        if (f->stage == *static_cast<int*>(at)) throw 1;
      };
      int at = rank == 1 ? stage : -1;
      RANK_SUCCESS(GCCL_On_failure(world, thrower, &at));
      RANK_SUCCESS(GCCL_Barrier(world));
      if (rank == 0) ::kill(::getpid(), SIGKILL);
      for (int i = 0; i < 2; ++i) {
        double x = 1;
        expect(GCCL_Allreduce(GCCL_IN_PLACE, &x, 1, GCCL_FLOAT64, GCCL_SUM, world), GCCL_ERR_INVALID_USAGE, "thrown");
      }
      expect_text("threw an exception", "why");
      GCCL_Finalize();
    });
    for (const std::size_t r : {1u, 2u}) CHECK_MESSAGE(ends[r].good(), texts(ends));
  }
}

TEST_CASE("GCCL_Abort ends a call that waits for others to make the communicator smaller") {
  Job job{.size = 3, .backends = "shm", .limit_s = 20};
  job.environment["GCCL_ON_FAILURE"] = "shrink";
  const std::vector<End> ends = run(job, [](int rank) {
    GCCL_Comm world = begin();
    RANK_SUCCESS(GCCL_Barrier(world));
    if (rank == 0) ::kill(::getpid(), SIGKILL);
    if (rank == 1) return std::this_thread::sleep_for(std::chrono::milliseconds(700));
    std::thread aborts([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      RANK_SUCCESS(GCCL_Abort(world, 7));
    });
    expect(GCCL_Barrier(world), GCCL_ERR_ABORTED, "aborted");
    expect_text("with code 7", "why");
    aborts.join();
  });
  CHECK_MESSAGE(ends[2].good(), texts(ends));
}
