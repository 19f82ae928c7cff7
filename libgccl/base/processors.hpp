// Which processors this process may compute on, and for how much of the time.
#pragma once

#include <cstdint>
#include <string>

namespace gccl {

// Processors that some processes of a machine share: those with the same `id` and no others.
struct SharedProcessors {
  std::uint64_t id = 0;
  std::uint32_t count = 0;
};

// The set that the scheduler may put this thread on, named by its members; all of the machine's that are online where
// the system does not say.
SharedProcessors bound_processors();

// What the control group that grants least, of those that this process is in, lets its members use in the mean, rounded
// down ("docker run --cpus", limits of Kubernetes, CPUQuota= of systemd); UINT32_MAX of id 0 where none limits it.
// Above it the kernel stops all members until the next period, most often a tenth of a second, begins. Control groups
// of both versions (Linux's Documentation/admin-guide/cgroup-v2.rst, cpu.max; scheduler/sched-bwc.rst,
// cpu.cfs_quota_us).
SharedProcessors granted_processors(const std::string& groups_of_process = "/proc/self/cgroup",
                                    const std::string& mounted = "/sys/fs/cgroup");

}  // namespace gccl
