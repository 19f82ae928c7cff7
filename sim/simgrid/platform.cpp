#include "sim/simgrid/platform.hpp"

#include <fmt/core.h>
#include <simgrid/version.h>
#include <xbt/log.h>

#include <atomic>
#include <csignal>
#include <stdexcept>
#include <string>

namespace gccl::sim {

namespace {

namespace s4u = simgrid::s4u;

// SimGrid installs handlers for Ctrl-C and for crashes; in a library that is not its decision.
class KeepSignalHandlers {
 public:
  KeepSignalHandlers() {
    for (int i = 0; i < kSignals; ++i) sigaction(kNumbers[i], nullptr, &before_[i]);
  }
  ~KeepSignalHandlers() {
    for (int i = 0; i < kSignals; ++i) sigaction(kNumbers[i], &before_[i], nullptr);
  }

 private:
  static constexpr int kSignals = 3, kNumbers[kSignals] = {SIGINT, SIGSEGV, SIGBUS};
  struct sigaction before_[kSignals];
};

void require_first_use_and_version() {
  static std::atomic_flag used;
  if (s4u::Engine::has_instance() || used.test_and_set())
    throw std::logic_error("SimGrid can be used only once in the life of a process");
  int major = 0, minor = 0, patch = 0;
  sg_version_get(&major, &minor, &patch);
  if (major != SIMGRID_VERSION_MAJOR || minor != SIMGRID_VERSION_MINOR)
    throw std::runtime_error(fmt::format("built for SimGrid {}.{}, found {}.{}", SIMGRID_VERSION_MAJOR,
                                         SIMGRID_VERSION_MINOR, major, minor));
}

#if SIMGRID_VERSION < 33400
constexpr const char *kTimePrecision = "surf/precision:1e-10", *kSharePrecision = "maxmin/precision:1e-9";
#else
constexpr const char *kTimePrecision = "precision/timing:1e-10", *kSharePrecision = "precision/work-amount:1e-9";
#endif

std::unique_ptr<s4u::Engine> start_engine() {
  require_first_use_and_version();
  const KeepSignalHandlers keep;
  xbt_log_control_set("root.thresh:critical");
  static char name[] = "gccl";
  static char* arguments[] = {name, nullptr};
  static int count = 1;
  auto engine = std::make_unique<s4u::Engine>(&count, arguments);
  for (const char* setting :
       {"network/model:CM02", "network/crosstraffic:0", "network/latency-factor:1", "network/bandwidth-factor:1",
        "network/TCP-gamma:0",  // 0: no window. Else a flow's rate is bounded by gamma / (2 latency)
        "network/optim:Lazy",   // Full is 1.2 times faster in lockstep and 40 times slower with 1% jitter
        kTimePrecision, kSharePrecision})
    s4u::Engine::set_config(setting);
  return engine;
}

}  // namespace

SimGridPlatform::SimGridPlatform(const Links& cluster) : engine(start_engine()) {
  zone = new HandedRoute;
  s4u::NetZone& z = *zone->get_iface();
  // Newer versions come with a root zone; in older ones the first zone is the root.
  if (s4u::NetZone* root = engine->get_netzone_root(); root != &z) zone->set_parent(root->get_impl());
#if SIMGRID_VERSION < 40000
  const auto add_host = [&](const char* name) { return z.create_host(name, 1.0)->seal(); };
#else
  const auto add_host = [&](const char* name) { return z.add_host(name, 1.0)->seal(); };
#endif
  from = add_host("from");
  to = add_host("to");
  for (const Link& l : cluster) bandwidths_.push_back(l.bandwidth_GBps * 1e9);
  bandwidths_.push_back(0x1p40);
  links_.resize(bandwidths_.size());
#if SIMGRID_VERSION >= 33400  // it seals its zones when its clock first moves: no link may be added after
  for (LinkId l = 0; l < LinkId(links_.size()); ++l) link(l);
#endif
}

SimGridPlatform::LinkImpl* SimGridPlatform::make_link(LinkId l) {
  s4u::NetZone& z = *zone->get_iface();
#if SIMGRID_VERSION < 40000
  s4u::Link* made = z.create_link(std::to_string(l), bandwidths_[l]);
#else
  s4u::Link* made = z.add_link(std::to_string(l), bandwidths_[l]);
#endif
  return made->set_latency(0.0)->seal()->get_impl();
}

}  // namespace gccl::sim
