#include "cli/launch/child.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "cli/launch/running.hpp"
#include "libgccl/bootstrap/join_report.hpp"

namespace gccl::launch {
namespace {

// A matter of speed only.
void bind_to(int core) {
  cpu_set_t* const cores = CPU_ALLOC(std::size_t(core) + 1);
  const std::size_t bytes = CPU_ALLOC_SIZE(std::size_t(core) + 1);
  CPU_ZERO_S(bytes, cores);
  CPU_SET_S(std::size_t(core), bytes, cores);
  sched_setaffinity(0, bytes, cores);
  CPU_FREE(cores);
}

}  // namespace

void become(const Process& process, Guard& guard, Beginning b) {
  setpgid(0, 0);          // so that signals reach what the program starts, too
  guard.watch(getpid());  // before there is anything that would outlive a launcher that is killed now
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != b.launcher) _exit(1);  // it has died already
  if (!b.in && (!b.reads || isatty(0))) b.in = Fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (b.in) dup2(b.in.get(), 0);
  if (b.out) dup2(b.out.get(), 1);
  if (b.err) dup2(b.err.get(), 2);
  if (process.core >= 0) bind_to(process.core);
  // Of the launcher's own surroundings: ranks make the job, and spares have no rank.
  for (const char* name : {"GCCL_RANK", "GCCL_SIZE", "GCCL_LOCAL_RANK", "GCCL_LOCAL_SIZE", "GCCL_JOIN", kJoinReport})
    unsetenv(name);
  for (const auto& [name, value] : process.environment) setenv(name.c_str(), value.c_str(), 1);
  if (b.joins) setenv("GCCL_JOIN", "1", 1);
  if (!b.report.empty()) setenv(kJoinReport, b.report.c_str(), 1);
  std::vector<char*> argv;
  for (const std::string& word : process.command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &b.mask, nullptr);
  execvp(argv[0], argv.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t n = write(b.failure, &error, sizeof error);
  _exit(kNotFound);
}

}  // namespace gccl::launch
