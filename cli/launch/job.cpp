#include "cli/launch/job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "cli/launch/child.hpp"
#include "cli/launch/guard.hpp"
#include "cli/launch/job_output.hpp"
#include "cli/launch/running.hpp"
#include "cli/output.hpp"
#include "libgccl/bootstrap/deadline.hpp"
#include "libgccl/bootstrap/join_report.hpp"
#include "libgccl/bootstrap/secret.hpp"
#include "libgccl/net/socket.hpp"

namespace gccl::launch {
namespace {

constexpr int kWrongUsage = 2, kTimedOut = 124, kNobodyLeft = 1;
// When all ranks have ended, others may still hold their pipes: what these hold is read, and what comes later for so
// long.
constexpr std::int64_t kDrainMs = 200;
// Once the job has been asked to end, a reader that has taken nothing for so long is not waited for.
constexpr std::int64_t kReaderMs = 1000;

bool make_pipe(Fd* read_end, Fd* write_end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  *read_end = Fd(ends[0]), *write_end = Fd(ends[1]);
  return true;
}

// What it means the program says, or GCCL_DUMP_SIGNAL.
bool is_the_programs(int signal) { return signal == SIGUSR1 || signal == SIGUSR2; }

class Runner {
 public:
  explicit Runner(const Job& job) : job_(job) {}
  int run();

 private:
  bool start(unsigned number, bool spare, bool joins);
  int await_exec(int failure);
  bool replace(const Running& r);
  void look_for_reports();
  static void pass_input(Running& r, const std::string& more);
  void signal_all(int signal);
  void stop(int signal);
  std::vector<std::size_t> failures();
  void look_at_stop(Running& r, int signal);
  void heed_failure(const Running& r);
  void look_for_ends();
  void on_signals();
  int wait_ms() const;
  void look_at_time();
  void say(const std::string& text) { output_.say(fmt::format("gccl launch: {}\n", printable_line(text))); }
  bool drain(int timeout_ms);
  void look_at_output();
  bool await_reader();
  void pass_on_the_rest();
  bool all_ended() const;
  bool replaced_meanwhile() const;

