// Runs a function on n ranks, each a process of its own, and tells which of them failed.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

// In the ranks, where nobody would see a failed CHECK.
#define MUST(condition)                                                                                   \
  do {                                                                                                    \
    if (!(condition))                                                                                     \
      throw std::runtime_error(std::string(__FILE__) + ":" + std::to_string(__LINE__) + ": " #condition); \
  } while (false)

// Calls f(rank) in n processes whose environment says which rank they are. Returns what went wrong, a line for each
// rank; "" when nothing did. A rank that takes longer than seconds_max is killed.
template <class F>
std::string on_ranks(int n, F f, unsigned seconds_max = 60) {
  char folder[] = "/tmp/gccl-test-XXXXXX";
  if (!mkdtemp(folder)) throw std::runtime_error("mkdtemp");
  std::fflush(nullptr);
  std::vector<pid_t> children;
  for (int rank = 0; rank < n; ++rank) {
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("fork");
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    alarm(seconds_max);
    setenv("GCCL_RANK", std::to_string(rank).c_str(), 1);
    setenv("GCCL_SIZE", std::to_string(n).c_str(), 1);
    setenv("GCCL_STORE", ("file://" + std::string(folder) + "/store").c_str(), 1);
    int code = 0;
    try {
      f(rank);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "rank %d of %d: %s\n", rank, n, e.what());
      code = 1;
    }
    std::exit(code);  // not _exit: a sanitizer looks for leaks there
  }
  std::string failures;
  for (int rank = 0; rank < n; ++rank) {
    int status = 0;
    waitpid(children[std::size_t(rank)], &status, 0);
    if (status != 0)
      failures += "rank " + std::to_string(rank) + " of " + std::to_string(n) +
                  (WIFSIGNALED(status) ? ": killed by signal " + std::to_string(WTERMSIG(status))
                                       : ": exit code " + std::to_string(WEXITSTATUS(status))) +
                  "\n";
  }
  std::filesystem::remove_all(folder);
  return failures;
}
