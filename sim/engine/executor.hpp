// Plays a workload's schedules on a network in virtual time: the Backend of both simulation engines.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <unordered_map>
#include <vector>

#include "libgccl/base/prefetch.hpp"
#include "libgccl/schedule/lane.hpp"
#include "sim/engine/card_costs.hpp"
#include "sim/engine/group_steps.hpp"
#include "sim/engine/items.hpp"
#include "sim/engine/link_sets.hpp"
#include "sim/engine/network.hpp"
#include "sim/engine/payload.hpp"
#include "sim/engine/slowness.hpp"
#include "sim/engine/stream_places.hpp"
#include "sim/engine/tracer.hpp"
#include "sim/engine/workload.hpp"

namespace gccl::sim {

// What costs time (LogGP, Alexandrov et al., SPAA 1995, with g = o, without a rendezvous' round trip; the sums of an
// arrived message begin once it is there as a whole):
// - a send keeps its card busy for overhead_ns before the message leaves; a card starts one message at a time;
// - an arrived message keeps its receiving card busy for receive_overhead_ns, one message at a time (the network's
// part);
// - a protocol delays a rank's first message of an operation and every message, makes messages longer on the links, and
//   lets a channel of a rank send no faster than channel_GBps;
// - the message takes what the network says, and is complete at both ends when its last byte has arrived. Above
//   eager_bytes it leaves only once its receive is posted; of those that may leave at one instant, first the one that
//   was sent first;
// - a step to a group that its switch carries out is a message of each root over the links of all members (LinkSets). A
//   multicast leaves when its root comes to the step, a reduction once all members have; the step ends for all of them
//   when the last message is there. The switch sums: no card's unit does, and each card handles its own message alone;
// - combining and copying keep the card's one reduction unit busy for bytes / combine_GBps and bytes / copy_GBps.
// Everything due at one instant is handled in the order of event ids, which do not depend on the order in which the
// network reports it: same input, same nanoseconds.
template <Network N>
class Executor {
 public:
  Executor(const Workload& workload, N& network)
      : w_(workload),
        network_(network),
        link_sets_(*workload.cluster),
        tracer_(workload),
        places_(places_of(workload)),
        cards_(states_of(workload)),
        operations_(workload.operations.size()),
        streams_(workload) {
    if (w_.payload) payload_ = std::make_unique<Payload>(w_);
    if (w_.faults) slowness_ = std::make_unique<Slowness>(workload.cards.size());
    eager_bytes_ = w_.cluster->eager_bytes();
    std::uint32_t lanes = 0;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      const SimulatedOperation& o = w_.operations[i];
      operations_[i].first_lane = lanes;
      if (o.protocol) operations_[i].protocol = *o.protocol;
      operations_[i].unfinished.assign(o.ranks(), 0);
      lanes += std::uint32_t(o.ranks() * o.lanes);
    }
    lanes_.resize(lanes);
  }

  Outcome run() {
    const auto wall = std::chrono::steady_clock::now();
    enter_all();
    std::vector<EventId> due;
    while (network_.next(due)) {
      if (!std::is_sorted(due.begin(), due.end())) std::sort(due.begin(), due.end());
      for (std::size_t k = 0; k < due.size(); ++k) {
        fetch_ahead(due, k);
        handle(due[k]);
      }
      due.clear();
      leave_in_order();
    }
    if (ranks_left_ > 0 && !network_.stalled()) fail_stuck();

    Outcome out;
    out.time_ns = network_.now();
    for (const OperationState& o : operations_) {
      out.begin_ns.push_back(o.begin);
      out.end_ns.push_back(o.end);
    }
    out.messages = messages_;
    out.bytes = bytes_;
    out.link_bytes = network_.link_bytes();
    if (slowness_) out.slowest = slowness_->slowest();
    if (payload_) out.wrong = payload_->wrong(), out.first_wrong = payload_->first_wrong();
    tracer_.finish(out);
    out.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count();
    return out;
  }

  // Backend.
  bool start(Lane<Executor>& lane, Token token, const Step& step) {
    Worker& w = static_cast<Worker&>(lane);
    if (tracer_.on()) tracer_.begin(w.id(), token, network_.now());
    switch (step.op) {
      case Op::send: return start_send(w, token, step), false;
      case Op::recv:
      case Op::recv_reduce: return start_receive(w, token, step);
      case Op::copy: return work(w, token, step, cards_[w.world].copy_ns_per_byte);
      case Op::reduce: return work(w, token, step, combine_ns_per_byte(w));
      case Op::send_all:
      case Op::recv_reduce_all: return meet(w, token, step), false;
    }
    return false;
  }

