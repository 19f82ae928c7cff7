#include "sim/measured/fit/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gccl::sim {
namespace {

// How far from a set's value a fitted one may be. Latencies stand for what software adds to them, so they may grow by
// far more than a link's bandwidth, which is effective already.
constexpr double kLatencyLess = 20, kLatencyMore = 50, kBandwidthLess = 20, kBandwidthMore = 2, kRateLess = 50,
                 kRateMore = 10;
constexpr double kNanosMore = 10'000;  // a cost of 0 may become as much
constexpr double kNanosOffset = 100;

Adjustable of_time(Adjustable::What what, std::string of, double now) {
  return {what, std::move(of), now / kLatencyLess, std::min(std::max(kNanosMore, now * kLatencyMore), kCostNanosMax),
          kNanosOffset};
}

template <class P>
auto& protocol_of(P& p, const std::string& name) {
  return *std::find_if(p.protocols.begin(), p.protocols.end(), [&](const Protocol& q) { return q.name == name; });
}

Nanos nanos(double value) { return std::llround(value); }

}  // namespace

double rounded(double v) { return std::stod(fmt::format("{:.5g}", v)); }

std::string Adjustable::name() const {
  static constexpr std::string_view kNames[] = {"card/overhead_ns",   "card/receive_overhead_ns",
                                                "card/combine_GBps",  "card/copy_GBps",
                                                "latency_ns",         "bandwidth_GBps",
                                                "operation_ns",       "inside/latency_ns",
                                                "network/latency_ns", "inside/efficiency",
                                                "network/efficiency", "channel_GBps",
                                                "combine_GBps",       "mpi/fresh_GBps"};
  const std::string_view key = kNames[std::size_t(what)];
  if (of.empty()) return std::string(key);
  return fmt::format("{}/{}/{}", what <= What::bandwidth ? "links" : "protocols", of, key);
}

double Adjustable::value(const Parameters& p) const {
  switch (what) {
    case What::overhead: return double(p.card.overhead_ns);
    case What::receive_overhead: return double(p.card.receive_overhead_ns);
    case What::combine: return p.card.combine_GBps;
    case What::copy: return p.card.copy_GBps;
    case What::latency: return double(p.links.find(of)->second.forward.latency_ns);
    case What::bandwidth: return p.links.find(of)->second.forward.bandwidth_GBps;
    case What::operation: return protocol_of(p, of).operation_ns;
    case What::inside_latency: return protocol_of(p, of).inside.latency_ns;
    case What::network_latency: return protocol_of(p, of).network.latency_ns;
    case What::inside_efficiency: return protocol_of(p, of).inside.efficiency;
    case What::network_efficiency: return protocol_of(p, of).network.efficiency;
    case What::channel: return protocol_of(p, of).channel_GBps;
    case What::combine_most: return protocol_of(p, of).combine_GBps;
    case What::fresh: return p.mpi->fresh_GBps;
  }
  return 0;
}

void Adjustable::set(Parameters& p, double exact) const {
  const double value = rounded(exact);
  switch (what) {
    case What::overhead: p.card.overhead_ns = nanos(value); return;
    case What::receive_overhead: p.card.receive_overhead_ns = nanos(value); return;
    case What::combine: p.card.combine_GBps = value; return;
    case What::copy: p.card.copy_GBps = value; return;
    case What::latency: {
      LinkKind& kind = p.links.find(of)->second;
      const auto before = double(kind.forward.latency_ns), back = double(kind.reverse.latency_ns);
      kind.forward.latency_ns = nanos(value);
      kind.reverse.latency_ns =
          nanos(before == back || before == 0 ? value : std::min(value * back / before, kCostNanosMax));
      return;
    }
    case What::bandwidth: {
      LinkKind& kind = p.links.find(of)->second;
      kind.reverse.bandwidth_GBps = rounded(
          std::clamp(kind.reverse.bandwidth_GBps * value / kind.forward.bandwidth_GBps, kLinkGBpsMin, kLinkGBpsMax));
      kind.forward.bandwidth_GBps = value;
      return;
    }
    case What::operation: protocol_of(p, of).operation_ns = std::round(value); return;
    case What::inside_latency: protocol_of(p, of).inside.latency_ns = std::round(value); return;
    case What::network_latency: protocol_of(p, of).network.latency_ns = std::round(value); return;
    case What::inside_efficiency: protocol_of(p, of).inside.efficiency = std::min(value, 1.0); return;
    case What::network_efficiency: protocol_of(p, of).network.efficiency = std::min(value, 1.0); return;
    case What::channel: protocol_of(p, of).channel_GBps = value; return;
    case What::combine_most: protocol_of(p, of).combine_GBps = value; return;
    case What::fresh: p.mpi->fresh_GBps = value;
  }
}

std::vector<Adjustable> adjustables_of(const Parameters& p) {
  using What = Adjustable::What;
  std::vector<Adjustable> all;
  const auto add_rate = [&](What what, std::string of, double rate, double less, double more) {
    if (rate > 0 && std::isfinite(rate))
      all.push_back({what, std::move(of), std::max(rate / less, kLinkGBpsMin), std::min(rate * more, kLinkGBpsMax), 0});
  };
  const auto add_efficiency = [&](What what, const std::string& of, double now) {
    all.push_back({what, of, std::max(kEfficiencyMin, now / kBandwidthLess), 1, 0});
  };
  const bool several = p.protocols.size() > 1;
  for (const Protocol& q : p.protocols) {
    if (q.name.empty()) continue;
    all.push_back(of_time(What::operation, q.name, q.operation_ns));
    if (several) {
      all.push_back(of_time(What::inside_latency, q.name, q.inside.latency_ns));
      if (q.between_nodes) all.push_back(of_time(What::network_latency, q.name, q.network.latency_ns));
      // Where a protocol reaches all of a link's bandwidth, the link's parameter says how much that is.
      if (q.inside.efficiency < 1) add_efficiency(What::inside_efficiency, q.name, q.inside.efficiency);
      if (q.network.efficiency < 1) add_efficiency(What::network_efficiency, q.name, q.network.efficiency);
    }
    add_rate(What::channel, q.name, q.channel_GBps, kRateLess, kRateMore);
    add_rate(What::combine_most, q.name, q.combine_GBps, kRateLess, kRateMore);
  }
  all.push_back(of_time(What::overhead, "", double(p.card.overhead_ns)));
  all.push_back(of_time(What::receive_overhead, "", double(p.card.receive_overhead_ns)));
  add_rate(What::combine, "", p.card.combine_GBps, kRateLess, kRateMore);
  add_rate(What::copy, "", p.card.copy_GBps, kRateLess, kRateMore);
  if (p.mpi) add_rate(What::fresh, "", p.mpi->fresh_GBps, kRateLess, kRateMore);
  for (const auto& [name, kind] : p.links) {
    if (!several) all.push_back(of_time(What::latency, name, double(kind.forward.latency_ns)));
    add_rate(What::bandwidth, name, kind.forward.bandwidth_GBps, kBandwidthLess, kBandwidthMore);
  }
  return all;
}

}  // namespace gccl::sim
