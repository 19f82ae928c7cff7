// The parameter set and the cluster that a calibration leaves.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "libgccl/base/counted.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/measured/calibration/calibration.hpp"

namespace gccl::sim {
namespace {

using Ordered = nlohmann::ordered_json;

// As few digits as read back to less than a part in 10,000.
double rounded_value(double v) { return std::stod(fmt::format("{:.5g}", v)); }
double gbps(double ns_each) {
  return std::clamp(rounded_value(1 / std::max(ns_each, 1 / kLinkGBpsMax)), kLinkGBpsMin, kLinkGBpsMax);
}
std::int64_t whole_ns(double ns) { return std::llround(ns); }

std::string measured_by(const Calibration& c) {
  return fmt::format("measured by gccl calibrate on {}, {}, {} ranks on {}", c.date, c.processor, c.ranks(),
                     counted(c.nodes(), "node"));
}

std::string interval_text(const Estimate& e, const char* unit) {
  return fmt::format("{:.4g} {} (95 %: {:.4g} to {:.4g})", e.value, unit, e.least, e.most);
}

std::string line_text(const CurveFit& f) {
  double worst = 0, at = 0;
  for (const CurveFit::Row& r : f.rows)
    if (const double off = std::abs(r.line_ns / r.median_ns.value - 1); off > worst) worst = off, at = r.amount;
  return fmt::format("{} and {} for each byte; {} sizes are off by {:.0f} % in the mean, {:.0f} % at {}",
                     interval_text(f.fixed_ns, "ns"), interval_text(f.ns_each, "ns"), f.rows.size(), 100 * f.line_error,
                     100 * worst, json::format_bytes(std::uint64_t(at)));
}

std::string rate_text(const CurveFit& f) {
  const auto inverse = [](double ns) { return ns > 0 ? 1 / ns : 0; };
  return interval_text({inverse(f.ns_each.value), inverse(f.ns_each.most), inverse(f.ns_each.least)}, "GB/s");
}

std::string overhead_text(const ClassFit& f) {
  if (!f.overhead_known)
    return fmt::format("overhead at most {}, which is from one call to the next with one peer",
                       interval_text(f.overhead_ns, "ns"));
  return fmt::format("overhead {} for each peer of a rank that sends to several, and {} of one that takes from several",
                     interval_text(f.overhead_ns, "ns"), interval_text(f.receive_overhead_ns, "ns"));
}

Ordered hop_json(const CurveFit& f, const std::string& source) {
  return {{"alpha_ns", rounded_value(f.line.fixed_ns)},
          {"ns_per_byte", rounded_value(f.line.ns_each)},
          {"source", fmt::format("{}: {}", source, line_text(f))}};
}

// Half of what is left of a message's fixed time: it goes over two links.
Ordered calibrated_link(const ClassFit& f, double overheads_ns, double bandwidth_GBps, const std::string& source) {
  const double left = std::max(0.0, f.ping_pong.line.fixed_ns - overheads_ns);
  return {{"bandwidth_GBps", bandwidth_GBps}, {"latency_ns", whole_ns(left / 2)}, {"source", source}};
}

Ordered transports_json(const Calibration& c, const CalibrationFit& fit, const std::string& source) {
  Ordered all = Ordered::object();
  for (const Replaced& r : replaced_models(c, fit)) {
    Ordered t;
    if (r.node) t["node"] = hop_json(r.node->ping_pong, source);
    if (r.between_nodes) {
      t["net"] = hop_json(r.net->ping_pong, source);
      t["net_all"] = r.net->at_once ? hop_json(*r.net->at_once, source) : t["net"];
    }
    t["overhead_ns"] = rounded_value(r.net->overhead_ns.value);
    t["combine_ns_per_byte"] = rounded_value(fit.combine.line.ns_each);
    t["copy_ns_per_byte"] = rounded_value(fit.copy.line.ns_each);
    t["source"] = fmt::format("{}: {}; rates as of /card", source, overhead_text(*r.net));
    all[r.model] = std::move(t);
  }
  return all;
}

}  // namespace

Ordered calibrated_parameters(const Calibration& c, const CalibrationFit& fit, const std::string& name) {
  const std::string source = measured_by(c);
  const ClassFit& card = fit.inside ? *fit.inside : *fit.between;
  const auto overhead = whole_ns(card.overhead_ns.value), receive = whole_ns(card.receive_overhead_ns.value);
  Ordered links = Ordered::object();
  if (fit.inside)
    links["memory"] = calibrated_link(*fit.inside, double(overhead + receive), gbps(fit.inside->ping_pong.line.ns_each),
                                      fmt::format("{}: {}; less the card's overheads, over two links; by {}", source,
                                                  line_text(fit.inside->ping_pong), names_of(c.inside->by).shown));
  if (fit.between) {
    const CurveFit& one = fit.between->ping_pong;
    const double alone = gbps(one.line.ns_each);
    links["bus"] = {{"bandwidth_GBps", alone},
                    {"latency_ns", 0},
                    {"source", fmt::format("{}: what one rank reaches, {}", source, line_text(one))}};
    double all = alone;
    std::string more = "of one rank of a node alone";
    if (fit.between->at_once) {
      all = std::max(alone, rounded_value(c.between->pairs_at_once * gbps(fit.between->at_once->line.ns_each)));
      more =
          fmt::format("of {} ranks of a node at once: {}", c.between->pairs_at_once, line_text(*fit.between->at_once));
    }
    links["nic"] =
        calibrated_link(*fit.between, double(overhead + receive), std::min(all, kLinkGBpsMax),
                        fmt::format("{}: latency from {}; less the card's overheads, over two links; bandwidth {}",
                                    source, line_text(one), more));
  }
  const auto model = [&](const ClassFit& f, const char* what) { return fmt::format("{} {}", what, overhead_text(f)); };
  std::string card_source = source + ": " + model(card, fit.inside ? "between ranks of a node:" : "between nodes:");
  card_source += fmt::format("; combining sums of f32 {}, copying {}, {} at once", rate_text(fit.combine),
                             rate_text(fit.copy), counted(c.computing, "rank"));
  return {{"schema", "gccl/parameters/1"},
          {"name", name},
          {"description", fmt::format("Processes that GCCL connects by {}, as gccl calibrate found them.", c.backends)},
          {"card",
           {{"overhead_ns", overhead},
            {"receive_overhead_ns", receive},
            {"combine_GBps", gbps(fit.combine.line.ns_each)},
            {"copy_GBps", gbps(fit.copy.line.ns_each)},
            {"source", card_source}}},
          {"eager_bytes", kEagerBytes},
          {"backends", c.backends},
          {"links", std::move(links)},
          {"transports", transports_json(c, fit, source)},
          {"sources",
           {{"/eager_bytes", c.backends == "mpi"
                                 ? "not measured: as in the set host; MPI libraries have limits of their own"
                                 : "not measured: as in the set host, longer messages are read from the sender's "
                                   "memory"}}}};
}

Ordered calibrated_cluster(const Calibration& c, const CalibrationFit& fit, const std::string& name,
                           const std::string& parameters) {
  std::vector<unsigned> ranks_of(c.nodes());
  for (const Rank n : c.node) ++ranks_of[n];
  Ordered nodes = Ordered::array();
  for (std::size_t n = 0; n < ranks_of.size(); ++n) {
    if (n > 0 && ranks_of[n] == ranks_of[n - 1]) {
      nodes.back()["count"] = nodes.back()["count"].get<unsigned>() + 1;
      continue;
    }
    Ordered node = {{"count", 1}, {"cards", ranks_of[n]}};
    if (fit.inside) node["inside"] = {{"kind", "switch"}, {"link", "memory"}};
    if (fit.between) node["nics"] = {{"count", 1}, {"bus", "bus"}, {"port", "nic"}};
    nodes.push_back(std::move(node));
  }
  Ordered cluster = {{"schema", "gccl/cluster/1"},
                     {"name", name},
                     {"description", fmt::format("The ranks that gccl calibrate ran as on {}.", c.date)},
                     {"parameters", parameters},
                     {"nodes", std::move(nodes)}};
  if (c.nodes() > 1) cluster["fabric"] = {{"kind", "switch"}};
  return cluster;
}

}  // namespace gccl::sim