  bool combine(Lane<Executor>& lane, Token token, const Step& step) {
    Worker& w = static_cast<Worker&>(lane);
    return work(w, token, step, combine_ns_per_byte(w));
  }

 private:
  // One lane of one rank of one operation.
  struct alignas(64) Worker : Lane<Executor> {
    Worker(Executor& e, std::uint32_t id, Schedule s, const SimulatedOperation& o, std::uint32_t op, Rank r, Rank w,
           std::uint32_t c)
        : Lane<Executor>(e, id, std::move(s), o.window, std::min(o.window, 2u)),
          operation(op),
          rank(r),
          world(w),
          channel(c),
          lanes(std::uint32_t(o.lanes)),
          element_bytes(o.element_bytes),
          card(e.w_.cards[w]),
          members(o.members.empty() ? nullptr : o.members.data()) {}
    // The lane that a peer's messages of this one come from and go to.
    std::uint32_t lane_of(Rank peer) const { return this->id() + (peer - rank) * lanes; }
    Rank world_of(Rank peer) const { return members ? members[peer] : peer; }
    std::uint32_t operation;
    Rank rank, world;
    std::uint32_t channel;               // which lane of the rank this is
    std::uint32_t lanes, element_bytes;  // of the operation
    Card card;
    const Rank* members;            // of the operation; null: all ranks
    std::uint32_t met[2] = {0, 0};  // steps to the node and to the rail so far
    std::uint32_t held = 0;         // sends that have not left: later ones must not overtake them within an instant
    Nanos sends_free = 0;           // when it can send its next message, by its protocol's channel_GBps
  };
  struct OperationState {
    std::uint32_t first_lane = 0;
    std::vector<std::uint32_t> unfinished;  // lanes per rank
    ProtocolCosts protocol;
    Nanos begin = -1, end = 0;
  };
  static constexpr std::uint8_t kToGroup = 0xff;  // the sender's token of a message in a step to a group
  static constexpr EventId kMessage = 0, kWork = 1u << 30, kLanded = 2u << 30, kEnter = 3u << 30, kKind = 3u << 30;

  // What due[k + 1] and those after it will touch, in the order in which one thing leads to the next: hundreds of lanes
  // may have their turn at one instant, and they lie anywhere in megabytes.
  [[gnu::always_inline]] void fetch_ahead(const std::vector<EventId>& due, std::size_t k) const {
    const auto item = [&](std::size_t ahead) { return items_.data() + (due[k + ahead] & ~kKind); };
    const auto lanes = [&](std::size_t ahead, auto fetch) __attribute__((always_inline)) {
      if (k + ahead >= due.size() || (due[k + ahead] & kKind) == kEnter) return;
      const Item& i = *item(ahead);
      if (i.sender_token == kToGroup) return;
      fetch(i.sender, i.sender_token);
      if (i.met) fetch(i.receiver, i.receiver_token);
    };
    if (k + 32 < due.size()) prefetch(item(32));
    lanes(
        24, [&](std::uint32_t lane, Token) __attribute__((always_inline)) {
          prefetch(&lanes_[lane]);
          items_.fetch(lane);
        });
    lanes(
        16, [&](std::uint32_t lane, Token)
                __attribute__((always_inline)) { prefetch(lanes_[lane].get(), sizeof(Worker)); });
    lanes(
        8, [&](std::uint32_t lane, Token token) __attribute__((always_inline)) {
          if (lanes_[lane]) lanes_[lane]->fetch(token);
        });
    lanes(
        4, [&](std::uint32_t lane, Token token) __attribute__((always_inline)) {
          if (!lanes_[lane] || !lanes_[lane]->moves_on(token)) return;
          const Worker& w = *lanes_[lane];
          prefetch(&cards_[w.world]);
          if (const Step* s = w.blocked(); s && s->op == Op::send) {
            items_.fetch(w.lane_of(s->peer));
            prefetch(&places_[w.world_of(s->peer)]);
          }
        });
  }

