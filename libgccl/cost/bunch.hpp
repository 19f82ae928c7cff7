// What channels that begin a chunk each at once make of hops that they share.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "libgccl/cost/cost_model.hpp"

namespace gccl {

// So many channels in the same round of an algorithm, as far apart as what they share lets them drift; times are those
// of the last one. All begin one after the other, and messages that are on a hop at once share it fairly, as flows do.
// The first of a bunch is alone on the hop for a moment, so it ends earlier than the others by more than it began
// earlier: of two by as much, of C whose messages take long by C H(C - 1) - C + 1 times as much, where H are the
// harmonic numbers. Only so far as they are apart does one's message pass while another's is in its latency.
class Bunch {
 public:
  // A rank handles a message of each channel one after the other, `gap_ns` apart. How much of its hop a round's message
  // shares with those of rounds over hops that are faster or slower: 1 where all pass one port, 0 where they do not
  // meet.
  Bunch(Rank channels, Cost gap_ns, double meet = 0)
      : channels_(double(channels)), gap_ns_(gap_ns), spread_((channels_ - 1) * gap_ns), begin_(spread_), meet_(meet) {}

  // When the last channel's first message leaves.
  Cost begin() const { return begin_; }

  // When the last channel's message of a round has arrived that leaves at `begin`.
  Cost pass(Cost begin, const Hop& hop, double bytes) {
    if (channels_ <= 1) return begin + hop(bytes);
    const Cost alone = bytes * hop.beta_ns_per_byte, arrives = begin - spread_ + hop.alpha_ns;
    // Hops that are as fast are taken to be the same: what others still have on it from an earlier round goes first.
    Cost& free = free_at(hop.beta_ns_per_byte);
    if (meet_ > 0) {
      const Cost others = *std::max_element(hop_free_.begin(), hop_free_.begin() + std::ptrdiff_t(hops_));
      free = std::max(free, arrives + meet_ * std::max(0.0, others - arrives));
    }
    const Cost waiting = std::max(0.0, free - arrives);
    free = std::max(free, arrives) + channels_ * alone;
    const Cost end = std::max({begin + hop.alpha_ns + alone, free, begin + channels_ * gap_ns_});
    const Cost first = arrives + std::min(waiting, (channels_ - 1) * alone) + first_of(alone);
    spread_ = std::max(end - first, (channels_ - 1) * gap_ns_);
    return end;
  }
  // The same where the message goes on to a rank that is idle by a link that is, as down a chain.
  Cost pass_on(Cost begin, const Hop& hop, double bytes) {
    if (channels_ <= 1) return begin + hop(bytes);
    const Cost alone = bytes * hop.beta_ns_per_byte, arrives = begin - spread_ + hop.alpha_ns,
               first = arrives + first_of(alone);
    const Cost end = std::max({begin + hop(bytes), arrives + channels_ * alone, first + (channels_ - 1) * gap_ns_});
    spread_ = end - first;
    combiner_free_ = 0;
    return end;
  }
  // When the last channel's message is combined, which a rank does one after the other, from when it has arrived.
  Cost combine(Cost arrived, Cost one) {
    if (channels_ <= 1 || one <= 0) return arrived + one;
    const Cost first = arrived - spread_;
    const Cost begin = std::max(combiner_free_, first);
    combiner_free_ = begin + channels_ * one;
    const Cost end = std::max(arrived + one, combiner_free_);
    spread_ = std::max(0.0, end - begin - one);
    return end;
  }

 private:
  static constexpr double kSame = 1e-6;  // what rounding makes of hops that are as fast

  Cost& free_at(double ns_per_byte) {
    for (std::size_t i = 0; i < hops_; ++i)
      if (std::abs(hop_ns_per_byte_[i] - ns_per_byte) <= kSame * ns_per_byte) return hop_free_[i];
    const std::size_t i = hops_ < hop_free_.size() ? hops_++ : hops_ - 1;
    hop_ns_per_byte_[i] = ns_per_byte;
    return hop_free_[i] = 0;
  }
  static double harmonic(double n) {
    static constexpr auto kSums = [] {
      std::array<double, 64> sums{};
      for (std::size_t i = 1; i < sums.size(); ++i) sums[i] = sums[i - 1] + 1 / double(i);
      return sums;
    }();
    return kSums[std::min(std::size_t(n), kSums.size() - 1)];
  }
  // How long the first channel's message is on the hop where the others follow at equal distances.
  Cost first_of(Cost alone) const {
    const Cost apart = spread_ / (channels_ - 1), met = apart * harmonic(channels_ - 1);
    if (alone <= apart) return alone;
    if (alone >= met) return spread_ + channels_ * (alone - met);
    return apart + (alone - apart) / (met - apart) * (spread_ - apart);
  }

  double channels_;
  Cost gap_ns_, spread_, begin_, combiner_free_ = 0;
  std::array<double, 6> hop_ns_per_byte_{};
  std::array<Cost, 6> hop_free_{};
  std::size_t hops_ = 0;
  double meet_;
};

}  // namespace gccl
