#include "sim/measured/calibration/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gccl::sim {
namespace {

Estimate at_most(Estimate e, double most) {
  return {std::min(e.value, most), std::min(e.least, most), std::min(e.most, most)};
}

ClassFit fit_class(const PairClass& c) {
  ClassFit fit{.ping_pong = fit_curve(c.ping_pong)};
  if (!c.at_once.empty()) fit.at_once = fit_curve(c.at_once);
  const double fixed = fit.ping_pong.line.fixed_ns;
  if (c.fan_out.amounts.size() >= 2) {
    fit.overhead_known = true;
    fit.overhead_ns = at_most(fit_curve(c.fan_out).ns_each, fixed);
    fit.receive_overhead_ns = at_most(fit_curve(c.fan_in).ns_each, fixed - fit.overhead_ns.value);
  } else if (!c.fan_out.empty()) {
    fit.overhead_ns = at_most(median_of(c.fan_out.ns[0]), fixed);
  }
  return fit;
}

}  // namespace

Rank Calibration::nodes() const { return node.empty() ? 0 : *std::max_element(node.begin(), node.end()) + 1; }

CalibrationFit fit_calibration(const Calibration& c) {
  CalibrationFit fit{.combine = fit_curve(c.combine), .copy = fit_curve(c.copy)};
  if (c.inside) fit.inside = fit_class(*c.inside);
  if (c.between) fit.between = fit_class(*c.between);
  return fit;
}

std::string unsupported_bandwidth(const CalibrationFit& fit) {
  const auto grows = [](const CurveFit& f) { return f.line.ns_each > 1 / kLinkGBpsMax; };
  for (const auto& [what, c] :
       {std::pair("ranks of a node", &fit.inside), {"ranks of different nodes", &fit.between}}) {
    if (!*c) continue;
    if (!grows((*c)->ping_pong)) return fmt::format("messages between {}", what);
    if ((*c)->at_once && !grows(*(*c)->at_once)) return fmt::format("messages between {} by all pairs at once", what);
  }
  return !grows(fit.combine) ? "combining" : !grows(fit.copy) ? "copying" : "";
}

std::vector<Replaced> replaced_models(const Calibration& c, const CalibrationFit& fit) {
  std::vector<Replaced> all;
  const ClassFit* inside = fit.inside ? &*fit.inside : nullptr;
  const ClassFit* between = fit.between ? &*fit.between : nullptr;
  if ((inside ? c.inside : c.between)->by == Carrier::mpi)  // one model for both
    return {{"mpi", inside, between ? between : inside, between != nullptr}};
  if (inside) all.push_back({c.inside->by == Carrier::memory ? "shared-memory" : "tcp-loopback", inside, inside});
  if (between) all.push_back({"tcp", inside, between});
  return all;
}

}  // namespace gccl::sim
