// The time of the rounds of one rank, whose parts lie at the same places from its own on every rank.
#pragma once

#include <algorithm>
#include <array>
#include <bit>

#include "libgccl/cost/bunch.hpp"

namespace gccl {

// The part distance over which a round sends, and how many parts.
struct Span {
  Rank distance, length;
};

// A round's message leaves when the one before it has left and what it carries is there: parts that an earlier round
// has not touched wait for nobody (never so for a power of two).
class Rounds {
 public:
  // With several channels, of the last one of them. Where parts lie from the last place to the first, messages are two.
  // `inside`: they all stay on one node.
  Rounds(Rank ranks, Rank channels, const CostModel& m, bool reduces, bool inside)
      : gap_ns_(double(channels) * m.exchange_gap_ns()),
        reduces_(reduces),
        each_waits_(std::has_single_bit(ranks)),
        bunch_(channels, m.exchange_gap_ns() * (each_waits_ ? 1 : 2), inside ? kMeetInside : kMeet),
        left_(bunch_.begin()) {}

  // The same once all of others have ended, by the same channels, which are as far apart as those have left them.
  Rounds(Rank ranks, Rank channels, const CostModel& m, bool reduces, bool inside, const Rounds& before)
      : Rounds(ranks, channels, m, reduces, inside) {
    bunch_ = before.bunch_;
    left_ = before.end_;
  }

  // The next round, over that hop, of so many bytes for each channel; `combining` is what it takes to add what one of
  // them brings. When that is done.
  Cost add(Span s, double bytes, const Hop& hop, Cost combining = 0) {
    Cost begin = each_waits_ ? std::max(left_, end_) : left_;
    for (std::size_t i = 0; i < count_ && !each_waits_; ++i) {
      const Span &touched = reduces_ ? done_[i].span : s, &other = reduces_ ? s : done_[i].span;
      if (other.distance < touched.length) begin = std::max(begin, done_[i].end);
    }
    const Cost arrived = bunch_.pass(begin, hop, bytes);
    left_ = std::max(begin + gap_ns_, arrived - hop.alpha_ns);
    const Cost end = bunch_.combine(arrived, combining);
    end_ = std::max(end_, end);
    done_[count_++] = {s, end};
    return end;
  }
  // When all rounds have ended.
  Cost end() const { return end_; }
  const Bunch& bunch() const { return bunch_; }

 private:
  // Inside a node messages to near ranks and to far ones leave by the same port, others mostly by different ones.
  // Fitted to the flow engine's times of rabenseifner's all-reduce in 4, 8 and 32 channels of one chunk, 2.9 and 210
  // MB: on pcie-box (4 and 8 ranks) and l40s-box (8) off by 9 % in the mean without it, 2 % with it; on six clusters of
  // several nodes 6 and 4 %.
  static constexpr double kMeetInside = 0.7, kMeet = 0.3;
  struct Done {
    Span span;
    Cost end;
  };
  Cost gap_ns_;
  bool reduces_, each_waits_;
  Bunch bunch_;
  std::array<Done, 32> done_;
  std::size_t count_ = 0;
  Cost left_, end_ = 0;
};

}  // namespace gccl
