// Which processors processes may compute on, and for how much of the time.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace gccl {

// What one process may use. Sent between ranks as it is.
struct ProcessorShare {
  // A bit for each, by its number modulo 1024.
  using Bound = std::array<std::uint64_t, 16>;
  Bound bound{};  // those that the scheduler may put it on
  // The control group that grants least, of those that it is in ("docker run --cpus", limits of Kubernetes, CPUQuota=
  // of systemd), and what all members may use in the mean, rounded down. Above it the kernel stops them until the next
  // period, most often a tenth of a second, begins.
  std::uint64_t group = 0;
  std::uint32_t granted = std::numeric_limits<std::uint32_t>::max();
};

// Of the calling thread; all that are online where the system does not say. Control groups of both versions (Linux's
// Documentation/admin-guide/cgroup-v2.rst, cpu.max; scheduler/sched-bwc.rst, cpu.cfs_quota_us).
ProcessorShare processor_share(const std::string& groups_of_process = "/proc/self/cgroup",
                               const std::string& mounted = "/sys/fs/cgroup");

std::uint32_t count_of(const ProcessorShare::Bound& processors);

// How long the calling thread was ready to run and got no processor, since it began; 0 where the system does not say.
std::uint64_t starved_ns();

// Of these processes of one machine more are bound to processors than there are of them, or share a control group than
// it grants.
bool outnumber_processors(std::span<const ProcessorShare> processes);

}  // namespace gccl