  const Job& job_;
  Guard guard_;
  sigset_t old_mask_{};
  Fd signals_;
  JoinReports reports_;
  std::vector<Running> ranks_;  // spares, and what was started anew, after the job's ranks
  int restarts_left_ = 0, spares_left_ = 0;
  unsigned looks_ = 0;  // for who has ended
  JobOutput output_;
  bool by_output_ = false;           // it could not be written, which decided the result, and no rank has failed since
  std::optional<int> result_;        // of the job, once it is decided that it fails
  std::optional<int> replaced_;      // of the first process that failed and was to be replaced
  std::optional<Deadline> limit_;    // of the whole job's time
  std::optional<Deadline> kill_at_;  // while ranks are asked to end
  int kills_ = 0;
  bool asked_to_end_ = false;  // by a signal, or by the limit of time
};

// False, and result_ set, when the process cannot be started.
bool Runner::start(unsigned number, bool spare, bool joins) {
  const Process& process = spare ? job_.spares[number] : job_.ranks[number];
  Running r;
  r.number = number;
  r.spare = spare;
  r.remote = process.remote;
  r.waits = joins;
  r.was_rank = !joins;
  if (!process.remote) r.word = random_secret().substr(0, 32);
  Fd failure_read, failure_write, in_read, in_write, out_read, out_write, err_read, err_write;
  bool ok = make_pipe(&failure_read, &failure_write);
  if (process.remote) ok = ok && make_pipe(&in_read, &in_write);
  if (job_.tag) ok = ok && make_pipe(&out_read, &out_write) && make_pipe(&err_read, &err_write);
  const pid_t launcher = getpid(), pid = ok ? fork() : -1;
  if (pid < 0) {
    say(fmt::format("cannot start {}: {}", r.name(), std::generic_category().message(errno)));
    result_ = 3;
    return false;
  }
  if (pid == 0)
    become(process, guard_,
           {.launcher = launcher,
            .mask = old_mask_,
            .reads = !joins && number == 0,
            .joins = joins,
            .report = r.word.empty() ? "" : reports_.place(r.word),
            .in = std::move(in_read),
            .out = std::move(out_write),
            .err = std::move(err_write),
            .failure = failure_write.get()});
  setpgid(pid, pid);  // whichever of the two comes first
  r.pid = pid;
  r.input = std::move(in_write);
  ranks_.push_back(std::move(r));
  if (job_.tag)
    output_.add(std::move(out_read), std::move(err_read), fmt::format("[{}{}] ", spare ? "spare " : "", number));
  if (process.remote) {
    fcntl(ranks_.back().input.get(), F_SETFL, O_NONBLOCK);
    pass_input(ranks_.back(), process.input);
  }
  failure_write.reset();
  if (const int error = await_exec(failure_read.get())) {
    say(fmt::format("{}: {}", process.command[0],
                    error == ENOENT ? "not found" : std::generic_category().message(error)));
    result_ = kWrongUsage;
    return false;
  }
  return true;
}

// Until the program runs, 0, or cannot, errno. That hangs where its file does, as on a server that does not answer:
// signals and the limit of time are heeded meanwhile, and once the job is to end it is not waited for.
int Runner::await_exec(int failure) {
  while (!asked_to_end_) {
    pollfd polled[] = {{failure, POLLIN, 0}, {signals_.get(), POLLIN, 0}};
    poll(polled, 2, wait_ms());
    on_signals();
    int error = 0;
    if (polled[0].revents != 0) return ::read(failure, &error, sizeof error) == ssize_t(sizeof error) ? error : 0;
    look_at_time();
  }
  return 0;
}

// As far as the pipe takes it now: an ssh that reads nothing holds up nobody.
void Runner::pass_input(Running& r, const std::string& more) {
  r.to_write += more;
  while (!r.to_write.empty()) {
    const ssize_t n = write(r.input.get(), r.to_write.data(), r.to_write.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) r.to_write.clear();  // it has ended: seen as such
    if (n < 0) return;
    r.to_write.erase(0, std::size_t(n));
  }
}

void Runner::signal_all(int signal) {
  const bool wakes = signal != SIGKILL && !is_the_programs(signal);  // who is stopped could not end
  for (Running& r : ranks_) {
    if (r.ended) continue;
    if (r.remote && r.input) {
      pass_input(r, fmt::format("{}\n", sigabbrev_np(signal)));
      if (signal == SIGKILL) r.input.reset(), r.to_write.clear();
    } else {
      kill(-r.pid, signal);
      if (wakes) kill(-r.pid, SIGCONT);
    }
  }
}

void Runner::stop(int signal) {
  signal_all(signal);
  if (!kill_at_) kill_at_ = Deadline::in_ms(job_.grace_ms);
}

// Who has become a rank, who waits again, and who does no longer. One that has never been a rank and gives up is a
// spare that ends.
void Runner::look_for_reports() {
  std::string word;
  JoinState state;
  while (reports_.next(&word, &state)) {
    const auto r = std::ranges::find(ranks_, word, &Running::word);
    if (r == ranks_.end()) continue;
    if (state == JoinState::joined) r->was_rank = true;
    if (state == JoinState::waits || state == JoinState::joined || r->was_rank) r->waits = state == JoinState::waits;
  }
}

// Whether something takes the place of a rank that has failed.
bool Runner::replace(const Running& r) {
  if (kill_at_ || output_.failed()) return false;
  // Nor where nobody is left to admit what would, unless that has been done.
  const bool over = all_ended();
  if (!r.waiting_spare() && (restarts_left_ + spares_left_ == 0 || (over && !replaced_meanwhile()))) return false;
  if (!replaced_) replaced_ = exit_code_of(r.status);
  const std::string what = what_became_of(r);
  if (restarts_left_ > 0 && !r.spare && !over) {
    --restarts_left_;
    say(what + "; starting it again");
    if (start(r.number, false, true)) return true;
    restarts_left_ = 0;
    if (job_.keep_going) return true;
    say(fmt::format("rank {} could not be started again{}", r.number, all_ended() ? "" : "; ending the others"));
    stop(SIGTERM);
    return true;
  }
  // A spare that waits is no rank: those that are left decide by themselves what becomes of the job without it.
  if (spares_left_ == 0 && !r.waiting_spare()) return false;
  spares_left_ = std::max(spares_left_ - 1, 0);
  say(what + (r.waits ? "" : over ? "; a spare has taken its place" : "; a spare may take its place"));
  return true;
}

// Those of ranks_ that have failed since the last look. Ranks that have ended stay zombies until all have, so that
// their groups keep their numbers.
std::vector<std::size_t> Runner::failures() {
  ++looks_;
  look_for_reports();
  std::vector<std::size_t> news;
  for (Running& r : ranks_) {
    if (r.ended) continue;
    siginfo_t info{};
    if (waitid(P_PID, id_t(r.pid), &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) continue;
    if (info.si_code == CLD_STOPPED) {
      look_at_stop(r, info.si_status);
      continue;
    }
    r.ended = true;
    r.found_at = looks_;
    r.status = info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0) : W_EXITCODE(0, info.si_status);
    if (failed(r.status)) news.push_back(std::size_t(&r - ranks_.data()));
  }
  look_for_reports();  // what they have said before others ended
  // Of those who are found together, one that was killed may have come before the others, which lose it and give up;
  // but a crash on the way out is not worth more than the error that led there.
  std::stable_sort(news.begin(), news.end(),
                   [this](std::size_t a, std::size_t b) { return was_killed(ranks_[a]) > was_killed(ranks_[b]); });
  return news;
}

// By the terminal, of which its group is in the background: it would wait for ever. Who sends SIGSTOP knows of it.
void Runner::look_at_stop(Running& r, int signal) {
  if ((signal != SIGTTIN && signal != SIGTTOU) || std::exchange(r.stop_was_said, true)) return;
  say(fmt::format("{} is stopped by signal {} ({}): ranks cannot use the terminal", r.name(), signal,
                  strsignal(signal)));
}

void Runner::look_for_ends() {
  // Once more after each look: where one is started again, on_signals() reads the signals of those that end meanwhile.
  for (std::vector<std::size_t> news = failures(); !news.empty(); news = failures())
    for (const std::size_t at : news) heed_failure(ranks_[at]);
}

void Runner::heed_failure(const Running& r) {
  if (replace(r)) return;
  const bool by_output = std::exchange(by_output_, false);
  const bool first = !result_ || by_output;
  // A rank that dies of an output that cannot be written adds nothing to what was said of that.
  const bool of_output = output_.failed() && exit_code_of(r.status) == 128 + SIGPIPE;
  const bool quiet = of_output || lost_its_reader(r.status);
  // An error keeps its exit code although what the rank said of it could not be written.
  if (!result_ || (by_output && output_.standard_error_failed() && !of_output)) result_ = exit_code_of(r.status);
  if (job_.keep_going && !kill_at_) {
    if (!quiet) say(what_became_of(r) + (first && !all_ended() ? "; the others go on" : ""));
  } else if (first) {
    if (!quiet) say(what_became_of(r) + (all_ended() ? "" : "; ending the others"));
    stop(SIGTERM);
  }
}

void Runner::on_signals() {
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof info) == ssize_t(sizeof info)) {
    const int signal = int(info.ssi_signo);
    if (signal == SIGCHLD) continue;  // several may have become one: all ranks are looked at anyway
    if (is_the_programs(signal)) {
      signal_all(signal);
      continue;
    }
    if (!result_) result_ = 128 + signal;
    asked_to_end_ = true;
    if (kill_at_) {
      signal_all(SIGKILL);
    } else if (!all_ended()) {
      say(fmt::format("{}: ending all ranks", strsignal(signal)));
      stop(signal);
    }
  }
}

