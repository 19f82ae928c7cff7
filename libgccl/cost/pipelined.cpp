#include "libgccl/cost/pipelined.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace gccl {

namespace {

// In how many full windows messages leave before the last one, and how many are in that, without one.
struct Windows {
  double in_flight, full, rest;
  Windows(double messages, double steps_each, double channels = 1)
      : in_flight(channels * kStepsInFlight / steps_each),
        full(std::floor((messages - 1) / in_flight)),
        rest(messages - 1 - full * in_flight) {}
};

Cost train(double messages, const Hop& hop, double bytes, double gap, double steps_each, double channels = 1) {
  if (messages <= 0) return 0;
  const Windows w(messages, steps_each, channels);
  // While a full window passes, either its messages' gaps or the oldest message's whole time.
  return w.full * std::max(w.in_flight * gap, hop(bytes)) + w.rest * gap + hop(bytes);
}

}  // namespace

Cost pipelined(double messages, const Hop& hop, double bytes, double overhead_ns, double steps_each) {
  return train(messages, hop, bytes, std::max(overhead_ns, bytes * hop.beta_ns_per_byte), steps_each);
}

Cost pairs_train(double messages, const Hop& pairs, const Hop& alone, const OnDemand<LinkLoads::Stretch>& stretch,
                 double bytes, const CostModel& m, double steps_each, Rank channels) {
  if (messages <= 0) return 0;
  if (m.links_alone) return double(channels) * messages * bytes * pairs.beta_ns_per_byte;
  const Windows w(double(channels) * messages, steps_each, double(channels));
  const Hop one{pairs.alpha_ns, std::max(pairs.beta_ns_per_byte, alone.beta_ns_per_byte)};
  const double share = bytes * pairs.beta_ns_per_byte, gap_ns = m.exchange_gap_ns();
  // Those of the last window leave one gap after the other. Each takes as long as its own way, and all of them what
  // they share: where every pair has a link of its own, nothing.
  const Cost even = w.full * std::max(w.in_flight * std::max(gap_ns, share), one(bytes)) +
                    std::max(w.rest * gap_ns + one(bytes), one.alpha_ns + (w.rest + 1) * share);
  // It takes long to find, and is no more than this: latencies hide that of short messages.
  constexpr double kMostStretch = 3;
  if (!stretch || kMostStretch * w.in_flight * share <= one(bytes)) return even;
  // The last message's own way is part of what the ranks wait for.
  return std::max(even, one.alpha_ns + double(channels) * messages * share * stretch->of(messages, channels));
}

// Ranks of several channels wait less for each other where they are many. By the flow engine's all-to-all of one chunk
// in each: with 4 they wait 0.4 to 1 times as long as with one (leonardo, mixed, custom-fabric, l40s-box,
// alps-gh200-2048, tpu-v4-4096), with more channels about as long as with 4. More messages than those of 64 ranks were
// not looked at: channels are taken to gain nothing there, as they take long to simulate.
double LinkLoads::Stretch::of(double messages, Rank channels) const {
  const double seen = channels > 1 ? at_once[std::min<std::size_t>(std::bit_width(channels), 4) - 2] : one;
  if (seen > 0) return seen;
  return 1 + (messages < 64 ? std::pow(double(std::min<Rank>(channels, 4)), -0.3) : 1) * (one - 1);
}

Cost meeting(Cost whole, Cost busiest, double in_flight) {
  constexpr double kExponent = 1.5;
  if (in_flight <= 1) return whole;
  return std::pow(std::pow(whole / in_flight, kExponent) + std::pow(busiest, kExponent), 1 / kExponent);
}

Cost cycles_meet(Cost cycle, Cost busiest) { return std::cbrt(cycle * cycle * cycle + busiest * busiest * busiest); }

Cost after_in_step(Cost interval, Cost one, Cost block, const Slicing& s) {
  if (s.shares <= 1) return interval;
  return (block - one + double(s.shares - s.lanes) * interval) / double(s.shares - 1);
}

