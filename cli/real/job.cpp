#include "cli/real/job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "cli/launch/port.hpp"
#include "cli/output.hpp"
#include "cli/plugin.hpp"
#include "cli/real/memory_folder.hpp"
#include "cli/real/real.hpp"
#include "libgccl/base/system_refused.hpp"
#include "libgccl/bootstrap/secret.hpp"
#include "sim/fault/effects.hpp"

namespace gccl::real {
namespace {

constexpr Nanos kSecond = 1000 * kNsPerMs;
constexpr Nanos kStart = 60 * kSecond;  // for all to be connected
constexpr Nanos kSlack = 30 * kSecond;  // beyond what the timeline and detection may take
constexpr Nanos kGoodbye = 2 * kSecond;
constexpr int kPort = 29511;  // in a rank's own network every port is free

using RankEntry = void (*)(const RankProgram&);
RankEntry rank_entry = nullptr;

[[noreturn]] void fail_to(const char* what) {
  throw SystemRefused(fmt::format("engine \"real\": {}: {}", what, std::generic_category().message(errno)));
}

// What the same scenario comes to in virtual time, where all processes are on one machine, as the ranks are: networks
// of their own or not, its system reports to each which other ones have ended. That is stretched by nobody.
sim::Outcome simulated(const sim::Workload& workload, double stretch) {
  sim::FaultPlan plan = *workload.faults;
  plan.recovery.system_reports = plan.recovery.one_system = true;
  plan.recovery.report_after = Nanos(double(plan.recovery.report_after) / stretch);
  sim::Workload w = workload;
  w.faults = &plan;
  return sim::run_protocol(w);
}

}  // namespace

void load_runtime() {
  rank_entry = reinterpret_cast<RankEntry>(runtime_plugin(false, "gccl_real_rank", "--engine real"));
}

sim::Outcome run(const sim::Workload& workload, const sim::RealMeans& means) {
  const Nanos began = now_ns();
  Job job(workload, means);
  job.run();
  sim::Outcome out = job.verdict();
  job.show_logs(!out.faults->differs.empty() || !out.faults->waits.empty());
  out.wall_s = double(now_ns() - began) * 1e-9;
  return out;
}

Job::Job(const sim::Workload& w, const sim::RealMeans& means)
    : workload_(w),
      plan_(*w.faults),
      means_(means),
      cards_(sim::with_spares(w.cards, w.faults->recovery.spares, *w.cluster)),
      stretch_(stretch_of(plan_)),
      simulated_(simulated(w, stretch_)),
      strikes_(strikes_of(w, simulated_, stretch_)),
      wires_(*w.cluster),
      passages_(cards_.size() * cards_.size()),
      secret_(random_secret()),
      self_(getpid()),
      state_(cards_.size()),
      spares_(ranks(), plan_.recovery.spares),
      active_(plan_.faults.size()),
      over_(plan_.faults.size()) {
  ::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail_to("a pipe");
  reports_ = Fd(ends[0]), reports_end_ = Fd(ends[1]);
  fcntl(reports_.get(), F_SETFL, O_NONBLOCK);
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail_to("memory");
  shared_ = new (memory) Shared{};
  for (auto& s : shared_->slowdown) s = 1;
  if (means_.namespaces && !plan_.recovery.system_reports) {
    network_ = std::make_unique<Network>(machines(), w.seed);
    store_ = fmt::format("tcp://{}:{}", Network::address(0), kPort);
    if (plan_.recovery.replaces()) {  // to be met without rank 0
      folder_ = memory_folder();
      store_ = fmt::format("file://{}/ranks", path_of(folder_));
    }
  } else {
    std::uint16_t port = 0;
    reservation_ = launch::reserve_port(&port);
    store_ = fmt::format("tcp://127.0.0.1:{}", port);
  }
  // Now, since frames would wait for it later.
  for (std::size_t i = 0; i < plan_.faults.size(); ++i)
    if (plan_.faults[i].kind == sim::FaultKind::link_degraded) slowed_[i] = ways_over(plan_.faults[i]);
  for (RankState& s : state_) s.done_in.assign(w.operations.size(), 0);
}

Job::~Job() {
  for (const RankState& s : state_)
    if (s.pid > 0) kill(s.pid, SIGKILL);
  for (const RankState& s : state_)
    if (s.pid > 0)
      while (waitpid(s.pid, nullptr, 0) < 0 && errno == EINTR) {
      }
  if (shared_) munmap(shared_, sizeof(Shared));
}

// ---- Ranks ----

void Job::start(Rank r) {
  state_[r].log = rank_log();
  const pid_t pid = fork();
  if (pid < 0) fail_to("a process");
  if (pid == 0) live(r);
  state_[r].pid = pid;
  state_[r].alive = state_[r].started = true;
}

// In the child. No destructors, no buffers of the parent's.
void Job::live(Rank r) const {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != self_) _exit(1);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int stream : {0, 1, 2}) dup2(null, stream);
  if (state_[r].log) dup2(state_[r].log.get(), STDERR_FILENO);
  std::vector<std::string> ours;  // the scenario says it all
  for (char** v = environ; *v; ++v)
    if (std::strncmp(*v, "GCCL_", 5) == 0) ours.emplace_back(*v, std::strcspn(*v, "="));
  for (const std::string& name : ours) unsetenv(name.c_str());
  const auto set = [](const char* name, const std::string& value) { setenv(name, value.c_str(), 1); };
  RankProgram program{
      .rank = r,
      .ranks = ranks(),
      .joins = state_[r].joins,
      .calls = {},
      .strikes = {},
      .compute = real(plan_.compute),
      .goes_on = plan_.recovery.policy != sim::FailurePolicy::fail,
      .looks_at_links = plan_.recovery.link_slow > 0,
      .replacement = plan_.recovery.replaces() ? real(plan_.recovery.replace_after + 2 * plan_.recovery.detection) : 0,
      .reports = reports_end_.get(),
      .shared = shared_};
  std::map<std::string, std::string> algorithms;  // one for each collective (check_real_algorithms)
  for (const auto& o : workload_.operations) {
    program.calls.push_back({.call = o.call, .dtype = o.dtype, .reduction = o.reduction});
    algorithms[std::string(name(o.call.kind))] = o.algorithm->name;
  }
  std::string chosen;
  for (const auto& [kind, algorithm] : algorithms)
    chosen += fmt::format("{}{}={}", chosen.empty() ? "" : ",", kind, algorithm);
  for (const Strike& s : strikes_)
    if (s.rank == r && !s.stop && !active_[s.fault] && !over_[s.fault]) program.strikes.push_back(s);
  set("GCCL_RANK", std::to_string(r));
  set("GCCL_SIZE", std::to_string(ranks()));
  if (state_[r].joins) set("GCCL_JOIN", "1");
  set("GCCL_STORE", store_);
  set("GCCL_SECRET", secret_);
  set("GCCL_BACKENDS", means_.shm ? "shm" : "tcp");
  set("GCCL_DETECTION_MS", std::to_string(real(plan_.recovery.detection) / kNsPerMs));
  if (plan_.recovery.connections) {
    set("GCCL_LINK_LOST_MS", std::to_string(real(plan_.recovery.detection) / kNsPerMs));
    set("GCCL_LINK_CHECK", "1");
  }
  if (plan_.recovery.link_slow > 0) {
    set("GCCL_LINK_SLOW", std::to_string(plan_.recovery.link_slow));
    set("GCCL_LINK_AVOID", plan_.recovery.link_avoid ? "1" : "0");
    set("GCCL_LOG", "2");  // where a rank reads it
  }
  if (!chosen.empty()) set("GCCL_ALGORITHM", chosen);
  set("GCCL_ADDRESS", network_ ? Network::address(r) : "127.0.0.1");
  if (network_) set("GCCL_HOST", fmt::format("rank{}", r));
  try {
    if (network_) network_->enter(r);
    rank_entry(program);
  } catch (const std::exception& e) {
    write_stderr(fmt::format("{}\n", e.what()));
  }
  _exit(1);
}

