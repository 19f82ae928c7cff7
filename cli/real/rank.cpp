#include "cli/real/rank.hpp"

#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>
#include <string>

#include "cli/bench/data.hpp"
#include "cli/real/link_news.hpp"
#include "gccl/gccl.h"

namespace gccl::real {
namespace {

constexpr Nanos kLook = 1'000'000;        // so often a rank that computes looks for failures
constexpr Nanos kUsualFirst = 1'000'000;  // time of an operation before one is measured
// An agreement's flags that no operation has: all know who they are; all wait for others where some are missing.
constexpr std::uint64_t kMet = 1ull << 63, kAwaits = 1ull << 62;
constexpr int kAgreements = 8;  // so often in a row news of failures may interrupt an agreement

void sleep_for(Nanos t) {
  timespec left{time_t(t / 1'000'000'000), long(t % 1'000'000'000)};
  while (nanosleep(&left, &left) != 0) {
  }
}

int report_pipe = -1;

// Safe in a signal handler. A report goes whole, and the coordinator reads as long as a rank lives.
void write_report(Report r) {
  r.time = now_ns();
  while (::write(report_pipe, &r, sizeof r) < 0 && errno == EINTR) {
  }
}

// The strike that comes next, by a timer, in whatever the rank then does.
Report strike_report;
volatile int strike_signal = 0;
volatile sig_atomic_t strike_pending = 0;
int strikes_reported = 0;
Shared* shared = nullptr;

// A rank that sent itself SIGSTOP could do so after the SIGCONT, where another stop had come in between.
void strike(int) {
  if (!strike_pending) return;
  strike_pending = 0;
  const int error = errno;
  ++strikes_reported;
  write_report(strike_report);
  if (strike_signal == SIGKILL) ::kill(getpid(), SIGKILL);
  if (strike_signal == SIGSTOP)
    while (shared->heeded[strike_report.rank] < strikes_reported && !shared->end) sleep_for(kLook / 10);
  errno = error;
}

// Now at the latest.
void strike_now() {
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  strike(0);
}

void strike_in(const Strike& s, Nanos delay) {
  strike_now();  // an earlier one
  strike_report = {.kind = Report::Kind::strikes, .rank = s.rank, .a = s.fault};
  strike_signal = s.signal;
  strike_pending = 1;
  const Nanos us = delay / 1000;
  if (us <= 0) return strike_now();
  const itimerval after{{0, 0}, {time_t(us / 1'000'000), suseconds_t(us % 1'000'000)}};
  setitimer(ITIMER_REAL, &after, nullptr);
}

class RankLife {
 public:
  explicit RankLife(const RankProgram& program) : program_(program) {
    if (program.looks_at_links) log_.emplace();
  }
  void run();

 private:
  using At = Moment::At;
  void say(Report::Kind kind, std::uint64_t a = 0, std::uint64_t b = 0, const char* text = "");
  [[noreturn]] void end(Report::How how, const char* text = "");
  [[noreturn]] void broken(const char* what, GCCL_Result result);
  void reach(At at, std::uint64_t number);
  bool failures_known(GCCL_Comm comm);
  void learn();
  void say_of_links();
  bool work();
  void meet(bool has_joined = false);
  GCCL_Result reshape(Nanos until, GCCL_Comm* out);
  std::size_t number_of(Rank r) const {
    return std::size_t(std::find(members_.begin(), members_.end(), std::int32_t(r)) - members_.begin());
  }
  bool compute();
  void lag(Nanos took);
  bool operate();
  GCCL_Result call(const RankCall& c, const void* in, void* out);
  std::optional<std::uint64_t> agree(std::uint64_t flags);
  std::uint64_t all() const { return program_.calls.size(); }
  std::uint64_t done_flags(std::uint64_t operations) const { return (1ull << operations) - 1; }
  Nanos own_time() const;
  double slowdown() const { return program_.shared->slowdown[program_.rank].load(); }