double chunks_in_flight(const Slicing& s, double steps) {
  return double(s.lanes) * std::max(1.0, double(s.window) / steps);
}

Cost fan_out(const View& v, const CostModel& m, double bytes, double chunks, double in_step) {
  if (m.all.known()) {
    const LinkLoads::Fans& f = *m.all.fans;
    const double channels = v.channels, others = v.all.size - 1, messages = chunks * others;
    // The slowest message may pass concurrently with the others, so what the busiest link carries ends without it.
    const Hop share{f.out_mean.alpha_ns, f.out_ns_per_byte};
    const double apart = others * f.out_ns_per_byte, together = f.out_in_order_ns_per_byte;
    return std::max(
        {train(messages, share, bytes, std::max(m.overhead_ns, bytes * share.beta_ns_per_byte), 1, channels),
         train(messages, f.out_mean, bytes, m.overhead_ns, 1, channels),
         std::max(f.out_ns, f.out.alpha_ns + (messages - 1) * m.overhead_ns) +
             channels * bytes * f.out.beta_ns_per_byte,
         f.out.alpha_ns + chunks * bytes * (apart + in_step * (together - apart))});
  }
  const double far = v.nodes > 1 ? v.all.size - v.fullest : 0;
  const Cost across = pipelined(chunks * far, m.net, bytes, m.overhead_ns, 1),
             inside = pipelined(chunks * (v.all.size - 1 - far), m.node, bytes, m.overhead_ns, 1);
  return across + inside - (1 - in_step) * std::min(across, inside);
}

// All messages are on their way at once and queue for the one port and its rank. Where they pass the port one after the
// other (the model engine's short ones), the rank takes one while the next arrives; where they share it fairly (the
// flow and SimGrid engines' all, the model engine's long ones) all have arrived before it takes the first. Short ones
// are predicted halfway between, so that no engine's times are missed by much.
Cost fan_in(const View& v, const CostModel& m, double bytes) {
  const double far = v.nodes > 1 ? v.all.size - v.rails : 0, near = v.all.size - 1 - far;
  const auto gap = [&](const Hop& hop) { return std::max(bytes * hop.beta_ns_per_byte, m.receive_overhead_ns); };
  if (m.all.known() && v.all.size > 1) {
    const LinkLoads::Fans& f = *m.all.fans;
    const double channels = v.channels, others = far + near;
    const double carried = channels * bytes * others * f.in_ns_per_byte * (m.met(bytes) ? *m.all.gather_stretch : 1);
    const double taken = (channels * (far > 0 ? far : near) - 1) * m.receive_overhead_ns;
    const double empty = f.in_ns + (channels - 1) * others * m.receive_overhead_ns;
    const double at_once = bytes > kTurnsAbove ? 1 : 0.5;
    return std::max(empty + bytes * f.in.beta_ns_per_byte, f.in_first_ns + carried) +
           at_once * std::min(carried, taken);
  }
  if (far > 0) return m.net(bytes) + (far - 1) * gap(m.net) + near * gap(m.node);
  return near > 0 ? m.node(bytes) + (near - 1) * gap(m.node) : 0;
}

Cost all_pairs(const View& v, const CostModel& m, double bytes, double steps_each) {
  const double n = v.all.size, far = v.nodes > 1 ? n - n / v.nodes : 0;
  // Where all messages begin at once, the mean of near and far ones is less than a far one takes.
  if (m.all.known())
    return std::max(m.widest(v).alpha_ns, pairs_train(n - 1, m.all.pairs->mean, m.all.pairs->alone, m.all.stretch,
                                                      bytes, m, steps_each, v.channels));
  return pipelined(far, n > v.nodes ? m.net_all : m.net, bytes, m.exchange_gap_ns(), steps_each) +
         pipelined(n - 1 - far, m.node, bytes, m.exchange_gap_ns(), steps_each);
}

}  // namespace gccl