void Job::look_at_ranks() {
  look_for_ends();
  for (RankState& s : state_) s.log_limit.keep_the_end(s.log);
}

// Those that have ended, once all that they had to say is heard: a rank that kills itself says so before.
void Job::look_for_ends() {
  std::vector<std::pair<Rank, int>> ended;
  for (Rank r = 0; r < machines(); ++r) {
    RankState& s = state_[r];
    int status = 0;
    if (s.pid <= 0 || waitpid(s.pid, &status, WNOHANG) != s.pid) continue;
    s.pid = -1;
    ended.emplace_back(r, status);
  }
  if (!ended.empty()) heed_all();
  for (const auto& [r, status] : ended) {
    RankState& s = state_[r];
    if (!s.alive) continue;
    s.alive = false;
    if (s.ended || (ended_ != 0 && status == 0)) continue;  // the latter as it was asked to
    s.amiss = true;
    violations_.push_back(WIFSIGNALED(status) ? fmt::format("rank {} was ended by signal {}", r, WTERMSIG(status))
                                              : fmt::format("rank {} ended with code {}", r, WEXITSTATUS(status)));
    // By SIGKILL the kernel ends what there is no memory for.
    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL && crash_.empty()) crash_ = violations_.back();
  }
}

const Strike* Job::strike_of(std::size_t fault) const {
  const auto strike = std::ranges::find(strikes_, fault, &Strike::fault);
  return strike == strikes_.end() ? nullptr : &*strike;
}