  const RankProgram& program_;
  GCCL_Comm world_ = GCCL_COMM_NULL, comm_ = GCCL_COMM_NULL;
  std::uint32_t epoch_ = 1;
  std::vector<std::int32_t> members_;  // ranks of the scenario, by their number in comm_; -1: not known yet
  bool caught_up_ = true;              // it knows which operation comes next
  std::uint64_t next_ = 0, agreements_ = 0;
  std::set<std::size_t> struck_;  // faults
  std::set<int> known_;           // ranks that have failed
  std::vector<Nanos> took_;       // operations
  std::vector<std::byte> in_, out_;
  std::optional<OwnLog> log_;
};

void RankLife::say(Report::Kind kind, std::uint64_t a, std::uint64_t b, const char* text) {
  Report r{.kind = kind, .rank = program_.rank, .a = a, .b = b, .epoch = epoch_};
  std::snprintf(r.text, sizeof r.text, "%s", text);
  write_report(r);
}

// Others may still need what this rank knows, so it stays until all have ended.
void RankLife::end(Report::How how, const char* text) {
  learn();
  say(Report::Kind::ended, std::uint64_t(how), 0, text);
  while (!program_.shared->end.load()) {
    sleep_for(2 * kLook);
    if (how != Report::How::out) learn();
  }
  _exit(0);
}

void RankLife::broken(const char* what, GCCL_Result result) {
  char text[sizeof Report::text];
  std::snprintf(text, sizeof text, "%s returned %d: %s", what, int(result), GCCL_Last_error());
  end(Report::How::broken, text);
}

void RankLife::reach(At at, std::uint64_t number) {
  for (const Strike& s : program_.strikes) {
    if (s.moment.at != at || s.moment.number != number || struck_.contains(s.fault)) continue;
    struck_.insert(s.fault);
    Nanos delay = s.moment.after;
    if (at == At::operation) {
      Nanos usual = kUsualFirst;
      if (!took_.empty()) {
        std::vector<Nanos> sorted = took_;
        std::nth_element(sorted.begin(), sorted.begin() + std::ptrdiff_t(sorted.size() / 2), sorted.end());
        usual = sorted[sorted.size() / 2];
      }
      delay = Nanos(s.moment.part * double(usual));
    }
    strike_in(s, delay);
  }
}

bool RankLife::failures_known(GCCL_Comm comm) {
  int count = 0;
  return GCCL_Comm_get_failed(comm, nullptr, 0, &count) == GCCL_SUCCESS && count > 0;
}

// Where processes have joined, ranks of the communicator have other numbers than in the scenario.
void RankLife::learn() {
  int ranks[kProcessesMax], count = 0;
  const auto know = [this](int r) {
    if (r >= 0 && known_.insert(r).second) say(Report::Kind::knows, std::uint64_t(r));
  };
  if (world_ && GCCL_Comm_get_failed(world_, ranks, kProcessesMax, &count) == GCCL_SUCCESS)
    for (int i = 0; i < std::min(count, kProcessesMax); ++i) know(ranks[i]);
  if (program_.replacement == 0 || !comm_ || GCCL_Comm_get_failed(comm_, ranks, kProcessesMax, &count) != GCCL_SUCCESS)
    return;
  for (int i = 0; i < std::min(count, kProcessesMax); ++i)
    if (std::size_t(ranks[i]) < members_.size()) know(members_[std::size_t(ranks[i])]);
}

// What all ranks found by a report, which comes before an operation.
void RankLife::say_of_links() {
  if (!log_) return;
  const auto in_scenario = [this](Rank r) { return r < members_.size() ? Rank(members_[r]) : r; };
  for (const LinkNews& news : log_->take()) {
    using What = LinkNews::What;
    const bool planned = news.what == What::planned;
    Report r{.kind = planned                   ? Report::Kind::planned
                     : news.what == What::slow ? Report::Kind::link_slow
                                               : Report::Kind::link_recovered,
             .rank = program_.rank,
             .a = planned ? std::min(news.pairs.size(), kPairsMax) : in_scenario(news.from),
             .b = in_scenario(news.to),
             .epoch = epoch_,
             .operation = next_,
             .rate = news.rate,
             .expected = news.expected};
    for (std::size_t i = 0; planned && i < r.a; ++i) {
      r.pairs[i][0] = std::uint8_t(in_scenario(news.pairs[i].first));
      r.pairs[i][1] = std::uint8_t(in_scenario(news.pairs[i].second));
    }
    write_report(r);
  }
}

// What the clock says, less the time for which this process was stopped. The coordinator adds a stop before it ends it.
Nanos RankLife::own_time() const {
  for (;;) {
    const Nanos stood = program_.shared->stood[program_.rank].load(), now = now_ns();
    if (program_.shared->stood[program_.rank].load() == stood) return now - stood;
  }
}

// False where a failure interrupts it. Real time passes, so the coordinator's changes of the slowdown count from now
// on.
bool RankLife::compute() {
  std::vector<const Strike*> due;
  for (const Strike& s : program_.strikes)
    if (s.moment.at == At::compute && s.moment.number == next_ && !struck_.contains(s.fault)) due.push_back(&s);
  std::sort(due.begin(), due.end(), [](const Strike* a, const Strike* b) { return a->moment.after < b->moment.after; });
  const Nanos begin = now_ns();
  double left = double(program_.compute);
  for (Nanos last = own_time();;) {
    while (!due.empty() && (now_ns() - begin >= due[0]->moment.after || left <= 0)) {
      struck_.insert(due[0]->fault);  // one that is not due yet strikes where this operation is carried out anew
      strike_in(*due[0], 0);
      due.erase(due.begin());
    }
    if (left <= 0) return true;
    sleep_for(std::min<Nanos>(kLook, Nanos(left) + 1));
    const Nanos now = own_time();
    left -= double(now - last) / slowdown();
    last = now;
    if (failures_known(comm_)) return false;
  }
}

// What a straggler that computes nothing needs longer for what took so long: until it is one no more, or others fail.
void RankLife::lag(Nanos took) {
  double left = double(took) * (1 - 1 / slowdown());
  for (Nanos last = own_time(); left > 0 && !failures_known(comm_);) {
    sleep_for(Nanos(std::min(double(kLook), left * slowdown() + 1)));
    const Nanos now = own_time();
    left -= double(now - last) / slowdown();
    last = now;
  }
}

GCCL_Result RankLife::call(const RankCall& c, const void* in, void* out) {
  const auto dtype = GCCL_Dtype(c.dtype);
  const auto op = GCCL_Op(c.reduction);
  const std::size_t n = c.call.count;
  const int root = int(c.call.root);
  switch (c.call.kind) {
    case Collective::allreduce: return GCCL_Allreduce(in, out, n, dtype, op, comm_);
    case Collective::allgather: return GCCL_Allgather(in, out, n, dtype, comm_);
    case Collective::reduce_scatter: return GCCL_Reduce_scatter(in, out, n, dtype, op, comm_);
    case Collective::reduce: return GCCL_Reduce(in, out, n, dtype, op, root, comm_);
    case Collective::gather: return GCCL_Gather(in, out, n, dtype, root, comm_);
    case Collective::scatter: return GCCL_Scatter(in, out, n, dtype, root, comm_);
    case Collective::alltoall: return GCCL_Alltoall(in, out, n, dtype, comm_);
    case Collective::barrier: return GCCL_Barrier(comm_);
    case Collective::broadcast: {  // one buffer, in the C interface
      int rank = 0;
      GCCL_Comm_rank(comm_, &rank);
      if (rank == root) std::memcpy(out, in, n * size_of(c.dtype));
      return GCCL_Broadcast(out, n, dtype, root, comm_);
    }
    default: return GCCL_ERR_NOT_SUPPORTED;  // refused before anything was started
  }
}

// False where a failure interrupts it.
bool RankLife::operate() {
  const std::size_t size = members_.size();
  const std::size_t rank = number_of(program_.rank);
  RankCall c = program_.calls[next_];
  const std::size_t root = number_of(c.call.root);
  c.call.root = root < size ? Rank(root) : 0;          // one that has failed is replaced by the first rank
  const std::uint64_t salt = next_ * 64 + epoch_ + 1;  // what of another operation or epoch came through would be wrong
  const unsigned bytes = size_of(c.dtype);
  in_.assign(input_count(c.call, Rank(size), Rank(rank)) * bytes, std::byte{0});
  out_.assign(output_count(c.call, Rank(size), Rank(rank)) * bytes, std::byte{0xee});
  bench::fill_input(c.call, c.dtype, c.reduction, Rank(size), Rank(rank), in_.data(), salt);
  reach(At::operation, next_);
  const Nanos begin = now_ns();
  const GCCL_Result result = call(c, in_.data(), out_.data());
  const Nanos took = now_ns() - begin;
  strike_now();
  say_of_links();
  if (result == GCCL_SUCCESS) {
    took_.push_back(took);
    if (program_.compute == 0) lag(took);
    say(Report::Kind::done, next_,
        bench::count_wrong(c.call, c.dtype, c.reduction, Rank(size), Rank(rank), out_.data(), salt));
    reach(At::done, next_);
    ++next_;
    return true;
  }
  if (result != GCCL_ERR_PEER_LOST && result != GCCL_ERR_REVOKED && result != GCCL_ERR_REMOTE &&
      result != GCCL_ERR_ABORTED)
    broken("the collective", result);
  say(Report::Kind::interrupted, next_, 0, GCCL_Last_error());
  return false;
}

bool RankLife::work() {
  while (next_ < all()) {
    say(Report::Kind::begins, next_);
    if (!compute() || !operate()) {
      learn();
      return false;
    }
    if (next_ == all()) return true;
  }
  return true;
}

// The AND of everybody's flags. Nothing where the others go on without this rank, or might.
std::optional<std::uint64_t> RankLife::agree(std::uint64_t flags) {
  reach(At::agreement, ++agreements_);
  for (int i = 0; i < kAgreements; ++i) {
    // News of a failure makes the call fail once, on all ranks alike; on a rank that is out it fails ever again.
    GCCL_Comm_ack_failed(comm_);
    std::uint64_t agreed = flags;
    const GCCL_Result result = GCCL_Comm_agree(comm_, &agreed);
    strike_now();
    learn();
    if (result == GCCL_SUCCESS) return agreed;
    if (result != GCCL_ERR_PEER_LOST) broken("GCCL_Comm_agree", result);
  }
  return std::nullopt;
}

// Those that are left; with a policy that replaces the others, and those that come by then.
GCCL_Result RankLife::reshape(Nanos until, GCCL_Comm* out) {
  if (program_.replacement == 0) return GCCL_Comm_shrink(comm_, out);
  int failed = 0;
  GCCL_Comm_get_failed(comm_, nullptr, 0, &failed);
  const int missing = int(program_.ranks) - (int(members_.size()) - failed);
  return GCCL_Comm_grow(comm_, std::max(missing, 1), std::max<Nanos>(0, until - now_ns()) / 1'000'000, out);
}

// Makes the communicator anew until all that are in it know who they are and where they go on, and nobody is missing,
// or not waited for any more: one that was to be replaced may fail as well, while others join.
void RankLife::meet(bool has_joined) {
  struct Hello {
    std::int32_t rank, epoch;
  };
  const Nanos until = now_ns() + program_.replacement;
  const auto awaited = [this](std::uint64_t agreed) { return (agreed & kAwaits) && members_.size() < program_.ranks; };
  for (std::uint64_t agreed = 0; !(agreed & kMet) || awaited(agreed); has_joined = false) {
    if (!has_joined) {
      GCCL_Comm next = GCCL_COMM_NULL;
      const GCCL_Result made = reshape(until, &next);
      learn();
      if (made == GCCL_ERR_PEER_LOST) end(Report::How::out);
      if (made != GCCL_SUCCESS) broken("making the communicator anew", made);
      comm_ = next;
      ++epoch_;
      if (caught_up_) reach(At::epoch, epoch_);
    }
    int size = 0;
    GCCL_Comm_size(comm_, &size);
    members_.assign(std::size_t(size), -1);
    std::vector<Hello> all(std::size_t(size), Hello{-1, 0});
    const Hello mine{std::int32_t(program_.rank), std::int32_t(epoch_)};
    std::uint64_t flags = caught_up_ ? ~done_flags(this->all()) | done_flags(next_) : ~std::uint64_t(0);
    if (GCCL_Allgather(&mine, all.data(), 2, GCCL_INT32, comm_) == GCCL_SUCCESS) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        members_[i] = all[i].rank;
        epoch_ = std::max(epoch_, std::uint32_t(all[i].epoch));
      }
    } else {
      GCCL_Comm_revoke(comm_);
      flags &= ~kMet;
    }
    if (!has_joined && now_ns() >= until) flags &= ~kAwaits;
    const auto all_agree = agree(flags);
    if (!all_agree) end(Report::How::out);
    agreed = *all_agree;
    if (!caught_up_ && (agreed & kMet)) {
      next_ = std::min<std::uint64_t>(this->all(), std::uint64_t(std::countr_one(agreed & ~kMet)));
      caught_up_ = true;
    }
  }
}

