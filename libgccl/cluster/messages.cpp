#include "libgccl/cluster/messages.hpp"

#include <cmath>
#include <mutex>

#include "libgccl/base/no_destructor.hpp"

namespace gccl {

Hop hop_over(const Part& cluster, Card from, Card to, const std::vector<LinkId>& route) {
  const Protocol::Way& way = cluster.way(from, to);
  const Nanos overheads = cluster.costs(from).overhead_ns + cluster.costs(to).receive_overhead_ns;
  Hop hop{.alpha_ns = double(overheads) + way.latency_ns, .beta_ns_per_byte = 0};
  double narrowest = INFINITY;
  for (const LinkId l : route) {
    hop.alpha_ns += double(cluster.latency_ns(l));
    narrowest = std::min(narrowest, cluster.bandwidth_GBps(l));
  }
  hop.beta_ns_per_byte = 1 / (narrowest * way.efficiency);
  return hop;
}

namespace {

// Arrays of zeros that nobody uses. Not thread_local: LeakSanitizer crashes where it scans such memory of a program
// that has loaded plug-ins.
constexpr std::size_t kSpareArrays = 16, kSpareLinks = 1 << 20;
struct Spare {
  std::mutex mutex;
  std::vector<std::vector<double>> loads;
};
Spare& spare() {
  static NoDestructor<Spare> s;
  return *s;
}

}  // namespace

std::vector<double> Messages::zeros(std::size_t links) {
  std::vector<double> load;
  {
    const std::lock_guard lock(spare().mutex);
    if (auto& loads = spare().loads; !loads.empty()) {
      load = std::move(loads.back());
      loads.pop_back();
    }
  }
  load.resize(links);
  return load;
}

Messages::~Messages() {
  if (load_.empty() || load_.capacity() > kSpareLinks) return;
  for (const LinkId l : used_) load_[l] = 0;
  const std::lock_guard lock(spare().mutex);
  if (auto& loads = spare().loads; loads.size() < kSpareArrays) loads.push_back(std::move(load_));
}

}  // namespace gccl