// Until the next moment for look_at_time(); -1: there is none.
int Runner::wait_ms() const {
  if (kill_at_) return kill_at_->poll_ms();
  return limit_ ? limit_->poll_ms() : -1;
}

void Runner::look_at_time() {
  if (kill_at_ && kill_at_->passed()) {
    // A remote rank is first killed over there; an ssh that does not end then is beyond help.
    if (kills_++ > 0)
      for (Running& r : ranks_) r.input.reset(), r.remote = false;
    signal_all(SIGKILL);
    kill_at_ = Deadline::in_ms(job_.grace_ms + 100);
  } else if (!kill_at_ && limit_ && limit_->passed()) {
    if (!result_) result_ = kTimedOut;
    asked_to_end_ = true;
    say(fmt::format("not done within {} s; ending all ranks", job_.timeout_ms / 1000.0));
    stop(SIGTERM);
  }
}

// Nobody is left to admit those that wait.
bool Runner::all_ended() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Running& r) { return r.ended || r.waits; });
}

// Where this process has not looked for some time, it finds a failure together with the good end of what had taken that
// place: as many ranks as the job has have ended well.
bool Runner::replaced_meanwhile() const {
  const auto well = [](const Running& r) { return r.ended && !failed(r.status) && (!r.spare || r.was_rank); };
  return std::ranges::count_if(ranks_, well) == std::ptrdiff_t(job_.ranks.size()) &&
         std::ranges::any_of(ranks_, [&](const Running& r) { return well(r) && r.was_rank && r.found_at == looks_; });
}

