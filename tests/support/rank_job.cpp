#include "tests/support/rank_job.hpp"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <utility>

#include "tests/support/own_namespace.hpp"

extern "C" __attribute__((weak)) int __lsan_do_recoverable_leak_check();

namespace ranks {
namespace {

std::atomic<int> reports{0};
bool leak_check = true;

long long now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The rank's whole life; its exit code.
int live(const Job& job, int rank, const std::string& store, const std::function<void(int)>& body) {
  for (const char* name : {"GCCL_SECRET", "GCCL_CHECK", "GCCL_ALGORITHM", "GCCL_ALGO", "GCCL_TUNING_FILE",
                           "GCCL_PARAMETERS", "GCCL_TIMEOUT_MS", "GCCL_PROGRESS_THREAD"})
    ::unsetenv(name);
  ::setenv("GCCL_RANK", std::to_string(rank).c_str(), 1);
  ::setenv("GCCL_SIZE", std::to_string(job.size).c_str(), 1);
  ::setenv("GCCL_STORE", ("file://" + store).c_str(), 1);
  ::setenv("GCCL_BACKENDS", job.backends.c_str(), 1);
  if (!job.nodes.empty()) {
    ::setenv("GCCL_SECRET", "known to these ranks alone", 1);  // without one there is nothing but loopback
    ::setenv("GCCL_HOST", ("node" + std::to_string(job.nodes[std::size_t(rank)])).c_str(), 1);
  }
  for (const auto& [name, value] : job.environment) ::setenv(name.c_str(), value.c_str(), 1);
  try {
    body(rank);
  } catch (const std::exception& e) {
    report(std::string("exception: ") + e.what());
  }
  if (leak_check && __lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check()) report("memory was leaked");
  return any_reported() ? 1 : 0;
}

}  // namespace

void report(const std::string& failure) {
  if (reports.fetch_add(1) >= 10) return;
  std::printf("FAILED %s\n", failure.c_str());
  std::fflush(stdout);
}

bool any_reported() { return reports.load() > 0; }

void without_leak_check() { leak_check = false; }

void without_main_thread(std::function<void()> f) {
  std::thread([f = std::move(f)] {
    for (char state = 0; state != 'Z'; ::usleep(1000)) {  // so /proc calls the process then, which it is not
      std::ifstream stat("/proc/self/stat");
      std::string text;
      if (!std::getline(stat, text)) break;
      state = text[text.rfind(')') + 2];
    }
    f();
    ::_exit(any_reported() ? 1 : 0);
  }).detach();
  ::syscall(SYS_exit, 0);  // this thread alone
  std::abort();
}

bool in_pid_namespace(const std::function<void()>& f) {
  without_leak_check();  // in this process: its next thread would be in the other namespace
  if (!own_namespace(CLONE_NEWPID)) return false;
  const int status = gccl::test::Child([&] {
                       RANK_CHECK(::getpid() == 1);
                       f();
                       return any_reported() ? 1 : 0;
                     }).wait();
  if (status != 0) report("in the namespace: wait status " + std::to_string(status));
  return true;
}

Running::Running(const Job& job, const std::function<void(int)>& body)
    : processes_(std::size_t(job.size)), until_ms_(now_ms() + job.limit_s * 1000LL * GCCL_TEST_SLOWDOWN) {
  for (int r = 0; r < job.size; ++r) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    processes_[std::size_t(r)].child.emplace([&] {
      for (int before = 0; before < r; ++before) ::close(processes_[std::size_t(before)].output);
      ::dup2(ends[1], STDOUT_FILENO);
      ::dup2(ends[1], STDERR_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      return live(job, r, folder_.path / "store", body);
    });
    ::close(ends[1]);
    processes_[std::size_t(r)].output = ends[0];
  }
}

Running::Process::~Process() {
  if (output >= 0) ::close(output);
}

void Running::reap(Process& p) {
  if (p.output >= 0) ::close(p.output);
  p.output = -1;
  if (!p.child) return;
  const int status = p.child->wait();
  p.child.reset();
  if (WIFEXITED(status)) p.end.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) p.end.signal = WTERMSIG(status);
}

// Reads what is there; false when nobody is left to print.
bool Running::read_some(int timeout_ms) {
  std::vector<pollfd> wanted;
  std::vector<Process*> whose;
  for (Process& p : processes_)
    if (p.output >= 0) {
      wanted.push_back({p.output, POLLIN, 0});
      whose.push_back(&p);
    }
  if (wanted.empty()) return false;
  if (::poll(wanted.data(), wanted.size(), timeout_ms) <= 0) return true;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i].revents) continue;
    char buffer[4096];
    const ssize_t n = ::read(wanted[i].fd, buffer, sizeof buffer);
    if (n > 0) {
      whose[i]->end.text.append(buffer, std::size_t(n));
    } else {
      reap(*whose[i]);
    }
  }
  return true;
}

