// How long a call takes, by an algorithm's closed form, in however many chunks and channels.
#pragma once

#include <array>
#include <cmath>
#include <optional>

#include "libgccl/cost/slicing.hpp"
#include "libgccl/select/tuning.hpp"

namespace gccl {

// The predictions of one call by one algorithm on one machine. What they have in common is worked out once: the
// planner asks for sixty slicings of a long call, and most of what they cost depends on the length of a chunk alone.
// All that it is made of outlives it.
class Prediction {
 public:
  // `whole`: what as_one_chunk() gave before.
  Prediction(const Algorithm& algorithm, const Call& call, const View& view, const CostModel& model,
             const Tuning& tuning, std::optional<Cost> whole = {});
  Prediction(const Prediction&) = delete;
  Prediction& operator=(const Prediction&) = delete;

  // Nanoseconds for the whole call; NaN where the algorithm has no closed form. Of a slicing that takes more than
  // `most_ns` it may be any time above that.
  Cost of(const Slicing& slicing, Cost most_ns = INFINITY);
  // What the closed form says of the call in one chunk. Needs one.
  Cost as_one_chunk();
  // Whether every slicing of at most so many chunks in so many channels surely takes more than so long: by latencies,
  // which no chunk escapes, and what chunks pass through one after the other takes for all the call's bytes. Needs a
  // closed form.
  bool always_beyond(Cost ns, const Slicing& finest);
  // Whether that slicing, and any of more chunks in as many channels, surely takes more than so long: by latencies, and
  // by how many messages are to be started.
  bool too_fine(Cost ns, const Slicing& slicing);
  // Whether that slicing surely takes more than so long, by what of it is soon worked out.
  bool beyond(Cost ns, const Slicing& slicing);

 private:
  // What the chunks of one length take, each alone.
  struct Chunk {
    Count shares;
    Cost one;
    Cost channel;  // where nothing but the channel's own rate takes time
    bool by_parts;
    Cost busiest;   // of the machine's parts
    Cost handling;  // the same of its messages alone
  };

  bool whole(const Slicing& slicing) const;
  double in_turn(const Slicing& slicing) const;
  Cost messages_start(const Slicing& slicing);
  Cost work(const Slicing& slicing, Cost most_ns);
  Cost interval_between(const Chunk& chunk, const Slicing& slicing, Cost serial);
  Cost waiting_of_each(Count shares);
  Cost drift_apart(const Chunk& chunk, const Slicing& slicing, Cost serial, Cost most_ns);
  Cost with_slices(Cost whole_blocks, const Slicing& slicing) const;
  Cost hidden_latency(const Chunk& chunk, double channels, Cost serial);
  Cost hidden_in_phase(double channels);
  Cost cost_of(const Call& chunk, const View& view, const CostModel& model) const;
  Chunk chunk_of(const Call& chunk, const View& view);
  void add_parts(Chunk& chunk, const Call& call) const;
  Chunk& known(Count shares);
  Call chunk_call(Count shares) const;
  Cost latency();
  Cost memory();
  Cost carried(const Slicing& slicing);
  const CostModel& channel_alone();

  const Algorithm& algorithm_;
  const Call& call_;
  std::optional<View> as_taken_;  // where trees take ranks otherwise than the view says
  const View& view_;
  const CostModel& model_;
  const Tuning& tuning_;
  bool by_switch_;  // it takes what the switch's links carry
  bool limited_;    // a channel is no faster than its protocol lets it be
  bool passed_on_;
  std::optional<Cost> whole_, latency_, memory_, carried_;
  std::optional<CostModel> channel_;
  std::array<Chunk, 32> chunks_;  // the lengths asked for so far
  std::size_t lengths_ = 0;
};

}  // namespace gccl