  void handle(EventId id) {
    const std::uint32_t i = id & ~kKind;
    switch (id & kKind) {
      case kMessage: return deliver(i);
      case kEnter: return enter(i / std::uint32_t(cards_.size()), i % std::uint32_t(cards_.size()));
      case kWork: {
        const std::uint32_t lane = items_[i].sender;
        const Token token = items_[i].sender_token;
        items_.release(i);
        Worker& w = *lanes_[lane];
        carry_out(w, token, w.step(token));
        return finish(w, token);
      }
      default: return land(i);
    }
  }

  // --- messages (executor_messages.hpp)

  void start_send(Worker& w, Token token, const Step& step);
  bool start_receive(Worker& w, Token token, const Step& step);
  Nanos handled(CardState& c) const;
  void leave(std::uint32_t i);
  void note_left(std::uint32_t i);
  void leave_in_order();
  void deliver(std::uint32_t i);
  void land(std::uint32_t i);
  void accept(Worker& w, Token token, std::uint32_t i);

  // --- steps to a group (executor_groups.hpp)

  void meet(Worker& w, Token token, const Step& step);
  std::uint32_t of_group(std::uint32_t meeting);
  void send_to_group(std::uint32_t meeting, Rank root, Count count);
  void deliver_to_group(std::uint32_t i);
  void carry_out(const std::vector<GroupSteps::Member>& members);
  std::vector<Card> cards_of(const SimulatedOperation& o, const Group& g) const;
  bool behind_switch(const SimulatedOperation& o, const Group& g) const;

  // --- local work

  bool work(Worker& w, Token token, const Step& step, double ns_per_byte) {
    const Count bytes = step.to.count * w.element_bytes;
    const Nanos cost = duration(double(bytes) * ns_per_byte);
    if (cost == 0) {
      carry_out(w, token, step);
      if (tracer_.on()) trace(w, token);
      return true;
    }
    CardState& c = cards_[w.world];
    c.unit_free = std::max(network_.now(), c.unit_free) + cost;
    if (c.unit_free > kTimeMax) throw TimeOverflow();
    const std::uint32_t i = items_.acquire();
    items_[i].sender = w.id();
    items_[i].sender_token = std::uint8_t(token);
    network_.wake(i | kWork, c.unit_free);
    return false;
  }

  void carry_out(Worker& w, Token token, const Step& step) {
    if (!payload_) return;
    if (step.op == Op::recv_reduce) {
      const auto staged = staged_.find(std::uint64_t(w.id()) << 8 | token);
      payload_->combine(w.operation, w.rank, w.channel, step.from, step.to, staged->second);
      staged_.erase(staged);
    } else if (step.op == Op::copy) {
      payload_->write(w.operation, w.rank, w.channel, step.to,
                      payload_->read(w.operation, w.rank, w.channel, step.from));
    } else {
      payload_->combine(w.operation, w.rank, w.channel, step.to, step.to,
                        payload_->read(w.operation, w.rank, w.channel, step.from));
    }
  }

  // --- lanes, operations, streams

  void finish(Worker& w, Token token) {
    if (tracer_.on()) trace(w, token);
    w.complete(token);
    settle(w);
  }

  void trace(const Worker& w, Token token) {
    const Step& s = w.step(token);
    const SimulatedOperation& o = w_.operations[w.operation];
    const Rank peer = s.local() || s.to_group() ? w.world : o.world(s.peer);
    tracer_.end(w.id(), token,
                {w.world, w.operation, w.channel, s.op, peer, s.count() * o.element_bytes, 0, network_.now()});
  }

  void settle(Worker& w) {
    if (!w.done()) return;
    const std::uint32_t operation = w.operation;
    const Rank rank = w.rank, world = w.world;
    lanes_[w.id()].reset();
    if (--operations_[operation].unfinished[rank] > 0) return;
    end(operation, rank);
    const std::uint32_t stream = streams_.of(operation);
    streams_.advance(stream, world);
    enter(stream, world);
  }

  void end(std::uint32_t operation, Rank rank) {
    operations_[operation].end = network_.now();
    if (payload_) payload_->leave(operation, rank);
  }