void RankLife::run() {
  const GCCL_Result begun = GCCL_Init(&comm_, nullptr);
  if (begun != GCCL_SUCCESS) broken("GCCL_Init", begun);
  if (program_.joins) {
    say(Report::Kind::joined);
    epoch_ = 0;
    caught_up_ = false;
    meet(true);
  } else {
    world_ = comm_;
    int size = 0;
    GCCL_Comm_size(world_, &size);
    for (int r = 0; r < size; ++r) members_.push_back(r);
    if (const GCCL_Result result = GCCL_Barrier(world_); result != GCCL_SUCCESS) broken("the first barrier", result);
    say(Report::Kind::ready);
    while (!program_.shared->go.load()) sleep_for(kLook / 2);
    reach(At::epoch, epoch_);
  }
  for (;;) {
    say(Report::Kind::works);
    if (!work()) GCCL_Comm_revoke(comm_);
    const auto agreed = agree(~done_flags(all()) | done_flags(next_));
    if (!agreed) end(Report::How::out);
    const auto final = std::uint64_t(std::countr_one(*agreed));
    if (final >= all()) end(Report::How::finished);
    if (!program_.goes_on) end(Report::How::failed);
    next_ = final;
    meet();
  }
}

}  // namespace

void run_rank(const RankProgram& program) {
  report_pipe = program.reports;
  shared = program.shared;
  struct sigaction action {};
  action.sa_handler = strike;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  RankLife(program).run();
  _exit(1);
}

}  // namespace gccl::real
