// What tests of `gccl launch` share: a job that runs, and processes that write down who they are.
#pragma once

#include <doctest/doctest.h>
#include <sys/types.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/clock.hpp"
#include "tests/support/has.hpp"
#include "tests/support/program.hpp"

namespace gccl::test {

// `gccl launch` with these arguments, while it runs.
struct Launch : Program {
  explicit Launch(std::vector<std::string> arguments, std::vector<std::string> environment = {})
      : Program((arguments.insert(arguments.begin(), "launch"), std::move(arguments)),
                {.environment = std::move(environment)}) {}
};

inline Ended launch(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
  return Launch(std::move(arguments), std::move(environment)).wait();
}

// Waits until so many processes have written their ids into the folder, and reads them.
inline std::vector<pid_t> ids_in(const fs::path& folder, std::size_t count) {
  std::vector<pid_t> ids;
  for (int i = 0; i < 1000 && ids.size() < count; ++i, pause_ms(10)) {
    ids.clear();
    for (const auto& entry : fs::directory_iterator(folder)) {
      std::ifstream in(entry.path());
      for (pid_t id; in >> id;) ids.push_back(id);
    }
  }
  CHECK(ids.size() == count);
  return ids;
}

// Gone, or dead and not yet reaped by the process that inherited it.
inline bool is_gone(pid_t id) {
  std::ifstream in("/proc/" + std::to_string(id) + "/stat");
  std::string text;
  if (!std::getline(in, text)) return true;
  const char state = text[text.rfind(')') + 2];
  return state == 'Z' || state == 'X';
}

inline bool all_gone_soon(const std::vector<pid_t>& ids) {
  for (int i = 0; i < 3000; ++i, pause_ms(10))
    if (std::all_of(ids.begin(), ids.end(), is_gone)) return true;
  return false;
}

// A rank that writes its id and a grandchild's, and waits. `trap` comes first.
inline std::vector<std::string> sleeper(const fs::path& folder, const std::string& trap = "") {
  return {"--", "sh", "-c", trap + "sleep 77 & echo $$ $! > " + folder.string() + "/$GCCL_RANK; wait; sleep 77"};
}

inline std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace gccl::test
