#include "sim/scenario/run/pool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "libgccl/base/system_refused.hpp"
#include "sim/engine/workload_error.hpp"

namespace gccl::sim {
namespace {

// The first byte a child sends says what follows: a result, or why there is none, and then the byte is who is to blame.
constexpr char kResult = 'r';
std::string failure(JobFailed::Blame blame, const char* why) { return char(blame) + std::string(why); }

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(std::size_t(n));
  }
  return true;
}

[[noreturn]] void run_child(int fd, pid_t parent, const std::function<std::string(std::size_t)>& job,
                            std::size_t index) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  // The parent decides what an interrupt means, which often comes to all processes of a group.
  for (const int s : {SIGINT, SIGTERM}) ::signal(s, SIG_IGN);
  // A crash ends the child; handlers were the parent's.
  for (const int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::signal(s, SIG_DFL);
  bool sent = false;
  try {
    const std::string result = job(index);
    sent = write_all(fd, {&kResult, 1}) && write_all(fd, result);
  } catch (const std::bad_alloc&) {
    write_all(fd, failure(JobFailed::Blame::machine, "out of memory"));
  } catch (const SystemRefused& e) {
    write_all(fd, failure(JobFailed::Blame::machine, e.what()));
  } catch (const WorkloadError& e) {
    write_all(fd, failure(JobFailed::Blame::input, e.what()));
  } catch (const std::exception& e) {
    write_all(fd, failure(JobFailed::Blame::program, e.what()));
  }
  _exit(sent ? 0 : 1);  // no destructors, no buffers of the parent's
}

[[noreturn]] void refused(std::size_t job, const char* what, int error) {
  throw JobFailed(job, fmt::format("{}: {}", what, std::strerror(error)), JobFailed::Blame::machine);
}

// The running children.
class Children {
 public:
  ~Children() {
    for (const Child& c : all_) kill(c.pid, SIGKILL);
    for (const Child& c : all_) {
      close(c.fd);
      while (waitpid(c.pid, nullptr, 0) < 0 && errno == EINTR) continue;
    }
  }

  std::size_t size() const { return all_.size(); }

  void start(std::size_t index, const std::function<std::string(std::size_t)>& job) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) refused(index, "no pipe", errno);
    const pid_t parent = getpid(), pid = fork();
    if (pid < 0) {
      const int error = errno;
      close(ends[0]);
      close(ends[1]);
      refused(index, "no process", error);
    }
    if (pid == 0) run_child(ends[1], parent, job, index);
    close(ends[1]);
    all_.push_back({pid, ends[0], index, {}});
  }

  // Waits until something arrives, and returns the jobs that ended with what they sent; those that failed go to
  // `failed`, where it is not empty.
  std::vector<std::pair<std::size_t, std::string>> wait(const PoolOptions& options, std::size_t* done) {
    std::vector<pollfd> polls;
    for (const Child& c : all_) polls.push_back({c.fd, POLLIN, 0});
    std::vector<std::pair<std::size_t, std::string>> ended;
    if (poll(polls.data(), polls.size(), 100) <= 0) return ended;  // the time limit catches a stop just before poll
    for (std::size_t i = polls.size(); i-- > 0;) {
      if (!polls[i].revents) continue;
      char chunk[1 << 16];
      const ssize_t n = read(all_[i].fd, chunk, sizeof chunk);
      if (n > 0) all_[i].received.append(chunk, std::size_t(n));
      if (n != 0) continue;
      const std::size_t job = all_[i].job;
      try {
        ended.emplace_back(job, reap(i));
      } catch (const JobFailed& e) {
        if (!options.failed || e.blame == JobFailed::Blame::input) throw;
        ++*done;
        options.failed(e);
      }
    }
    return ended;
  }

 private:
  struct Child {
    pid_t pid;
    int fd;
    std::size_t job;
    std::string received;
  };

  std::string reap(std::size_t i) {
    Child child = std::move(all_[i]);
    all_.erase(all_.begin() + std::ptrdiff_t(i));
    close(child.fd);
    int status = 0;
    while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) continue;
    const char kind = child.received.empty() ? kResult : child.received[0];
    if (kind != kResult) throw JobFailed(child.job, child.received.substr(1), JobFailed::Blame(kind));
    if (WIFSIGNALED(status)) {
      const int signal = WTERMSIG(status);
      const bool killed = signal == SIGKILL;
      throw JobFailed(
          child.job,
          fmt::format("ended by signal {} ({}){}", signal, strsignal(signal), killed ? ": probably out of memory" : ""),
          killed ? JobFailed::Blame::machine : JobFailed::Blame::program);
    }
    if (child.received.empty() || status != 0) throw JobFailed(child.job, "ended without a result");
    return child.received.substr(1);
  }

  std::vector<Child> all_;
};

}  // namespace

void JobFailed::rethrow(std::size_t number, const std::string& text) const {
  if (blame == Blame::machine) throw SystemRefused(text);
  throw JobFailed(number, text, blame);
}

std::vector<std::string> run_pool(const std::vector<std::size_t>& order,
                                  const std::function<std::string(std::size_t)>& job, const PoolOptions& options) {
  std::vector<std::string> results(order.size());
  Children children;
  std::size_t started = 0, done = 0;
  while (done < order.size()) {
    if (options.stop && *options.stop) throw Interrupted();
    while (started < order.size() && children.size() < std::max(1u, options.children)) try {
        children.start(order[started++], job);
      } catch (const JobFailed& e) {
        if (!options.failed) throw;
        ++done;
        options.failed(e);
      }
    for (auto& [index, text] : children.wait(options, &done)) {
      results[index] = std::move(text);
      ++done;
      if (options.finished) options.finished(index, results[index], done);
    }
  }
  return results;
}

}  // namespace gccl::sim