bool Running::await(int rank, const std::string& printed) {
  Process& p = processes_[std::size_t(rank)];
  while (p.end.text.find(printed) == std::string::npos) {
    if (p.output < 0 || now_ms() >= until_ms_) return false;
    read_some(50);
  }
  return true;
}

bool Running::await_ready(int ranks) {
  for (int r = 0; r < ranks; ++r)
    if (!await(r, "ready\n")) return false;
  return true;
}

std::vector<End> Running::wait() {
  while (now_ms() < until_ms_ && read_some(50)) {
  }
  std::vector<End> ends;
  for (Process& p : processes_) {
    if (p.child) {
      p.end.late = true;
      p.child->kill();
      reap(p);
    }
    ends.push_back(p.end);
  }
  return ends;
}

std::vector<End> run(const Job& job, const std::function<void(int)>& body) { return Running(job, body).wait(); }

std::vector<Job> transports(int size) {
  std::vector<Job> all = {{.size = size, .backends = "shm"}, {.size = size, .backends = "tcp"}};
  if (size < 3) return all;
  all.push_back({.size = size, .backends = "shm,tcp"});
  for (int r = 0; r < size; ++r) all.back().nodes.push_back(r % 2);
  return all;
}

std::string describe(const Job& job) {
  std::string s = std::to_string(job.size) + " ranks over " + job.backends;
  if (!job.nodes.empty()) {
    s += " on nodes";
    for (const int n : job.nodes) s += " " + std::to_string(n);
  }
  for (const auto& [name, value] : job.environment) s += " " + name + "=" + value;
  return s;
}

std::string texts(const std::vector<End>& ends) {
  std::string s;
  for (std::size_t r = 0; r < ends.size(); ++r) {
    const End& e = ends[r];
    s += "rank " + std::to_string(r) +
         (e.late     ? " was still running at the limit"
          : e.signal ? " ended by signal " + std::to_string(e.signal)
                     : " exited with " + std::to_string(e.exit_code)) +
         "\n" + e.text;
  }
  return s;
}

void check(const Job& job, const std::function<void(int)>& body) {
  const std::vector<End> ends = run(job, body);
  bool good = true;
  for (const End& e : ends) good &= e.good();
  const std::string what = describe(job) + "\n" + (good ? "" : texts(ends));
  CHECK_MESSAGE(good, what);
}

void check_others(const std::vector<End>& ends, const std::set<int>& lost, const std::string& of) {
  for (std::size_t r = 0; r < ends.size(); ++r)
    if (!lost.contains(int(r))) CHECK_MESSAGE(ends[r].good(), of << "\n" << texts(ends));
}

void ready(GCCL_Comm comm) {
  RANK_SUCCESS(GCCL_Barrier(comm));
  std::printf("ready\n");
  std::fflush(stdout);
}

void leave_before(GCCL_Comm comm, int last) {
  char left = 0;
  if (rank_of(comm) != last) {
    RANK_SUCCESS(GCCL_Send(&left, 1, GCCL_INT8, last, comm));
    return;
  }
  for (int r = 0; r < size_of(comm); ++r)
    if (r != last) RANK_SUCCESS(GCCL_Recv(&left, 1, GCCL_INT8, r, comm));
}

void lose(GCCL_Comm comm, int lost) {
  leave_before(comm, lost);
  if (rank_of(comm) == lost) ::kill(::getpid(), SIGKILL);
}

GCCL_Comm begin() {
  GCCL_Comm world = GCCL_COMM_NULL;
  RANK_SUCCESS(GCCL_Init(&world, nullptr));
  return world;
}

GCCL_Comm copy_of(GCCL_Comm comm) {
  GCCL_Comm c = GCCL_COMM_NULL;
  RANK_SUCCESS(GCCL_Comm_split(comm, 0, 0, &c));
  return c;
}

bool says(const std::string& text) { return std::string(GCCL_Last_error()).find(text) != std::string::npos; }

void expect(GCCL_Result result, GCCL_Result due, const std::string& what) {
  if (result != due)
    report(what + ": returned " + std::to_string(int(result)) + " (" + GCCL_Last_error() + "), due " +
           std::to_string(int(due)));
}

void expect_text(const std::string& text, const std::string& what) {
  if (!says(text)) report(what + ": \"" + GCCL_Last_error() + "\" does not say \"" + text + "\"");
}

}  // namespace ranks
