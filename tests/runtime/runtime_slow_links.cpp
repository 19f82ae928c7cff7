// A link between two real ranks that becomes slow: all ranks learn of it at the same call, and nobody of one that is
// not.
#include <doctest/doctest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "tests/support/rank_job.hpp"
#include "tests/support/slow_link.hpp"
#include "tests/support/wide.hpp"

using namespace ranks;
using gccl::test::set_link_rate;

namespace {

GCCL_Metrics figures_of(GCCL_Comm comm) {
  GCCL_Metrics m{};
  m.struct_bytes = sizeof m;
  RANK_SUCCESS(GCCL_Get_performance_metrics(comm, &m));
  return m;
}

// All-reduces of 8 MiB whose every element is checked: in a call's place c, modulo 10, element i of rank r is
// (i + c + r) % 1000. Copied and compared as memory: rooms that drive ranks are not optimised.
class CheckedSums {
 public:
  explicit CheckedSums(GCCL_Comm comm) : comm_(comm), rank_(rank_of(comm)), size_(size_of(comm)) {
    RANK_CHECK(std::size_t(9 + rank_) <= kShifted - kCount);
    for (std::size_t i = 0; i < kShifted; ++i) {
      ramp_[i] = float(i % 1000);
      for (std::size_t r = 0; r < std::size_t(size_); ++r) sums_[i] += float((i + r) % 1000);
    }
  }

  void one() {
    ++calls_;
    const auto shift = std::size_t(calls_ % 10);
    std::memcpy(x_.data(), ramp_.data() + shift + rank_, kCount * sizeof(float));
    // Rank 0 plans it before the report that may come first, the others when they come to it.
    if (rank_ == 0) {
      RANK_SUCCESS(GCCL_Allreduce(GCCL_IN_PLACE, x_.data(), x_.size(), GCCL_FLOAT32, GCCL_SUM, comm_));
    } else {
      GCCL_Request request;
      RANK_SUCCESS(GCCL_Iallreduce(GCCL_IN_PLACE, x_.data(), x_.size(), GCCL_FLOAT32, GCCL_SUM, comm_, &request));
      RANK_SUCCESS(GCCL_Wait(&request));
    }
    RANK_CHECK(std::memcmp(x_.data(), sums_.data() + shift, kCount * sizeof(float)) == 0);
  }
  // Until this holds of a rank's metrics; how many calls that took is the same on all ranks. False after `most`.
  bool until(const std::function<bool(const GCCL_Metrics&)>& holds, int most = 400) {
    int first = 0;
    for (int i = 1; i <= most && !any_reported(); ++i) {
      one();
      if (first == 0 && holds(figures_of(comm_))) first = calls_;
      int ends[2] = {first, -first};
      RANK_SUCCESS(GCCL_Allreduce(GCCL_IN_PLACE, ends, 2, GCCL_INT32, GCCL_MAX, comm_));
      if (ends[0] == 0) continue;
      RANK_CHECK(ends[0] == -ends[1]);
      return true;
    }
    return false;
  }

 private:
  static constexpr std::size_t kCount = 2 << 20, kShifted = kCount + 16;
  GCCL_Comm comm_;
  int rank_, size_, calls_ = 0;
  std::vector<float> x_ = std::vector<float>(kCount), ramp_ = std::vector<float>(kShifted),
                     sums_ = std::vector<float>(kShifted);
};

// A ring of all ranks has each of them send to the next.
Job tcp_job(int size, const std::string& slow = "4", const std::string& avoid = "1",
            const std::string& among = "allreduce:ring") {
  return {.size = size,
          .backends = "tcp",
          .environment = {{"GCCL_LINK_SLOW", slow}, {"GCCL_LINK_AVOID", avoid}, {"GCCL_ALGO", among}}};
}

// What an all-reduce of some 8 MiB is carried out by: one of a length that had no plan yet. Collective.
std::string algorithm_of(GCCL_Comm comm) {
  static std::size_t lengths = 2 << 20;
  std::vector<float> x(lengths += 1000);
  RANK_SUCCESS(GCCL_Allreduce(GCCL_IN_PLACE, x.data(), x.size(), GCCL_FLOAT32, GCCL_SUM, comm));
  const char* const name = figures_of(comm).algorithm[0];
  return name ? name : "none";
}

}  // namespace

