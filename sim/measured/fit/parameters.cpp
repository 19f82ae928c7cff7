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
constexpr double kNanosLeast = 1, kNanosMore = 10'000;  // a cost of 0 may become as much

Adjustable of_time(Adjustable::What what, std::string link, double now) {
  return {what, std::move(link), std::max(kNanosLeast, now / kLatencyLess), std::max(kNanosMore, now * kLatencyMore)};
}

Nanos nanos(double value) { return std::llround(value); }

}  // namespace

std::string Adjustable::name() const {
  static constexpr std::string_view kNames[] = {"card/overhead_ns",  "card/receive_overhead_ns",
                                                "card/combine_GBps", "card/copy_GBps",
                                                "latency_ns",        "bandwidth_GBps"};
  const std::string_view key = kNames[std::size_t(what)];
  return link.empty() ? std::string(key) : fmt::format("links/{}/{}", link, key);
}

double Adjustable::value(const Parameters& p) const {
  switch (what) {
    case What::overhead: return double(p.card.overhead_ns);
    case What::receive_overhead: return double(p.card.receive_overhead_ns);
    case What::combine: return p.card.combine_GBps;
    case What::copy: return p.card.copy_GBps;
    case What::latency: return double(p.links.find(link)->second.forward.latency_ns);
    case What::bandwidth: return p.links.find(link)->second.forward.bandwidth_GBps;
  }
  return 0;
}

void Adjustable::set(Parameters& p, double value) const {
  switch (what) {
    case What::overhead: p.card.overhead_ns = nanos(value); return;
    case What::receive_overhead: p.card.receive_overhead_ns = nanos(value); return;
    case What::combine: p.card.combine_GBps = value; return;
    case What::copy: p.card.copy_GBps = value; return;
    case What::latency: {
      LinkKind& kind = p.links.find(link)->second;
      const auto before = double(kind.forward.latency_ns), back = double(kind.reverse.latency_ns);
      kind.forward.latency_ns = nanos(value);
      kind.reverse.latency_ns = before == back || before == 0 ? nanos(value) : nanos(value * back / before);
      return;
    }
    case What::bandwidth: {
      LinkKind& kind = p.links.find(link)->second;
      kind.reverse.bandwidth_GBps *= value / kind.forward.bandwidth_GBps;
      kind.forward.bandwidth_GBps = value;
    }
  }
}

std::vector<Adjustable> adjustables_of(const Parameters& p) {
  using What = Adjustable::What;
  std::vector<Adjustable> all{of_time(What::overhead, "", double(p.card.overhead_ns)),
                              of_time(What::receive_overhead, "", double(p.card.receive_overhead_ns))};
  for (const auto& [what, rate] : {std::pair(What::combine, p.card.combine_GBps), {What::copy, p.card.copy_GBps}})
    if (rate > 0) all.push_back({what, "", rate / kRateLess, rate * kRateMore});
  for (const auto& [name, kind] : p.links) {
    all.push_back(of_time(What::latency, name, double(kind.forward.latency_ns)));
    all.push_back({What::bandwidth, name, kind.forward.bandwidth_GBps / kBandwidthLess,
                   kind.forward.bandwidth_GBps * kBandwidthMore});
  }
  return all;
}

}  // namespace gccl::sim
