#include "libgccl/select/prediction.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "libgccl/algorithms/parts/root_order.hpp"
#include "libgccl/cost/pipelined.hpp"
#include "libgccl/cost/scaled.hpp"
#include "libgccl/select/plan.hpp"

namespace gccl {
namespace {

// How much of the rest of a chunk's time is not hidden behind the busiest thing. Channels begin in step, all in one
// phase of an algorithm at a time, and drift apart chunk by chunk; two of them do not. Staggered ones are apart from
// the start. Both fitted to the model engine's times of the hierarchical all-reduce (the first without stagger) on 64
// ranks of dgx-h100-superpod-2048 (1 GiB, 2 to 64 channels of 1 to 64 chunks). Channels of one chunk are apart, too, as
// their messages pass ports one after the other: rabenseifner, hierarchical and swing (4 and 64 MiB, LL128; 32 ranks of
// that cluster and of alps-gh200-2048, 16 of polaris) take on the flow engine with 4, 8 and 16 of them 0.88, 0.84 and
// 0.83 of the time of one in the mean, and by this 0.90, 0.86 and 0.85; apart by 9 % in the median, 31 % at worst. Not
// so where there is one phase only.
double in_step(Count chunks_each, Count channels, bool staggered, bool one_phase) {
  if (channels > 1 && staggered) return 0.05 + 0.4 / double(channels);
  if (chunks_each == 1 && channels > 2 && !one_phase) return std::max(0.35, 2 / double(channels));
  return 1 / (1 + double(chunks_each - 1) * (double(channels) - std::min(2.0, double(channels))) / 24);
}

// Of channels of one chunk whose rounds keep ranks busy with messages: how much of the latencies passes with nothing to
// handle. By the flow engine's times of rabenseifner's reduce, 16 channels, 8 to 48 ranks of four shipped clusters.
constexpr double kLatencyBetween = 0.35;

// Of channels in step that go through phases, whose messages in one phase do not wait for each other: how much of each
// further chunk's latencies passes with nothing on its way. By the flow engine's times of the hierarchical all-to-all
// in 2 channels of 2 and more chunks, 12 to 64 ranks of nine shipped clusters: off by 12 % in the mean without it, 10 %
// with it. Where they wait for each other what a chunk's bytes take alone is more than its share of what all take, so
// that less of the latencies is left: of the hierarchical all-gather's.
constexpr double kLatencyInPhases = 0.5, kLatencyInRounds = 0.3;

// Chunks of one call may be short of an element each, and forms round parts of them.
constexpr double kRounding = 1 - 1e-3;

const Algorithm& schedule_of(const Algorithm& a, const View& view) {
  const Algorithm* const other = a.same_as ? a.same_as(view) : nullptr;
  return other ? *other : a;
}

// Where routes are not known forms ask whether the ranks that trees take follow each other node by node.
std::optional<View> as_taken(const Call& call, const View& v) {
  const bool trees = has_root(call.kind) && !counts_blocks(call.kind);
  if (!trees || v.by_node || !v.uniform() || !RootOrder::by_node(v)) return std::nullopt;
  View taken = v;
  taken.by_node = true;
  return taken;
}

}  // namespace

Prediction::Prediction(const Algorithm& algorithm, const Call& call, const View& view, const CostModel& model,
                       const Tuning& tuning, std::optional<Cost> whole)
    : algorithm_(schedule_of(algorithm, view)),
      call_(call),
      as_taken_(as_taken(call, view)),
      view_(as_taken_ ? *as_taken_ : view),
      model_(model),
      tuning_(tuning),
      by_switch_(algorithm.in_switch && model.node_switch),
      limited_(model.protocol.channel_GBps > 0 && view.all.size > 1 && call.count > 1 && !by_switch_),
      passed_on_(algorithm.interval && (!algorithm.in_switch || by_switch_)),
      whole_(whole) {}

Cost Prediction::of(const Slicing& slicing, Cost most_ns) {
  if (!algorithm_.cost) return NAN;
  const Cost operation_ns = model_.protocol.operation_ns;
  if (without_elements(call_)) return operation_ns;
  return operation_ns + std::max({work(slicing, most_ns - operation_ns), messages_start(slicing), carried(slicing)});
}

Cost Prediction::as_one_chunk() {
  if (!whole_) whole_ = algorithm_.cost(call_, view_, model_);
  return *whole_;
}

// Of each share some rank, whose way is the longest, starts a message at least, and starts them one after the other.
Cost Prediction::messages_start(const Slicing& slicing) {
  if (whole(slicing)) return 0;
  return latency() + double(std::min(slicing.shares, call_.count) - 1) * model_.overhead_ns;
}

// What the call's bytes take at least, on the links inside nodes or on those between them, of which channels get no
// more. Where parts are known the busiest of them says so.
Cost Prediction::carried(const Slicing& slicing) {
  if (whole(slicing) || model_.parts || passed_on_ || algorithm_.channels) return 0;
  const auto of = [&](const CostScale& by) { return algorithm_.cost(call_, view_, scaled(model_, by)); };
  if (!carried_)
    carried_ =
        std::max(of({.latency = 0, .reduction = 0, .between = 0}), of({.latency = 0, .reduction = 0, .inside = 0}));
  return *carried_;
}

// Of all channels a card copies and combines one thing at a time.
Cost Prediction::memory() {
  if (!memory_) memory_ = model_.parts ? algorithm_.cost(call_, view_, model_.parts->at(CostModel::kMemoryPart)) : 0;
  return *memory_;
}

// Whether it is predicted as one chunk.
bool Prediction::whole(const Slicing& slicing) const {
  return slicing.shares == 1 || call_.count <= 1 || view_.all.size == 1 || !tuning_.chunks_overlap ||
         has_counts(call_.kind);
}

// A machine where a channel's own rate is all that takes time.
const CostModel& Prediction::channel_alone() {
  if (!channel_) channel_ = CostModel::bare(0, 1 / model_.protocol.channel_GBps, model_.element_bytes);
  return *channel_;
}

// A call without bytes: its latencies. What gathers or scatters a vector's parts has no messages for those without an
// element, so vectors with a root are continued to no bytes from two in which every part has some.
Cost Prediction::latency() {
  if (latency_) return *latency_;
  const auto of = [&](Count count) {
    Call c = call_;
    c.count = count;
    return algorithm_.cost(c, view_, model_);
  };
  const Count ranks = view_.all.size;
  latency_ = of(1);
  if (has_root(call_.kind) && !counts_blocks(call_.kind) && call_.count >= 2 * ranks)
    latency_ = std::max(*latency_, 2 * of(ranks) - of(2 * ranks));
  return *latency_;
}

Call Prediction::chunk_call(Count shares) const {
  Call chunk = call_;
  chunk.count = std::max<Count>(1, call_.count / shares);
  return chunk;
}

// With what its slices cost to lie side by side. Of several channels at once a rank copies and combines some while
// others' messages are on their way.
Cost Prediction::cost_of(const Call& chunk, const View& view, const CostModel& model) const {
  const Cost cost = algorithm_.cost(chunk, view, model);
  if (!algorithm_.packs || chunk.count >= call_.count) return cost;
  const Cost copies = double(view.channels) * model.copy(view.all.size * model.bytes(double(chunk.count)));
  if (view.channels == 1 || !model.parts) return cost + copies;
  return std::max(cost, algorithm_.cost(chunk, view, model.parts->at(CostModel::kMemoryPart)) + copies);
}

Prediction::Chunk Prediction::chunk_of(const Call& chunk, const View& view) {
  Chunk c{};
  c.one = chunk.count == call_.count && view.channels == view_.channels ? as_one_chunk() : cost_of(chunk, view, model_);
  if (limited_) c.channel = algorithm_.cost(chunk, view_, channel_alone());
  return c;
}

void Prediction::add_parts(Chunk& c, const Call& chunk) const {
  c.by_parts = true;
  if (!model_.parts) return;
  c.handling = cost_of(chunk, view_, model_.parts->at(CostModel::kHandlingPart));
  for (const CostModel& part : std::span(*model_.parts).subspan(CostModel::kMemoryPart))
    c.busiest = std::max(c.busiest, cost_of(chunk, view_, part));
}

Prediction::Chunk& Prediction::known(Count shares) {
  for (std::size_t i = 0; i < lengths_; ++i)
    if (chunks_[i].shares == shares) return chunks_[i];
  if (lengths_ == chunks_.size()) lengths_ = 0;
  Chunk& c = chunks_[lengths_++];
  c = chunk_of(chunk_call(shares), view_);
  c.shares = shares;
  return c;
}

// From the end of one chunk to the end of the next where several channels are on their way. `serial`: what a chunk's
// bytes take alone.
Cost Prediction::interval_between(const Chunk& chunk, const Slicing& s, Cost serial) {
  if (!model_.parts) return serial;
  const Cost between = std::max({0.0, serial - chunk.busiest, waiting_of_each(s.shares)});
  return chunk.busiest + between * in_step((s.shares + s.lanes - 1) / s.lanes, s.lanes,
                                           algorithm_.staggers(s.shares, s.lanes), algorithm_.one_phase);
}

// On nodes of different sizes ranks that meet each other wait at the same ones in every chunk. How long for each
// chunk's share, where latencies hide nothing of it. Fitted to the flow engine's pairwise all-to-all and reduce-scatter
// of 64 MiB in 64 chunks of 2 and 4 channels, 7 to 30 ranks of six shipped clusters.
Cost Prediction::waiting_of_each(Count shares) {
  constexpr double kInEveryChunk = 0.7;
  if (!algorithm_.at_once || algorithm_.rounds || view_.uniform()) return 0;
  Chunk& all = known(1);
  if (!all.by_parts) add_parts(all, chunk_call(1));
  return kInEveryChunk * std::max(0.0, all.one - latency() - all.busiest) / double(shares);
}

// The end of channels that each begin in step and have several chunks one after the other: of the first ones at once,
// and then of what the busiest link carries. Two channels are not enough to keep it busy. Latencies in which it is idle
// become fewer as channels drift apart; where they are staggered, they are apart from the start, and their first chunks
// are no bunch.
//
// Fitted to the flow engine's times of rabenseifner's all-reduce and reduce and recursive halving, 2 to 16 channels of
// 2 to 8 chunks, 256 KiB to 64 MiB, 8 to 64 ranks of six shipped clusters: off by 5 % in the mean. Off powers of two it
// would be too fast.
Cost Prediction::drift_apart(const Chunk& chunk, const Slicing& s, Cost serial, Cost most_ns) {
  const double lanes = double(s.lanes), each = std::ceil(double(s.shares) / lanes);
  const bool staggered = algorithm_.staggers(s.shares, s.lanes);
  if (const Cost least = double(s.shares) * chunk.busiest; staggered && least * kRounding > most_ns) return INFINITY;
  const Cost at_once = chunk_of(chunk_call(s.shares), with_channels(view_, s.lanes)).one,
             carried = lanes * chunk.busiest;
  const Cost first = staggered ? carried + std::max(0.3, 1.6 / lanes) * std::max(0.0, at_once - carried) : at_once;
  const double idle = staggered ? 0 : std::max(0.0, 1 - lanes / 4);
  const double exposed = (staggered ? 0.6 : 0.8) / (1 + (each - 1) * (lanes - 2) / 30);
  return first + (double(s.shares) - lanes) * (chunk.busiest + idle * std::max(0.0, serial - chunk.busiest)) +
         exposed * (each - 1) * latency();
}

// What of the latencies of channels of one chunk passes while other channels' messages do. Rounds would all wait at
// once in step, of which a chunk has as many as messages to handle one after the other; they take alike.
Cost Prediction::hidden_latency(const Chunk& chunk, double channels, Cost serial) {
  if (!algorithm_.rounds) return 0;
  const Cost gap = model_.exchange_gap_ns();
  const double steps = gap > 0 ? chunk.handling / gap : 0;
  if (steps < 2) return 0;
  const Cost each = latency() / steps;
  return (steps - 1) * each - idle_in_step(channels, steps, each, gap, serial / steps);
}

// The same of channels that are all in one phase: they drift apart by what their bytes take, until some send while
// others wait for what a hop between nodes takes longer than one inside. Fitted to the flow engine's hierarchical
// all-gather in 2 to 32 channels of one chunk, 64 KiB to 256 MiB, 12 to 64 ranks of seven shipped clusters.
Cost Prediction::hidden_in_phase(double channels) {
  const Cost more = model_.widest(view_).alpha_ns - (view_.nodes > 1 ? model_.node.alpha_ns : 0);
  if (more <= 0) return 0;
  const Cost bytes = std::max(0.0, known(1).one - latency());
  return latency() * (1 - 1 / (1 + 0.01 * (channels - 2) * bytes / more));
}

// What whole blocks would take, and slices of them that are messages of their own, one share's of which no other hides
// unless the interval knows of them.
Cost Prediction::with_slices(Cost whole_blocks, const Slicing& s) const {
  if (!algorithm_.slices) return whole_blocks;
  const auto slices = [&](const Slicing& of) { return algorithm_.slices(view_, model_, of); };
  return std::max(whole_blocks + (passed_on_ ? 0 : slices({.window = s.window})), slices(s));
}

// Without what the protocol takes for each operation.
//
// Chunks follow each other at an algorithm's interval, once the first is through. Where it gives none, the next chunk
// of a channel waits for the one before; channels wait for their latencies at the same time, and share what bytes cost,
// unless they have orders, and so links, of their own. No channel is faster than its protocol lets it be.
// No form describes that long chunks of several channels pass a port in turns, so that all of them come late.
Cost Prediction::work(const Slicing& slicing, Cost most_ns) {
  if (whole(slicing)) {
    const Cost one = as_one_chunk();
    if (!limited_) return one;
    return std::max(one, latency() + algorithm_.cost(call_, view_, channel_alone()));
  }
  const Count shares = std::min(slicing.shares, call_.count), lanes = std::min(slicing.lanes, shares);
  const Count each = (shares + lanes - 1) / lanes;
  const bool at_once = algorithm_.at_once && each == 1 && lanes > 1;
  Chunk chunk{};
  if (algorithm_.channels || at_once) {
    chunk = chunk_of(chunk_call(slicing.shares), with_channels(view_, lanes));
  } else {
    Chunk& before = known(slicing.shares);
    if (!passed_on_ && !before.by_parts) add_parts(before, chunk_call(slicing.shares));
    chunk = before;
  }
  if (at_once)
    return with_slices(std::max(limited_ ? std::max(chunk.one, latency() + chunk.channel) : chunk.one, memory()),
                       {shares, lanes, slicing.window});
  const bool takes_turns = !passed_on_ && !algorithm_.channels;
  Cost one = chunk.one;
  const Cost serial = takes_turns ? std::max(0.0, one - latency()) : 0;
  if (limited_) one = std::max(one, latency() + chunk.channel);
  if (algorithm_.channels && !passed_on_) {
    if (lanes == 1) return double(each) * one;
    const Cost first =
        algorithm_.in_step ? algorithm_.in_step(chunk_call(slicing.shares), with_channels(view_, lanes), model_) : 0;
    return std::max(double(each - 1) * one + std::max(one, first), memory());
  }
  Cost turns = one, interval = 0, handling = 0, hidden = 0, exposed = 0;
  std::optional<Cost> drifting;
  if (passed_on_) {
    const Call part = chunk_call(slicing.shares);
    const View view = algorithm_.channels ? with_channels(view_, lanes) : view_;
    interval = algorithm_.interval(part, view, model_, slicing);
    if (tuning_.rates.empty() && one + double(shares - 1) * std::min(interval, one) > most_ns) return INFINITY;
    if (limited_)  // a channel's chunks after its first one
      interval = std::max(interval, double(each - 1) / double(shares - 1) *
                                        algorithm_.interval(part, view_, channel_alone(), {each, 1, slicing.window}));
  } else {
    interval = interval_between(chunk, {shares, lanes}, serial);
    turns = double(each) * one + double(lanes - 1) * model_.exchange_gap_ns();
    double messages = double(shares);                       // times those of a share
    if (lanes > 1 && algorithm_.staggers(shares, lanes)) {  // a share more in all lanes but one
      turns += latency();
      messages += double(lanes - 1);
    }
    // All ranks do alike, and none is done before it has handled all its messages.
    if (model_.parts) handling = messages * chunk.handling;
    if (each == 1 && lanes > 1) {
      hidden = hidden_latency(chunk, double(lanes), serial);
      if (algorithm_.rounds) handling += kLatencyBetween * latency();
    }
    if (!algorithm_.at_once && lanes > 1 && !algorithm_.staggers(shares, lanes))
      exposed = (algorithm_.rounds ? kLatencyInRounds : kLatencyInPhases) * double(each - 1) * latency() *
                in_step(each, lanes, false, algorithm_.one_phase);
    if (algorithm_.at_once && algorithm_.rounds && lanes > 1 && model_.parts && std::has_single_bit(view_.all.size))
      drifting = drift_apart(chunk, {shares, lanes}, serial, most_ns);
  }
  for (const Tuning::Rate& r : tuning_.rates)
    if (r.algorithm == &algorithm_ || (r.algorithm->kind == algorithm_.kind && r.algorithm->name == algorithm_.name))
      interval /= r.fraction;
  Cost in_turn = drifting ? *drifting : one + double(shares - 1) * std::min(interval, one) - hidden + exposed;
  // Of channels in one and the same phase, which are as one chunk of all bytes but for latencies.
  if (takes_turns && each == 1 && lanes > 1 && algorithm_.one_phase)
    in_turn = std::max(in_turn, known(1).one - hidden_in_phase(double(lanes)));
  return with_slices(std::max({turns, handling, in_turn}), {shares, lanes, slicing.window});
}

// Forms are sums and maxima of what a message takes and what its bytes take, so that chunks together take no less than
// one chunk of all bytes would. That one itself may take less: than a call of one element, which PAT carries out
// otherwise, and than all handling, as a root that sends only does not receive.
bool Prediction::always_beyond(Cost ns, const Slicing& finest) {
  if (call_.count == 0) return false;  // it has no latencies either
  ns -= model_.protocol.operation_ns;
  const auto above = [ns](Cost all) { return all * kRounding > ns; };
  if (!above(as_one_chunk())) return false;
  if (latency() > ns) return true;
  if (algorithm_.channels || !tuning_.rates.empty()) return false;
  if (!passed_on_)
    return model_.parts && std::ranges::any_of(*model_.parts, [&](const CostModel& part) {
             return above(algorithm_.cost(call_, view_, part));
           });
  for (const Count lanes : {Count(1), finest.lanes})  // some forms gain by many channels, others by few
    if (!above(algorithm_.interval(call_, view_, model_, {finest.shares, lanes, finest.window}))) return false;
  return true;
}

// How many chunks follow each other, of which none begins before the one before has ended.
double Prediction::in_turn(const Slicing& slicing) const {
  const Count shares = std::min(slicing.shares, call_.count), lanes = std::min(slicing.lanes, shares);
  return passed_on_ ? 1 : double((shares + lanes - 1) / lanes);
}

bool Prediction::too_fine(Cost ns, const Slicing& slicing) {
  if (whole(slicing)) return false;
  return in_turn(slicing) * latency() * kRounding > ns || model_.protocol.operation_ns + messages_start(slicing) > ns;
}

bool Prediction::beyond(Cost ns, const Slicing& slicing) {
  if (slicing.shares == 1 || !tuning_.chunks_overlap || algorithm_.channels) return false;
  return in_turn(slicing) * known(slicing.shares).one * kRounding > ns;
}

Cost predicted(const Algorithm& algorithm, const Call& call, const View& view, const CostModel& model,
               const Slicing& slicing, const Tuning& tuning) {
  return Prediction(algorithm, call, view, model, tuning).of(slicing);
}

}  // namespace gccl