// Waits for signals, output and room for it and for the ranks' input, and deals with all but the first. False where
// there was nothing to read of any rank.
bool Runner::drain(int timeout_ms) {
  std::vector<pollfd> polled{{signals_.get(), POLLIN, 0}, {reports_.descriptor(), POLLIN, 0}};
  const std::size_t before = polled.size();
  output_.wait_for(polled);
  const std::size_t behind = polled.size();
  for (const Running& r : ranks_)
    if (!r.to_write.empty() && r.input) polled.push_back({r.input.get(), POLLOUT, 0});
  if (poll(polled.data(), polled.size(), timeout_ms) <= 0) return false;
  for (Running& r : ranks_)
    if (!r.to_write.empty() && r.input) pass_input(r, {});
  const bool any = output_.pass_on(std::span(polled).subspan(before, behind - before));
  look_at_output();
  return any;
}

// An output that cannot be written fails the job, unless it fails already: standard error, too, where nothing can be
// reported.
void Runner::look_at_output() {
  const int error = output_.new_failure();
  if (error == 0) return;
  say(fmt::format("output cannot be written: {}", std::generic_category().message(error)));
  if (!result_) result_ = kWrongUsage, by_output_ = true;
}

// Until all that was read is written. False where that is given up.
bool Runner::await_reader() {
  std::size_t before = output_.left();
  for (Deadline end = Deadline::in_ms(kReaderMs); before > 0;) {
    std::vector<pollfd> polled{{signals_.get(), POLLIN, 0}};
    output_.wait_for_room(polled);
    poll(polled.data(), polled.size(), asked_to_end_ ? end.poll_ms() : -1);
    const bool was_asked = asked_to_end_;
    on_signals();
    output_.flush();
    if (std::exchange(before, output_.left()) != output_.left() || was_asked != asked_to_end_)
      end = Deadline::in_ms(kReaderMs);
    else if (asked_to_end_ && end.passed())
      return false;
  }
  return true;
}

// What ranks had written when they ended lies in the pipes, and is passed on however long that takes (a pager), unless
// the job was asked to end.
void Runner::pass_on_the_rest() {
  output_.read_what_pipes_hold();
  do {
    if (!await_reader()) return;
  } while (drain(0));
  for (Deadline end = Deadline::in_ms(kDrainMs); output_.any_pipes() && !end.passed();) {
    drain(end.poll_ms());
    on_signals();
    const bool waits = output_.left() > 0;
    if (!await_reader()) return;
    if (waits) end = Deadline::in_ms(kDrainMs);  // the reader's time does not count
  }
  output_.finish();
  await_reader();
}

int Runner::run() {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  // What was ignored before (nohup; a shell's background commands) stays so: a blocked signal would reach signals_.
  for (const int signal : kPassedOn) {
    struct sigaction before {};
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) sigaddset(&mask, signal);
  }
  sigprocmask(SIG_BLOCK, &mask, &old_mask_);
  ::signal(SIGPIPE, SIG_IGN);
  signals_ = Fd(signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  std::fflush(nullptr);
  const std::size_t all = job_.ranks.size() + job_.spares.size() + std::size_t(job_.restarts);
  allow_descriptors(all * 5 + 64);
  if (const Status s = reports_.open(); !s.ok()) {
    say(s.text());
    result_ = 3;
  }
  ranks_.reserve(all);
  restarts_left_ = job_.restarts;
  spares_left_ = int(job_.spares.size());

  if (job_.timeout_ms > 0) limit_ = Deadline::in_ms(job_.timeout_ms);
  bool starts = !result_;  // until one cannot be started
  for (unsigned r = 0; r < job_.ranks.size() && starts && !asked_to_end_; ++r) starts = start(r, false, false);
  for (unsigned r = 0; r < job_.spares.size() && starts && !asked_to_end_; ++r) starts = start(r, true, true);
  if (!starts) stop(SIGKILL);
  for (on_signals(), look_for_ends(); !all_ended();) {
    drain(wait_ms());
    on_signals();
    // Before the time is looked at: ranks may have ended in time while this process itself did not run.
    look_for_ends();
    if (!all_ended()) look_at_time();
  }
  for (const Running& r : ranks_)
    if (!r.ended && r.was_rank && !result_)
      say(fmt::format("{} waits to join (GCCL_Join), and nobody is left to admit it: ending it", r.name()));
  for (const Running& r : ranks_) kill(-r.pid, SIGKILL);  // what ranks have started and left behind
  pass_on_the_rest();
  look_at_output();
  for (const Running& r : ranks_) waitpid(r.pid, nullptr, 0);
  if (result_) return *result_;
  // Where nobody has ended well there was nobody to take a place from.
  const bool well =
      std::any_of(ranks_.begin(), ranks_.end(), [](const Running& r) { return r.ended && !failed(r.status); });
  return well ? 0 : replaced_.value_or(kNobodyLeft);
}

}  // namespace

int run(const Job& job) { return Runner(job).run(); }

}  // namespace gccl::launch
