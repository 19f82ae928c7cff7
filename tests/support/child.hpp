// A piece of a test in a process of its own: what can be done once per process, or ends the process. Ranks over the C
// interface (rank_job.hpp), the built program (program.hpp) and commands (shell.hpp) are such processes. Only what a
// rank does itself is forked by hand: tests of forking, which want the child that fork() makes.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace gccl::test {

// Killed at the latest by the destructor, and with the thread that made it.
class Child {
 public:
  // The process calls f() and ends with the code that this returns; 0 where it returns none, 1 after an exception.
  // Checks belong in the parent: nobody sees the child's.
  template <class F>
  explicit Child(F f) {
    std::fflush(nullptr);
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error("fork");
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int code = 0;
    try {
      if constexpr (std::is_void_v<std::invoke_result_t<F>>)
        f();
      else
        code = f();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "exception: %s\n", e.what());
      code = 1;
    } catch (...) {
      code = 1;
    }
    std::fflush(nullptr);
    _exit(code);
  }
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  ~Child() {
    if (pid_ < 0) return;
    kill();
    wait();
  }

  pid_t pid() const { return pid_; }  // until wait()
  void kill(int signal = SIGKILL) const {
    if (pid_ > 0) ::kill(pid_, signal);
  }
  // Waits for its end, and returns the wait status: 0 when it ended with code 0.
  int wait() {
    int status = -1;
    if (pid_ > 0) waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }

 private:
  pid_t pid_ = -1;
};

// Calls f() in a child, a std::vector of trivially copyable elements. An exception in the child, or a crash of it,
// comes out of result() as std::runtime_error. Several are started by one thread, and not each by its own: what another
// thread holds in the sanitizers' allocator while this one forks is held in the child for ever.
template <class F>
class InChild {
 public:
  using Result = std::invoke_result_t<F>;

  explicit InChild(F f) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("pipe");
    from_ = ends[0];
    child_.emplace([&] {
      close(ends[0]);
      const auto put = [&](const void* data, std::size_t size) {
        for (auto p = static_cast<const char*>(data); size > 0;) {
          const ssize_t n = write(ends[1], p, size);
          if (n <= 0) _exit(3);
          p += n, size -= std::size_t(n);
        }
      };
      try {
        const Result result = f();
        put("=", 1);
        put(result.data(), result.size() * sizeof(Element));
      } catch (const std::exception& e) {
        put("!", 1);
        put(e.what(), std::string(e.what()).size());
      }
    });
    close(ends[1]);
  }
  InChild(const InChild&) = delete;
  ~InChild() { close(from_); }

  // Once.
  Result result() {
    std::string got;
    char buffer[65536];
    for (ssize_t n; (n = read(from_, buffer, sizeof buffer)) > 0;) got.append(buffer, std::size_t(n));
    const int status = child_->wait();
    if (status != 0 || got.empty()) throw std::runtime_error("the child died, wait status " + std::to_string(status));
    if (got[0] != '=') throw std::runtime_error(got.substr(1));
    Result result((got.size() - 1) / sizeof(Element));
    got.copy(reinterpret_cast<char*>(result.data()), got.size() - 1, 1);
    return result;
  }

 private:
  using Element = typename Result::value_type;
  static_assert(std::is_trivially_copyable_v<Element>);
  int from_ = -1;
  std::optional<Child> child_;
};

template <class F>
std::invoke_result_t<F> in_child(F f) {
  return InChild<F>(f).result();
}

}  // namespace gccl::test
