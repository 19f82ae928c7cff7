#include "pmpi/engine/descriptors.hpp"

#include <dirent.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <utility>

namespace gccl::pmpi {
namespace {

// GCCL raises the process's limit to this at least, where the hard one allows that.
constexpr rlim_t kRaised = 256;

std::atomic<int> all_promised{0};

}  // namespace

PromisedDescriptors::PromisedDescriptors(int n) : n_(n) { all_promised += n_; }
PromisedDescriptors::~PromisedDescriptors() { all_promised -= n_; }
PromisedDescriptors::PromisedDescriptors(PromisedDescriptors&& other) noexcept : n_(std::exchange(other.n_, 0)) {}
PromisedDescriptors& PromisedDescriptors::operator=(PromisedDescriptors&& other) noexcept {
  std::swap(n_, other.n_);
  return *this;
}

int DescriptorCount::open_here() {
  DIR* const all = opendir("/proc/self/fd");
  if (!all) return 0;
  int n = -3;  // "." and "..", and the one that reads this
  while (readdir(all)) ++n;
  closedir(all);
  return n;
}

bool DescriptorCount::enough(std::string* why) const {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return true;
  const rlim_t may = std::max(limit.rlim_cur, std::min(limit.rlim_max, kRaised));
  const int used = open_before_ + all_promised;
  if (rlim_t(used + needed_) <= may - may / 4) return true;
  static std::atomic<bool> said{false};
  if (!said.exchange(true))
    *why = "this communicator may need " + std::to_string(needed_) + " more file descriptor" +
           (needed_ == 1 ? "" : "s") + ", " + std::to_string(used) + " are in use, and of the " + std::to_string(may) +
           " that the process may have (ulimit -n) a quarter is left to the program; said once";
  return false;
}

PromisedDescriptors DescriptorCount::promised(int needed) const {
  return PromisedDescriptors(std::clamp(needed - (open_here() - open_before_), 0, needed));
}

}  // namespace gccl::pmpi
