#include "libgccl/base/processors.hpp"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <vector>

#include "libgccl/base/splitmix.hpp"

namespace gccl {
namespace {

constexpr int kProcessorsMax = 1 << 16;

// Of one group, by the files of either version.
std::optional<double> quota(const std::string& folder) {
  double us = 0, period_us = 0;
  if (std::ifstream both(folder + "/cpu.max"); both >> us >> period_us) {  // "max 100000" where nothing limits it
    if (period_us > 0) return us / period_us;
    return {};
  }
  std::ifstream of_quota(folder + "/cpu.cfs_quota_us"), of_period(folder + "/cpu.cfs_period_us");
  if (of_quota >> us && of_period >> period_us && us > 0 && period_us > 0) return us / period_us;
  return {};
}

// Narrows `least` to what the group and those above it grant. In a container the path may be the machine's, and what is
// mounted begins with the container's own group: what is not there is passed over.
void narrow(const std::string& mounted, std::string group, SharedProcessors* least) {
  for (;;) {
    const std::string folder = mounted + group;
    struct stat at;
    if (const auto granted = quota(folder); granted && *granted < double(least->count) && !::stat(folder.c_str(), &at))
      *least = {.id = splitmix::mix(at.st_dev) ^ splitmix::mix(at.st_ino), .count = std::uint32_t(*granted)};
    if (group.empty()) return;
    group.resize(group.rfind('/') == group.npos ? 0 : group.rfind('/'));
  }
}

}  // namespace

SharedProcessors bound_processors() {
  // The call asks for at least as many bits as the kernel was built for.
  for (int most = CPU_SETSIZE; most <= kProcessorsMax; most *= 2) {
    std::vector<cpu_set_t> set(std::size_t(most) / CPU_SETSIZE);
    const std::size_t bytes = set.size() * sizeof set[0];
    if (::sched_getaffinity(0, bytes, set.data()) != 0) continue;
    SharedProcessors bound;
    for (int p = 0; p < most; ++p) {
      if (!CPU_ISSET_S(std::size_t(p), bytes, set.data())) continue;
      bound.id = splitmix::mix(bound.id + std::uint64_t(p) + 1);
      ++bound.count;
    }
    return bound;
  }
  return {.id = 0, .count = std::uint32_t(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L))};
}

SharedProcessors granted_processors(const std::string& groups_of_process, const std::string& mounted) {
  SharedProcessors least{.id = 0, .count = std::numeric_limits<std::uint32_t>::max()};
  std::ifstream lines(groups_of_process);
  for (std::string line; std::getline(lines, line);) {  // "0::/group", or "4:cpu,cpuacct:/group"
    const std::size_t names = line.find(':'), group = names == line.npos ? names : line.find(':', names + 1);
    if (group == line.npos) continue;
    const std::string controllers = line.substr(names + 1, group - names - 1), path = line.substr(group + 1);
    if (controllers.empty())
      narrow(mounted, path, &least);
    else if ((',' + controllers + ',').find(",cpu,") != std::string::npos)
      for (const std::string& folder : {controllers, std::string("cpu")}) narrow(mounted + '/' + folder, path, &least);
  }
  return least;
}

}  // namespace gccl