  // The rank starts its next operation in the stream; stages without it, and empty schedules, pass at once.
  void enter(std::uint32_t stream, Rank world) {
    for (; const auto part = streams_.part(stream, world); streams_.advance(stream, world)) {
      if (launch(stream, part->operation, world) || begin(part->operation, part->rank, world)) return;
      end(part->operation, part->rank);
    }
    --ranks_left_;
  }

  double combine_ns_per_byte(const Worker& w) const {
    return cards_[w.world].combine(operations_[w.operation].protocol);
  }

  // True when the operation's protocol makes the rank wait before its first message: it enters again then.
  bool launch(std::uint32_t stream, std::uint32_t operation, Rank world) {
    OperationState& state = operations_[operation];
    if (state.protocol.operation == 0) return false;
    const std::size_t place = stream * cards_.size() + world;
    if (launching_.empty()) launching_.resize(w_.streams.size() * cards_.size());
    if ((launching_[place] = !launching_[place])) {
      if (state.begin < 0) state.begin = network_.now();
      const Nanos at = network_.now() + state.protocol.operation;
      if (at > kTimeMax) throw TimeOverflow();
      network_.wake(EventId(place) | kEnter, at);
    }
    return launching_[place];
  }

  // False when the rank has nothing to do in the operation.
  bool begin(std::uint32_t operation, Rank rank, Rank world) {
    const SimulatedOperation& o = w_.operations[operation];
    OperationState& state = operations_[operation];
    if (state.begin < 0) state.begin = network_.now();
    if (payload_) payload_->enter(operation, rank);
    View view = o.layout->view(rank);
    if (o.algorithm->in_switch) {
      view.node_switch = behind_switch(o, view.node);
      view.rail_switch = behind_switch(o, view.rail);
    }
    state.unfinished[rank] = std::uint32_t(o.lanes);
    const std::uint32_t first = state.first_lane + std::uint32_t(rank * o.lanes);
    for (std::uint32_t l = 0; l < o.lanes; ++l)
      lanes_[first + l] = std::make_unique<Worker>(
          *this, first + l, sliced(o.algorithm, o.call, view, o.shares, l, o.lanes), o, operation, rank, world, l);
    for (std::uint32_t l = 0; l < o.lanes; ++l) {
      Worker& w = *lanes_[first + l];
      w.pump();
      if (!w.done()) continue;
      lanes_[first + l].reset();
      --state.unfinished[rank];
    }
    return state.unfinished[rank] > 0;
  }

  // The seed turns the order in which ranks are started; events of one instant are sorted, so times do not change.
  void enter_all() {
    const std::size_t world = cards_.size();
    for (std::uint32_t i = 0; i < w_.streams.size(); ++i) {
      for (std::size_t r = 0; r < world; ++r) {
        const std::size_t turned = (r + w_.seed) % world;
        network_.wake(EventId(i * world + turned) | kEnter, cards_[turned].enters);
      }
      ranks_left_ += world;
    }
  }

  [[noreturn]] void fail_stuck() const;  // executor_stuck.hpp

  const Workload& w_;
  N& network_;
  LinkSets link_sets_;
  GroupSteps group_steps_;
  Tracer tracer_;
  std::unique_ptr<Payload> payload_;
  std::vector<Place> places_;     // by world rank
  std::vector<CardState> cards_;  // by world rank
  std::vector<OperationState> operations_;
  std::vector<std::unique_ptr<Worker>> lanes_;
  StreamPlaces streams_;
  std::vector<bool> launching_;  // by stream and world rank: it waits for its operation's start; empty until needed
  Items items_;
  std::vector<std::uint32_t> leaving_;  // met messages above eager_bytes, until the instant's end
  std::uint32_t sent_ = 0;
  Count eager_bytes_ = 0;
  std::uint64_t messages_ = 0, bytes_ = 0;
  std::size_t ranks_left_ = 0;
  // Runs with faults only: who is slow; when messages left, by item.
  std::unique_ptr<Slowness> slowness_;
  std::vector<Nanos> left_;
  // Payload only: messages that have arrived, by item; and those that wait to be combined, by lane and token.
  std::unordered_map<std::uint32_t, Payload::Message> in_transit_;
  std::unordered_map<std::uint64_t, Payload::Message> staged_;
};

}  // namespace gccl::sim

#include "sim/engine/executor_groups.hpp"
#include "sim/engine/executor_messages.hpp"
#include "sim/engine/executor_stuck.hpp"
