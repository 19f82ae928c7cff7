// Runs a piece of a test in a process of its own: what can be done once per process, or ends the process.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <type_traits>

// Calls f() in a child process and returns its result, a std::vector of trivially copyable elements. An exception in
// the child, or a crash of it, comes out as std::runtime_error. Checks belong in the parent: nobody sees the child's.
template <class F>
std::invoke_result_t<F> in_child(F f) {
  using Result = std::invoke_result_t<F>;
  using Element = typename Result::value_type;
  static_assert(std::is_trivially_copyable_v<Element>);
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe");
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child == 0) {
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
    _exit(0);
  }
  close(ends[1]);
  std::string got;
  char buffer[65536];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) got.append(buffer, std::size_t(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0 || got.empty()) throw std::runtime_error("the child died, wait status " + std::to_string(status));
  if (got[0] != '=') throw std::runtime_error(got.substr(1));
  Result result((got.size() - 1) / sizeof(Element));
  got.copy(reinterpret_cast<char*>(result.data()), got.size() - 1, 1);
  return result;
}
