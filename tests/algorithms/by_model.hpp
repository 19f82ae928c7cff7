// Calls as the model engine plays them and as closed forms predict them: on the first cards of a cluster, or on one
// switch where nothing contends.
#pragma once

#include <memory>
#include <vector>

#include "libgccl/cluster/cluster.hpp"
#include "libgccl/cluster/fabrics/star.hpp"
#include "libgccl/select/plan.hpp"
#include "sim/engine/workload.hpp"
#include "sim/flow/cost_check.hpp"

namespace gccl::test {

inline constexpr double kGBps = 50;
inline constexpr Nanos kLatency = 900;
inline constexpr CardCosts kCosts{
    .overhead_ns = 400, .receive_overhead_ns = 300, .combine_GBps = 200, .copy_GBps = 400};

inline Count all_equal(const void* count, Rank, Rank) { return *static_cast<const Count*>(count); }

// `count` must outlive the call.
inline Call call_of(const Algorithm& a, const Count& count) {
  return {.kind = a.kind, .count = count, .counts = all_equal, .table = &count};
}

inline double simulated_ns(const Algorithm& a, const Cluster& cluster, Rank ranks, const Call& call, Slicing slicing,
                           const Protocol* protocol = nullptr) {
  const std::vector<Card> cards = sim::first_cards(ranks);
  sim::Workload w;
  w.cluster = &cluster;
  w.cards = cards;
  w.operations = {{.algorithm = &a,
                   .call = call,
                   .layout = std::make_shared<Layout>(layout_of(cluster, cards)),
                   .members = {},
                   .shares = slicing.shares,
                   .lanes = slicing.lanes,
                   .window = slicing.window,
                   .protocol = protocol}};
  w.streams = {{{0}}};
  return double(sim::run_model(w).time_ns);
}

inline double simulated_ns(const Algorithm& a, const Cluster& cluster, Rank ranks, Count count, Slicing slicing,
                           const Protocol* protocol = nullptr) {
  return simulated_ns(a, cluster, ranks, call_of(a, count), slicing, protocol);
}

inline double simulated_ns(const Algorithm& a, Rank ranks, Count count, Count eager_bytes, Slicing slicing = {}) {
  return simulated_ns(a, Star(ranks, kGBps, kLatency, kCosts, eager_bytes), ranks, count, slicing);
}

inline double predicted_ns(const Algorithm& a, Rank ranks, Count count, Slicing slicing = {}) {
  CostModel m;
  m.node = m.net = m.net_all = {.alpha_ns = double(kCosts.overhead_ns + 2 * kLatency + kCosts.receive_overhead_ns),
                                .beta_ns_per_byte = 1 / kGBps};
  m.overhead_ns = double(kCosts.overhead_ns);
  m.receive_overhead_ns = double(kCosts.receive_overhead_ns);
  m.combine_ns_per_byte = 1 / kCosts.combine_GBps;
  m.copy_ns_per_byte = 1 / kCosts.copy_GBps;
  m.element_bytes = 4;
  return predicted(a, call_of(a, count), Layout::flat(ranks).view(0), m, slicing);
}

}  // namespace gccl::test