TEST_CASE("a link that becomes slow is named by all ranks after the same call, and so is its recovery") {
  const std::vector<End> ends = run(tcp_job(4, "4", "0"), [](int) {
    GCCL_Comm world = begin();
    if (!world) return;
    CheckedSums calls(world);
    for (int i = 0; i < 20; ++i) calls.one();
    RANK_CHECK(figures_of(world).links_slowed == 0);
    set_link_rate(world, 1, 2, 20'000'000);
    RANK_CHECK(calls.until([](const GCCL_Metrics& m) { return m.links_slowed > 0; }));
    const GCCL_Metrics slow = figures_of(world);
    RANK_CHECK(slow.links_slowed == 1 && slow.links_recovered == 0);
    RANK_CHECK(slow.slow_link_from == 1 && slow.slow_link_to == 2);
    RANK_CHECK(slow.slow_link_MBps > 0 && slow.slow_link_MBps * 4 < slow.slow_link_expected_MBps);
    set_link_rate(world, 1, 2, 0);
    RANK_CHECK(calls.until([](const GCCL_Metrics& m) { return m.links_recovered > 0; }));
    const GCCL_Metrics well = figures_of(world);
    RANK_CHECK(well.links_slowed == 1 && well.links_recovered == 1);
    RANK_CHECK(well.plans_changed == 0);
    RANK_CHECK(well.slow_link_from == -1 && well.slow_link_to == -1 && well.slow_link_MBps == 0);
    RANK_SUCCESS(GCCL_Finalize());
  });
  for (int r = 0; r < 4; ++r) {
    const std::string& text = ends[std::size_t(r)].text;
    INFO(texts(ends));
    REQUIRE(ends[std::size_t(r)].good());
    const std::string mine = "gccl warning: rank " + std::to_string(r) + ": the link ";
    // Rank 3 is neither at an end of it nor the first.
    CHECK((text.find(mine + "is slow from rank 1 to rank 2, ") != text.npos) == (r < 3));
    CHECK((text.find(mine + "from rank 1 to rank 2 is no longer slow") != text.npos) == (r < 3));
  }
}

TEST_CASE("no link is slow any more once the communicator has other ranks") {
  const std::vector<End> ends = run(tcp_job(3, "4", "0"), [](int) {
    GCCL_Comm world = begin();
    if (!world) return;
    CheckedSums calls(world);
    for (int i = 0; i < 20; ++i) calls.one();
    set_link_rate(world, 1, 2, 20'000'000);
    RANK_CHECK(calls.until([](const GCCL_Metrics& m) { return m.links_slowed > 0; }));
    RANK_CHECK(figures_of(world).slow_link_to == 2);
    RANK_SUCCESS(GCCL_Comm_set_on_failure(world, GCCL_SHRINK));
    lose(world, 2);
    RANK_SUCCESS(GCCL_Barrier(world));
    RANK_CHECK(size_of(world) == 2);
    const GCCL_Metrics m = figures_of(world);
    RANK_CHECK(m.slow_link_from == -1 && m.slow_link_to == -1);
    RANK_CHECK(m.slow_link_MBps == 0 && m.slow_link_expected_MBps == 0);
    RANK_CHECK(m.links_slowed == 1);
    GCCL_Finalize();
  });
  check_others(ends, {2});
}

