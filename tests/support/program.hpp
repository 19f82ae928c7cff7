// The built program as a user starts it.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/child.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/project.hpp"

namespace gccl::test {

namespace fs = std::filesystem;

// The engines that this build has.
inline const std::vector<std::string> kEngines = {
    "model",
    "flow",
#ifdef GCCL_TEST_SIMGRID
    "simgrid",
#endif
};

struct Ended {
  int code;  // 128 + signal when it was killed
  std::string out, err;
  std::set<std::string> lines() const {  // of out
    std::istringstream in(out);
    std::set<std::string> all;
    for (std::string line; std::getline(in, line);) all.insert(line);
    return all;
  }
};

// What surrounds a program that is started.
struct Surroundings {
  fs::path folder = kRoot;                    // its current folder
  std::vector<std::string> environment = {};  // NAME=value, added to the test's own
  rlim_t file_bytes_max = 0;                  // no file of it grows beyond (RLIMIT_FSIZE); 0: no limit
};

// The program while it runs, in a process group of its own.
class Program {
 public:
  explicit Program(std::vector<std::string> arguments, Surroundings around = {})
      : child_([&] { start(std::move(arguments), std::move(around)); }), group_(child_.pid()) {
    setpgid(group_, group_);
  }
  pid_t pid() const { return group_; }
  fs::path out_file() const { return streams_.path / "out"; }
  Ended wait() {
    const int status = child_.wait();
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_text(out_file()),
            read_text(streams_.path / "err")};
  }
  // True once the program has started a process of its own: it has installed its signal handlers by then.
  bool has_children(std::chrono::seconds limit) const {
    const std::string id = std::to_string(group_);
    for (const auto end = std::chrono::steady_clock::now() + limit; std::chrono::steady_clock::now() < end;) {
      if (!read_text("/proc/" + id + "/task/" + id + "/children").empty()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }
  // True once no process of the group is left.
  bool group_ends(std::chrono::seconds limit) const {
    for (const auto end = std::chrono::steady_clock::now() + limit; std::chrono::steady_clock::now() < end;) {
      if (kill(-group_, 0) != 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }

 private:
  void start(std::vector<std::string> arguments, Surroundings around) const {
    arguments.insert(arguments.begin(), GCCL_PROGRAM);
    std::vector<char*> argv;
    for (std::string& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    setpgid(0, 0);
    const auto redirect = [](const fs::path& file, int fd) {
      dup2(open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), fd);
    };
    redirect(out_file(), 1);
    redirect(streams_.path / "err", 2);
    for (std::string& e : around.environment) putenv(e.data());
    const rlimit limit{around.file_bytes_max, around.file_bytes_max};
    if (limit.rlim_cur && setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(126);
    if (chdir(around.folder.c_str()) == 0) execv(argv[0], argv.data());
    _exit(127);
  }

  Folder streams_;
  Child child_;
  pid_t group_;
};

inline Ended run_gccl(const std::vector<std::string>& arguments, const fs::path& folder = kRoot) {
  return Program(arguments, {.folder = folder}).wait();
}

// Wrong input: exit code 2, nothing on standard output, and an error that says `expected`.
inline Ended check_refused(const std::vector<std::string>& arguments, const std::string& expected) {
  Ended e = run_gccl(arguments);
  CAPTURE(expected);
  CAPTURE(e.err);
  CHECK(e.code == 2);
  CHECK(e.err.find(expected) != std::string::npos);
  CHECK(e.out.empty());
  return e;
}

}  // namespace gccl::test
