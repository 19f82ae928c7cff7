// Commands as a shell starts them. The built program has program.hpp, where no shell is wanted.
#pragma once

#include <filesystem>
#include <string>

#include "tests/support/child.hpp"

namespace gccl::test {

// The exit code of the command, started in the folder; 128 + signal when it was killed. Its streams are the test's own:
// a command whose output is wanted writes it to a file of the test's Folder.
inline int shell(const std::string& command, const std::filesystem::path& folder = ".") {
  const int status = Child([&] {
                       if (chdir(folder.c_str()) == 0) execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
                       return 127;
                     }).wait();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

inline bool installed(const std::string& program) { return shell("command -v '" + program + "' >/dev/null 2>&1") == 0; }

}  // namespace gccl::test
