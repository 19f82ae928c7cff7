// The built program as a user starts it, and a folder for its files.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

namespace gccl::test {

namespace fs = std::filesystem;

inline const fs::path kRoot = GCCL_SOURCE_DIR;

// A folder that goes with the test.
struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "gccl-cli-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()));
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  fs::path write(const std::string& name, std::string_view text) const {
    std::ofstream(path / name, std::ios::binary) << text;
    return path / name;
  }
  std::set<std::string> files() const {
    std::set<std::string> all;
    for (const auto& e : fs::directory_iterator(path)) all.insert(e.path().filename().string());
    return all;
  }
};

inline std::string read_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Ended {
  int code;  // 128 + signal when it was killed
  std::string out, err;
};

// The program while it runs, in a process group of its own, in `cwd`. file_bytes_max: no file of it grows beyond, as if
// the disk were full then; 0: no limit.
class Program {
 public:
  Program(std::vector<std::string> arguments, const fs::path& cwd, rlim_t file_bytes_max = 0) {
    arguments.insert(arguments.begin(), GCCL_PROGRAM);
    std::vector<char*> argv;
    for (std::string& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      setpgid(0, 0);
      const auto redirect = [](const fs::path& file, int fd) {
        dup2(open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), fd);
      };
      redirect(streams_.path / "out", 1);
      redirect(streams_.path / "err", 2);
      const rlimit limit{file_bytes_max, file_bytes_max};
      if (file_bytes_max && (signal(SIGXFSZ, SIG_IGN) == SIG_ERR || setrlimit(RLIMIT_FSIZE, &limit) != 0)) _exit(126);
      if (chdir(cwd.c_str()) == 0) execv(argv[0], argv.data());
      _exit(127);
    }
    setpgid(pid_, pid_);
  }
  pid_t pid() const { return pid_; }
  Ended wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_text(streams_.path / "out"),
            read_text(streams_.path / "err")};
  }
  // True once no process of the group is left.
  bool group_ends(std::chrono::seconds limit) const {
    for (const auto end = std::chrono::steady_clock::now() + limit; std::chrono::steady_clock::now() < end;) {
      if (kill(-pid_, 0) != 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }

 private:
  Folder streams_;
  pid_t pid_;
};

inline Ended run_gccl(const std::vector<std::string>& arguments, const fs::path& cwd = kRoot) {
  return Program(arguments, cwd).wait();
}

}  // namespace gccl::test