void Job::heed_all() {
  Report report;
  while (::read(reports_.get(), &report, sizeof report) == ssize_t(sizeof report)) heed(report);
}

void Job::heed(const Report& report) {
  RankState& s = state_[report.rank];
  using Kind = Report::Kind;
  // Ranks that were asked to end lose each other, which is no part of the run.
  const bool broken = report.kind == Kind::ended && Report::How(report.a) == Report::How::broken;
  if (ended_ != 0 && report.time > ended_ && !broken) return;
  switch (report.kind) {
    case Kind::ready: s.ready = true; break;
    case Kind::joined: s.joined = true; break;
    case Kind::begins: {
      s.operation = report.a;
      Times& t = executions_[{report.epoch, report.a}];
      if (t.begin < 0) t.begin = report.time;
      break;
    }
    case Kind::done: {
      s.done_in[report.a] = report.epoch;
      executions_[{report.epoch, report.a}].end = report.time;
      if (report.b > 0 && wrong_ == 0)
        first_wrong_ =
            fmt::format("operation {}, epoch {}, rank {}: {} elements", report.a, report.epoch, report.rank, report.b);
      wrong_ += report.b;
      break;
    }
    case Kind::interrupted: s.text = report.text; break;
    case Kind::strikes: {
      const std::size_t i = report.a;
      const Strike* const strike = strike_of(i);
      const sim::Fault& f = plan_.faults[i];
      // Where the rank has not waited for what is between the moment and the fault, it is waited for here.
      if (f.after && f.at > 0 && strike->signal == 0 && strike->moment.after == 0)
        later(report.time + real(f.at), [this, i] { begin_fault(i, now_ns()); });
      else
        begin_fault(i, report.time);
      ++shared_->heeded[report.rank];
      break;
    }
    case Kind::works:
      s.epoch = report.epoch;
      s.resumed = report.time;
      break;
    case Kind::link_slow:
    case Kind::link_recovered:
    case Kind::planned: heed_links(report); break;
    case Kind::knows: s.knew.try_emplace(Rank(report.a), report.time); break;
    case Kind::ended:
      s.ended = Report::How(report.a);
      if (broken) {
        s.text = report.text;
        s.amiss = true;
        violations_.push_back(fmt::format("rank {}: {}", report.rank, s.text));
      }
      break;
  }
}

// All learn the same before the same operation, the last of them at the time of the event.
void Job::heed_links(const Report& report) {
  using What = sim::FaultEvent::What;
  sim::FaultEvent e{.at = report.time,
                    .what = report.kind == Report::Kind::planned     ? What::planned_around
                            : report.kind == Report::Kind::link_slow ? What::link_slow
                                                                     : What::link_recovered,
                    .operation = report.operation};
  if (e.what == What::planned_around) {
    for (std::size_t i = 0; i < report.a; ++i) e.pairs.emplace_back(report.pairs[i][0], report.pairs[i][1]);
  } else {
    e.rank = Rank(report.a), e.peer = Rank(report.b);
    e.rate = report.rate, e.expected = report.expected;
  }
  const auto same = std::ranges::find_if(said_, [&](const Said& s) {
    return s.epoch == report.epoch && s.event.what == e.what && s.event.operation == e.operation &&
           s.event.rank == e.rank && s.event.peer == e.peer;
  });
  if (same == said_.end()) {
    said_.push_back({.epoch = report.epoch, .event = std::move(e), .by = {report.rank}});
  } else {
    same->by.insert(report.rank);
    same->event.at = std::max(same->event.at, e.at);
  }
}

// A sample of what the ranks meet, too: this process needs little of the machine.
void Job::came_late(Nanos due) {
  if (began_ > 0 && ended_ == 0) late_ = std::max(late_, now_ns() - due);
}

