#include "libgccl/bootstrap/job_place.hpp"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "gccl/gccl.h"
#include "libgccl/base/splitmix.hpp"
#include "libgccl/net/socket.hpp"

namespace gccl {
namespace {

bool read_whole(const std::string& path, std::string* text) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return false;
  text->assign(std::istreambuf_iterator<char>(in), {});
  return true;
}

struct ProcessStat {
  long parent = 0, session = 0;
  std::string start;
};

// proc(5): parent is field 4 of /proc/PID/stat, session field 6, the start time (in clock ticks since boot) field 22;
// field 2, a name in parentheses, may hold anything.
bool read_stat(long pid, ProcessStat* out) {
  std::string text;
  if (!read_whole(fmt::format("/proc/{}/stat", pid), &text)) return false;
  const std::size_t end = text.rfind(')');
  if (end == text.npos) return false;
  std::size_t at = end + 1;
  for (int field = 3; field <= 22; ++field) {
    const std::size_t begin = text.find_first_not_of(' ', at);
    if (begin == text.npos) return false;
    at = text.find(' ', begin);
    if (field == 4) out->parent = std::strtol(text.c_str() + begin, nullptr, 10);
    if (field == 6) out->session = std::strtol(text.c_str() + begin, nullptr, 10);
    if (field == 22) out->start = text.substr(begin, at - begin);
  }
  return true;
}

// Process 1 starts ranks itself where it is a container's. Elsewhere it adopts those whose launcher has ended, of
// whatever job. These are of a session of somebody else's: an init gives each service its own.
bool started_by_first(const ProcessStat& child) {
  ProcessStat first;
  return child.parent == 1 && read_stat(1, &first) && first.session == child.session;
}

// The nearest ancestor that was not itself launched as a rank: every rank of the job on this machine has it, whatever
// shells and wrappers stand between. Another user's environment cannot be read: it is the launcher's, too.
std::string launching_process(const char* rank_variable) {
  const std::string wanted = fmt::format("{}=", rank_variable);
  long pid = getpid();
  ProcessStat stat;
  while (read_stat(pid, &stat)) {
    std::string variables;
    if (pid != getpid() && !(read_whole(fmt::format("/proc/{}/environ", pid), &variables) &&
                             (variables.starts_with(wanted) || variables.find('\0' + wanted) != variables.npos)))
      break;
    if (stat.parent <= 1 && !started_by_first(stat)) break;
    pid = stat.parent;
  }
  return fmt::format("{}@{}", pid, stat.start);
}

std::string job_name(const Environment& environment, const Launcher& launcher) {
  const auto all_of = [&](std::initializer_list<const char*> names) {
    std::string text;
    for (const char* name : names) {
      const char* value = environment(name);
      if (!value) return std::string();
      text += fmt::format("{}={}\n", name, value);
    }
    return text;
  };
  std::string text;
  switch (launcher.kind) {
    case Launcher::Kind::openmpi:
      text = all_of({"OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri"});
      if (text.empty()) text = all_of({"PMIX_NAMESPACE"});
      break;
    case Launcher::Kind::pmix: text = all_of({"PMIX_NAMESPACE"}); break;
    case Launcher::Kind::slurm: text = all_of({"SLURM_JOB_ID", "SLURM_STEP_ID"}); break;
    default: break;
  }
  // Hydra's own processes inherit PMI_RANK where a rank of srun's has started them. The local rank Hydra alone sets.
  const bool by_hydra = launcher.kind == Launcher::Kind::pmi && environment(launcher.local_rank);
  return text.empty() ? launching_process(by_hydra ? launcher.local_rank : launcher.rank) : text;
}

// A folder of this user's alone, made if need be.
Status private_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return system_error(fmt::format("cannot make the folder {}", path), errno);
  struct stat about {};
  if (lstat(path.c_str(), &about) != 0) return system_error(path, errno);
  if (!S_ISDIR(about.st_mode) || about.st_uid != geteuid() || (about.st_mode & 077))
    return Status::error(
        fmt::format("{}: expected a folder of user {} that nobody else can enter (chmod 700), or set GCCL_STORE", path,
                    geteuid()),
        GCCL_ERR_INVALID_ARGUMENT);
  return {};
}

}  // namespace

Status job_prefix(const Environment& environment, const Launcher& launcher, std::string* out) {
  std::string base;
  for (const char* candidate : {environment("XDG_RUNTIME_DIR"), "/dev/shm", "/tmp"})
    if (base.empty() && candidate && *candidate == '/' && access(candidate, W_OK | X_OK) == 0) base = candidate;
  if (base.empty())
    return Status::error(
        "no folder for the ranks to meet in: neither XDG_RUNTIME_DIR nor /dev/shm nor /tmp can be written "
        "to; set GCCL_STORE",
        GCCL_ERR_INVALID_ARGUMENT);
  const std::string folder = fmt::format("{}/gccl-{}", base, geteuid());
  if (Status s = private_folder(folder); !s.ok()) return s;
  *out = fmt::format("{}/job-{:016x}", folder, splitmix::text_hash(job_name(environment, launcher)));
  return {};
}

}  // namespace gccl
