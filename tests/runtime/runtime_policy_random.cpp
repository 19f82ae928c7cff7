// Random jobs of communicators that shrink by themselves when ranks are killed: what each call returns and leaves
// behind on those that are left is the same on all of them, and no rank's part is in a sum twice.
//
// Environment: GCCL_TEST_POLICY_SEEDS (how many, 6) and GCCL_TEST_POLICY_SEED (the first, 1).
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "libgccl/base/splitmix.hpp"
#include "tests/support/from_environment.hpp"
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
  void note(std::uint64_t value) { log_ = (log_ ^ value) * gccl::splitmix::kGolden ^ log_ >> 29; }

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

std::string line_of(const std::string& text, const std::string& begin) {
  const std::size_t at = text.find(begin);
  return at == text.npos ? "" : text.substr(at, text.find('\n', at) - at);
}

}  // namespace

TEST_CASE("ranks killed at random moments: those that are left have the same results, and each part once") {
  const auto first = unsigned(gccl::test::from_environment("GCCL_TEST_POLICY_SEED", 1)),
             seeds = unsigned(gccl::test::from_environment("GCCL_TEST_POLICY_SEEDS", 6));
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