// Reports, frames and what is due, until then.
void Job::await(Nanos until) {
  while (!agenda_.empty() && agenda_.begin()->first <= now_ns()) {
    came_late(agenda_.begin()->first);
    const auto what = std::move(agenda_.begin()->second);
    agenda_.erase(agenda_.begin());
    what();
  }
  Nanos due = until;
  if (!agenda_.empty()) due = std::min(due, agenda_.begin()->first);
  if (network_) due = std::min(due, network_->due());
  std::vector<pollfd> polled{{reports_.get(), POLLIN, 0}};
  if (network_)
    for (Rank r = 0; r < machines(); ++r) polled.push_back({network_->descriptor(r), POLLIN, 0});
  const Nanos left = std::max<Nanos>(0, due - now_ns());
  const timespec wait{time_t(left / kSecond), long(left % kSecond)};
  const int events = ppoll(polled.data(), polled.size(), &wait, nullptr);
  if (events == 0 && left > 0) came_late(due);
  if (events > 0) {
    if (polled[0].revents) heed_all();
    for (Rank r = 0; network_ && r < machines(); ++r)
      if (polled[r + 1].revents)
        network_->move(r, now_ns(), [this](Rank a, Rank b) { return passages_[a * machines() + b]; });
  }
  if (network_) network_->deliver(now_ns());
}

// Nobody is left to admit those that wait.
bool Job::settled() const {
  return std::all_of(state_.begin(), state_.end(),
                     [](const RankState& s) { return !s.alive || s.ended || (s.joins && !s.joined); });
}

void Job::run() {
  Nanos latest = 0;
  const Nanos started = now_ns();
  for (std::size_t i = 0; i < plan_.faults.size(); ++i)
    if (plan_.faults[i].kind == sim::FaultKind::late_start)
      later(started + real(plan_.faults[i].at),
            [this, i] { events_.push_back({.at = now_ns(), .what = sim::FaultEvent::What::begins, .fault = i}); });
  for (Rank r = 0; r < ranks(); ++r) {
    const Nanos late = sim::late_by(plan_.faults, r);
    latest = std::max(latest, late);
    if (late > 0)
      later(started + real(late), [this, r] { start(r); });
    else
      start(r);
  }
  const auto everybody = [&](auto what) { return std::all_of(state_.begin(), state_.begin() + ranks(), what); };
  const Nanos start_by = started + kStart + real(latest);
  while (!everybody([](const RankState& s) { return s.ready; })) {
    await(now_ns() + 10 * kNsPerMs);
    look_at_ranks();
    const bool late = now_ns() > start_by;
    if (violations_.empty() && !late) continue;
    show_logs(late);
    if (!crash_.empty()) throw std::runtime_error(fmt::format("engine \"real\": not started: {}", crash_));
    throw SystemRefused(violations_.empty()
                            ? fmt::format("engine \"real\": the ranks were not connected within {} s", kStart / kSecond)
                            : fmt::format("engine \"real\": not started: {}", violations_[0]));
  }

  // A rank that was never heard is not accused (docs/faults.md), so the detector, which asks one rank in each tenth of
  // the detection time, goes round before anything happens.
  const Nanos round = real(plan_.recovery.detection) / 10 * std::max<Nanos>(3, Nanos(ranks()));
  for (const Nanos heard = now_ns() + round; network_ && now_ns() < heard;) {
    await(std::min(heard, now_ns() + 10 * kNsPerMs));
    look_at_ranks();
  }
  for (std::size_t i = 0; i < plan_.faults.size(); ++i)
    if (sim::begins_before_start(plan_.faults[i])) begin_fault(i, now_ns());
  began_ = now_ns();
  shared_->go = 1;
  if (plan_.recovery.heal > 0) later(began_ + real(plan_.recovery.heal), [this] { heal(); });
  Nanos last = plan_.recovery.heal;
  for (const sim::Fault& f : plan_.faults) last = std::max(last, f.at + f.lasts);
  const Nanos computing = plan_.compute * Nanos(workload_.operations.size());
  const Nanos limit =
      began_ + (plan_.recovery.limit > 0
                    ? real(plan_.recovery.limit)
                    : real(simulated_.time_ns + last + 4 * computing + 10 * plan_.recovery.detection) + kSlack);
  while (!settled() && now_ns() < limit) {
    await(std::min(limit, now_ns() + 10 * kNsPerMs));
    look_at_ranks();
  }
  hangs_ = !settled();
  if (hangs_) waits_ = waits();
  ended_ = now_ns();
  agenda_.clear();
  for (RankState& s : state_)
    if (s.alive && s.joins && !s.joined) {
      s.alive = false;
      if (s.pid > 0) kill(s.pid, SIGKILL);
    }
  shared_->end = 1;
  for (const Nanos until = now_ns() + kGoodbye;
       now_ns() < until && std::any_of(state_.begin(), state_.end(), [](const RankState& s) { return s.pid > 0; });) {
    await(now_ns() + 2 * kNsPerMs);
    look_at_ranks();
  }
}

}  // namespace gccl::real
