#include "pmpi/engine/descriptors.hpp"

#include <dirent.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <fstream>
#include <utility>

namespace gccl::pmpi {
namespace {

// GCCL raises the process's limit to this at least, where the hard one allows that.
constexpr rlim_t kRaised = 256;

std::atomic<int> promised_descriptors{0}, promised_maps{0};

// 0 where /proc does not say.
int maps_max() {
  static const int max = [] {
    int n = 0;
    std::ifstream("/proc/sys/vm/max_map_count") >> n;
    return n;
  }();
  return max;
}

std::string too_few(int needed, const char* thing, std::int64_t used, const char* in_use, std::int64_t may,
                    const char* limit) {
  return "this communicator may need " + std::to_string(needed) + " more " + thing + (needed == 1 ? "" : "s") + ", " +
         std::to_string(used) + in_use + ", and of the " + std::to_string(may) + " that the process may have (" +
         limit + " is left to the program; said once";
}

}  // namespace

Promised::Promised(int descriptors, int maps) : descriptors_(descriptors), maps_(maps) {
  promised_descriptors += descriptors_;
  promised_maps += maps_;
}
Promised::~Promised() {
  promised_descriptors -= descriptors_;
  promised_maps -= maps_;
}
Promised::Promised(Promised&& other) noexcept
    : descriptors_(std::exchange(other.descriptors_, 0)), maps_(std::exchange(other.maps_, 0)) {}
Promised& Promised::operator=(Promised&& other) noexcept {
  std::swap(descriptors_, other.descriptors_);
  std::swap(maps_, other.maps_);
  return *this;
}

// 0 where /proc does not say, and more than any limit where no descriptor is left to look.
int Needs::open_here() {
  DIR* const all = opendir("/proc/self/fd");
  if (!all) return errno == EMFILE || errno == ENFILE ? INT_MAX / 4 : 0;
  int n = -3;  // "." and "..", and the one that reads this
  while (readdir(all)) ++n;
  closedir(all);
  return n;
}

bool Needs::met(std::string* why) const {
  std::string wanting;
  if (rlimit limit{}; descriptors_ > 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    const rlim_t may = std::max(limit.rlim_cur, std::min(limit.rlim_max, kRaised));
    const rlim_t used = std::min(rlim_t(open_before_), may) + rlim_t(promised_descriptors);
    if (used + rlim_t(descriptors_) > may - may / 4)
      wanting = too_few(descriptors_, "file descriptor", std::int64_t(used), " are in use", std::int64_t(may),
                        "ulimit -n) a quarter");
  }
  if (maps_max() > 0 && promised_maps + maps_ > maps_max() / 2)
    wanting = too_few(maps_, "memory map", promised_maps, " are those of others", maps_max(), "vm.max_map_count) half");
  if (wanting.empty()) return true;
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) *why = wanting;
  return false;
}

Promised Needs::promised(const Needs& known) const {
  const int opened = known.open_before_ - open_before_;
  return {std::clamp(known.descriptors_ - opened, 0, known.descriptors_), known.maps_};
}

}  // namespace gccl::pmpi
