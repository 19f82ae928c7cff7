#include "libgccl/base/processors.hpp"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "libgccl/base/splitmix.hpp"

namespace gccl {
namespace {

constexpr std::size_t kProcessorsMax = 1 << 16;

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

// Narrows the share to what the group and those above it grant. In a container the path may be the machine's, and what
// is mounted begins with the container's own group: what is not there is passed over.
void narrow(const std::string& mounted, std::string group, ProcessorShare* share) {
  for (;;) {
    const std::string folder = mounted + group;
    struct stat at;
    const auto granted = quota(folder);
    if (granted && *granted >= 0 && *granted < double(share->granted) && ::stat(folder.c_str(), &at) == 0) {
      share->group = splitmix::mix(at.st_dev) ^ splitmix::mix(at.st_ino);
      share->granted = std::uint32_t(*granted);
    }
    if (group.empty()) return;
    group.resize(group.rfind('/') == group.npos ? 0 : group.rfind('/'));
  }
}

void read_bound(ProcessorShare* share) {
  const auto put = [&](std::size_t p) { share->bound[p / 64 % share->bound.size()] |= std::uint64_t(1) << p % 64; };
  // The call asks for at least as many bits as the kernel was built for.
  for (std::size_t most = CPU_SETSIZE; most <= kProcessorsMax; most *= 2) {
    std::vector<cpu_set_t> set(most / CPU_SETSIZE);
    const std::size_t bytes = set.size() * sizeof set[0];
    if (::sched_getaffinity(0, bytes, set.data()) != 0) continue;
    for (std::size_t p = 0; p < most; ++p)
      if (CPU_ISSET_S(p, bytes, set.data())) put(p);
    return;
  }
  const auto online = std::size_t(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  for (std::size_t p = 0; p < online; ++p) put(p);
}

}  // namespace

ProcessorShare processor_share(const std::string& groups_of_process, const std::string& mounted) {
  ProcessorShare share;
  read_bound(&share);
  std::ifstream lines(groups_of_process);
  for (std::string line; std::getline(lines, line);) {  // "0::/group", or "4:cpu,cpuacct:/group"
    const std::size_t names = line.find(':'), group = names == line.npos ? names : line.find(':', names + 1);
    if (group == line.npos) continue;
    const std::string controllers = line.substr(names + 1, group - names - 1), path = line.substr(group + 1);
    if (controllers.empty())
      narrow(mounted, path, &share);
    else if ((',' + controllers + ',').find(",cpu,") != std::string::npos)
      for (const std::string& folder : {controllers, std::string("cpu")}) narrow(mounted + '/' + folder, path, &share);
  }
  return share;
}

std::uint32_t count_of(const ProcessorShare::Bound& processors) {
  std::uint32_t n = 0;
  for (const std::uint64_t word : processors) n += std::uint32_t(std::popcount(word));
  return n;
}

// Linux's Documentation/scheduler/sched-stats.rst: time on a processor, time spent waiting for one, slices run.
std::uint64_t starved_ns() {
  std::ifstream file("/proc/thread-self/schedstat");
  std::uint64_t ran = 0, waited = 0;
  return file >> ran >> waited ? waited : 0;
}

bool outnumber_processors(std::span<const ProcessorShare> processes) {
  using Bound = ProcessorShare::Bound;
  // How many of the processes can go nowhere else, against how many processors these are.
  const auto crowd = [&](const Bound& on) {
    const auto within = [&](const ProcessorShare& p) {
      for (std::size_t i = 0; i < on.size(); ++i)
        if (p.bound[i] & ~on[i]) return false;
      return true;
    };
    return std::ranges::count_if(processes, within) > std::ptrdiff_t(count_of(on));
  };
  Bound all{};
  std::set<Bound> sets;  // most processes have the same one
  std::map<std::uint64_t, std::uint64_t> members;
  for (const ProcessorShare& p : processes) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i] |= p.bound[i];
    sets.insert(p.bound);
    if (++members[p.group] > p.granted) return true;
  }
  sets.insert(all);
  return std::ranges::any_of(sets, crowd);
}

}  // namespace gccl