TEST_CASE("rings are turned so that two ranks with a slow link are not side by side, at the same call on all ranks") {
  check(tcp_job(4), [](int rank) {
    GCCL_Comm world = begin();
    if (!world) return;
    CheckedSums calls(world);
    for (int i = 0; i < 20; ++i) calls.one();
    const std::string ring = algorithm_of(world);
    const std::uint64_t before = gccl::test::link_bytes(world, 1, 2);
    for (int i = 0; i < 4; ++i) calls.one();
    const std::uint64_t usual = gccl::test::link_bytes(world, 1, 2) - before;
    RANK_CHECK(rank != 1 || usual > (20 << 20));  // 4 calls of 12 MiB
    set_link_rate(world, 1, 2, 20'000'000);
    RANK_CHECK(calls.until([](const GCCL_Metrics& m) { return m.plans_changed > 0; }));
    RANK_CHECK(figures_of(world).links_slowed == 1 && figures_of(world).plans_changed == 1);
    const std::uint64_t after = gccl::test::link_bytes(world, 1, 2);
    for (int i = 0; i < 20; ++i) calls.one();
    RANK_CHECK(gccl::test::link_bytes(world, 1, 2) - after < (1 << 20));
    RANK_CHECK(algorithm_of(world) == ring);
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE(
    "three ranks, all of them side by side in a ring, take another algorithm where that is predicted to be faster") {
  check(tcp_job(3, "4", "1", "allreduce:ring,binomial_tree"), [](int) {
    GCCL_Comm world = begin();
    if (!world) return;
    CheckedSums calls(world);
    for (int i = 0; i < 20; ++i) calls.one();
    const std::string usual = algorithm_of(world);
    set_link_rate(world, 1, 2, 10'000'000);
    RANK_CHECK(calls.until([](const GCCL_Metrics& m) { return m.plans_changed > 0; }));
    const std::uint64_t after = gccl::test::link_bytes(world, 1, 2);
    for (int i = 0; i < 10; ++i) calls.one();
    RANK_CHECK(gccl::test::link_bytes(world, 1, 2) - after < (1 << 20));
    RANK_CHECK(algorithm_of(world) != usual);
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("calls in flight, of all kinds, on two communicators, meet no report and no plan that others do not make") {
  for (const int size : {3, 4})
    check(tcp_job(size), [size](int rank) {
      GCCL_Comm world = begin();
      if (!world) return;
      GCCL_Comm half = nullptr;
      RANK_SUCCESS(GCCL_Comm_split(world, rank % 2, rank, &half));
      std::mt19937 random(7);  // the same on all ranks
      std::vector<std::vector<float>> x(6, std::vector<float>(2 << 20)), y(6, std::vector<float>(8 << 20));
      CheckedSums first(world);
      first.one();
      set_link_rate(world, size - 2, size - 1, 20'000'000);
      int around = 0;  // rounds since the plans changed
      for (int round = 0; around < 10 && round < 300 && !any_reported(); ++round) {
        double changed = figures_of(world).plans_changed > 0;
        RANK_SUCCESS(GCCL_Allreduce(GCCL_IN_PLACE, &changed, 1, GCCL_FLOAT64, GCCL_MIN, world));
        around += changed > 0;
        std::vector<GCCL_Request> requests(x.size());
        std::vector<float> due(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
          const std::size_t count = 1000 + random() % (x[i].size() - 1000);
          const GCCL_Comm on = i % 3 == 2 ? half : world;
          const int n = size_of(on), first_rank = on == half ? rank % 2 : 0, apart = on == half ? 2 : 1;
          std::fill(x[i].begin(), x[i].begin() + std::ptrdiff_t(count), float(rank + 1));
          float sum = 0;
          for (int r = 0; r < n; ++r) sum += float(first_rank + r * apart + 1);
          const int kind = int(random() % 3);
          if (kind == 0)
            RANK_SUCCESS(GCCL_Iallreduce(x[i].data(), y[i].data(), count, GCCL_FLOAT32, GCCL_SUM, on, &requests[i]));
          if (kind == 1) RANK_SUCCESS(GCCL_Iallgather(x[i].data(), y[i].data(), count, GCCL_FLOAT32, on, &requests[i]));
          if (kind == 2) RANK_SUCCESS(GCCL_Ibroadcast(x[i].data(), count, GCCL_FLOAT32, n - 1, on, &requests[i]));
          due[i] = kind == 0 ? sum : kind == 1 ? float(first_rank + 1) : -float(first_rank + (n - 1) * apart + 1);
          // Ranks get on differently: rank 0 waits for each call, others start all, some of them late.
          if (rank == 0) RANK_SUCCESS(GCCL_Wait(&requests[i]));
        }
        if (rank == 1 + round % (size - 1)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        for (std::size_t i = 0; i < x.size(); ++i) {
          if (rank > 0) RANK_SUCCESS(GCCL_Wait(&requests[i]));
          RANK_CHECK((due[i] < 0 ? -x[i][999] : y[i][999]) == due[i]);
        }
      }
      RANK_CHECK(around == 10);
      RANK_SUCCESS(GCCL_Comm_free(&half));
      RANK_SUCCESS(GCCL_Finalize());
    });
}

TEST_CASE("busy processors, ranks that come late, look seldom or are stopped are no slow links") {
  const int stops = gccl::test::wide() ? 4 : 1;
  // Processes that take the processors from six ranks, and more.
  std::vector<gccl::test::Child> busy;
  for (int i = 0; i < 4; ++i)
    busy.emplace_back([] {
      for (volatile unsigned spin = 0;;) spin = spin + 1;
    });
  Running running(tcp_job(6), [stops](int rank) {
    GCCL_Comm world = begin();
    if (!world) return;
    CheckedSums calls(world);
    std::printf("pid\n");
    std::fflush(stdout);
    const auto began = Clock::now();
    double over = 0;
    while (over < 2.5 * stops) {
      calls.one();
      std::vector<float> x(4 << 20, 1);
      GCCL_Request request;
      RANK_SUCCESS(GCCL_Iallreduce(GCCL_IN_PLACE, x.data(), x.size(), GCCL_FLOAT32, GCCL_SUM, world, &request));
      // Looks each 20 ms, or comes 50 ms late.
      if (rank == 1) {
        for (int done = 0; !done; std::this_thread::sleep_for(std::chrono::milliseconds(20)))
          RANK_SUCCESS(GCCL_Test(&request, &done));
      } else {
        if (rank == 4) std::this_thread::sleep_for(std::chrono::milliseconds(50));
        RANK_SUCCESS(GCCL_Wait(&request));
      }
      over = seconds_since(began);
      RANK_SUCCESS(GCCL_Allreduce(GCCL_IN_PLACE, &over, 1, GCCL_FLOAT64, GCCL_MAX, world));
    }
    RANK_CHECK(figures_of(world).links_slowed == 0);
    RANK_SUCCESS(GCCL_Finalize());
  });
  CHECK(running.await(2, "pid"));
  for (int i = 0; i < stops; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    running.kill(2, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    running.kill(2, SIGCONT);
  }
  const std::vector<End> ends = running.wait();
  INFO(texts(ends));
  for (const End& e : ends) CHECK(e.good());
}

// Rank 0 comes to a report first, as it asks for so much; rank 1 does not.
TEST_CASE("calls that differ are named, also where a report comes before one of them") {
  enum { count, kind, root, lengths };
  for (const int differs : {count, kind, root, lengths})
    check(tcp_job(2), [differs](int rank) {
      GCCL_Comm world = begin();
      const std::size_t n = 5'000'000;
      std::vector<float> x(n);
      GCCL_Result result = GCCL_SUCCESS;
      std::string here = "allreduce #1 of 5000000 x f32, sum", there = here;
      if (differs == root) {
        // Each waits for the other: a root could be through before anything is known.
        here = "broadcast #1 of 5000000 x f32, root 1", there = "broadcast #1 of 8 x f32, root 0";
        result = GCCL_Broadcast(x.data(), rank == 0 ? n : 8, GCCL_FLOAT32, 1 - rank, world);
      } else if (rank == 0 || differs == count) {
        there = "allreduce #1 of 8 x f32, sum";
        result = GCCL_Allreduce(GCCL_IN_PLACE, x.data(), rank == 0 ? n : 8, GCCL_FLOAT32, GCCL_SUM, world);
      } else if (differs == kind) {
        result = GCCL_Barrier(world);
      } else {
        const std::size_t counts[2] = {3, 4}, places[2] = {0, 3};
        result = GCCL_Alltoallv(x.data(), counts, places, x.data() + 8, counts, places, GCCL_FLOAT32, world);
      }
      if (differs == kind) there = "barrier #1";
      if (differs == lengths) there = "alltoallv #1 of f32";
      expect(result, GCCL_ERR_MISMATCH, here);
      expect_text(here, "call");
      expect_text(there, "call");
      GCCL_Finalize();
    });
}

TEST_CASE("GCCL_LINK_SLOW is the same on all ranks, and no number that calls every link slow") {
  check({.size = 2, .backends = "tcp"}, [](int rank) {
    setenv("GCCL_LINK_SLOW", rank == 0 ? "4" : "0", 1);
    GCCL_Comm world = nullptr;
    expect(GCCL_Init(&world, nullptr), GCCL_ERR_INVALID_USAGE, "GCCL_Init");
    expect_text("GCCL_LINK_SLOW differs: rank 0 has \"4\", rank 1 has \"0\"", "GCCL_Init");
  });
  check(tcp_job(2, "1"), [](int) {
    GCCL_Comm world = nullptr;
    expect(GCCL_Init(&world, nullptr), GCCL_ERR_INVALID_ARGUMENT, "GCCL_Init");
    expect_text("GCCL_LINK_SLOW is 1, expected 0 (no link is called slow), or 2 to 1000", "GCCL_Init");
  });
}
