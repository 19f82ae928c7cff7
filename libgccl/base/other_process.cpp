#include "libgccl/base/other_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "libgccl/base/descriptor.hpp"
#include "libgccl/base/machine.hpp"
#include "libgccl/base/process.hpp"
#include "libgccl/base/splitmix.hpp"

namespace gccl {
namespace {

// Its state and when it began, from /proc/PID/stat: fields 3 and 22, and how many threads it has, field 20; the name
// between them and the number may hold anything, and ends at the last parenthesis.
bool read_stat(std::int32_t pid, char* state, std::uint64_t* began, long* threads) {
  char path[64], text[1024];
  std::snprintf(path, sizeof path, "/proc/%d/stat", int(pid));
  ssize_t size = 0;
  {
    const ProcessLock lock;  // what another thread frees for a moment is not taken from it
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size = ::read(fd, text, sizeof text - 1);
    ::close(fd);
  }
  if (size <= 0) return false;
  text[size] = 0;
  const char* at = std::strrchr(text, ')');
  if (!at || at[1] != ' ') return false;
  *state = at[2];
  for (int field = 2; field < 22 && at; ++field) {
    at = std::strchr(at + 1, ' ');
    if (at && field == 19) *threads = std::strtol(at + 1, nullptr, 10);
  }
  if (!at) return false;
  *began = std::strtoull(at + 1, nullptr, 10);
  return true;
}

std::uint64_t here() {
  const std::string boot = boot_id(), names = file_identity(kProcessNamespace);
  if (boot.empty() || names.empty()) return 0;
  return splitmix::text_hash(boot + names);
}

}  // namespace

OtherProcess OtherProcess::me() {
  OtherProcess p{.pid = std::int32_t(::getpid()), .began = 0, .place = here()};
  char state;
  long threads;
  if (!read_stat(p.pid, &state, &p.began, &threads)) p.began = 0;
  return p;
}

OtherProcess::State OtherProcess::state() const {
  char how = 'R';
  std::uint64_t its_begin = 0;
  long threads = 1;
  if (!read_stat(pid, &how, &its_begin, &threads))
    return ::kill(pid, 0) != 0 && errno == ESRCH ? State::ended : State::runs;
  if (began != 0 && its_begin != began) return State::ended;
  // A main thread that has ended before the others looks like a process that has.
  if (how == 'X' || (how == 'Z' && threads <= 1)) return State::ended;
  return how == 'T' || how == 't' ? State::stopped : State::runs;
}

bool main_thread_has_ended(std::int32_t pid) {
  char path[64], program;
  std::snprintf(path, sizeof path, "/proc/%d/exe", int(pid));  // with its memory, that is gone
  return ::readlink(path, &program, 1) < 0 && errno == ENOENT;
}

OtherThreads::OtherThreads(std::int32_t pid) : pid_(pid) {
  char path[64], self[16];
  // Of another process-id namespace /proc would list others.
  const ssize_t length = ::readlink("/proc/self", self, sizeof self - 1);
  if (length <= 0) return;
  self[length] = 0;
  if (std::atoi(self) != int(::getpid())) return;
  std::snprintf(path, sizeof path, "/proc/%d/task", int(pid));
  const ProcessLock lock;  // as in read_stat()
  folder_.reset(::opendir(path));
  known_ = folder_ || errno == ENOENT;  // it has ended
}

std::int32_t OtherThreads::next() {
  while (const dirent* const entry = folder_ ? ::readdir(folder_.get()) : nullptr)
    if (const int thread = std::atoi(entry->d_name); thread > 0 && thread != pid_) return thread;  // no "." and ".."
  return 0;
}

bool OtherThreads::has(std::int32_t thread) const {
  char name[16];
  std::snprintf(name, sizeof name, "%d", int(thread));
  return folder_ && ::faccessat(::dirfd(folder_.get()), name, F_OK, 0) == 0;
}

int OtherProcess::open_watch() const {
  const int fd = above_standard_streams(int(::syscall(SYS_pidfd_open, pid, 0)));
  if (fd >= 0 && state() == State::ended) {
    ::close(fd);
    return -1;
  }
  return fd;
}

}  // namespace gccl
