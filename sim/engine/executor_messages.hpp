// Sends and receives, as the executor of schedules plays them: members of the class template in executor.hpp, which
// includes this file at its end. Each runs for every message: they are inline, as functions inside a class are, so that
// the compiler weighs them as it does those.
#pragma once

#include <algorithm>
#include <utility>

#include "sim/engine/executor.hpp"

namespace gccl::sim {

template <Network N>
inline void Executor<N>::start_send(Worker& w, Token token, const Step& step) {
  const std::uint32_t i = items_.acquire();
  Item& m = items_[i];
  m.sender = w.id();
  m.sender_token = std::uint8_t(token);
  m.receiver = w.lane_of(step.peer);
  m.bytes = step.from.count * w.element_bytes;
  m.order = sent_++;
  m.to = w.world_of(step.peer);
  const std::uint64_t key = Channels::key(m.receiver, w.rank);
  Channels::Queue* q = items_.find(key);
  if (q && !q->sends) {
    const std::uint32_t r = items_.pop(q);
    m.receiver_token = items_[r].receiver_token;
    m.met = true;
    items_.release(r);
  } else {
    items_.push(q, key, i, true);
  }
  const bool eager = m.bytes <= eager_bytes_;
  if (eager && w.held == 0) return leave(i);
  if (eager || m.met) leaving_.push_back(i);
  ++w.held;
}

template <Network N>
inline bool Executor<N>::start_receive(Worker& w, Token token, const Step& step) {
  const std::uint64_t key = Channels::key(w.id(), step.peer);
  Channels::Queue* q = items_.find(key);
  if (!q || !q->sends) {
    const std::uint32_t r = items_.acquire();
    items_[r].receiver_token = std::uint8_t(token);
    items_.push(q, key, r, false);
    return false;
  }
  const std::uint32_t i = items_.pop(q);
  Item& m = items_[i];
  m.receiver_token = std::uint8_t(token);
  m.met = true;
  if (!m.started && m.bytes > eager_bytes_) leaving_.push_back(i);
  if (!m.delivered) return false;
  if (step.op == Op::recv_reduce) {  // it may not land from inside start
    network_.wake(i | kLanded, network_.now());
    return false;
  }
  accept(w, token, i);
  if (tracer_.on()) trace(w, token);
  return true;
}

// When a card's next message can leave: it is busy with one at a time.
template <Network N>
inline Nanos Executor<N>::handled(CardState& c) const {
  const Nanos at = c.handled(network_.now());
  if (at > kTimeMax) throw TimeOverflow();
  return at;
}

template <Network N>
inline void Executor<N>::leave(std::uint32_t i) {
  Item& m = items_[i];
  m.started = true;
  if (slowness_) note_left(i);
  Worker& from = *lanes_[m.sender];
  const Place& to = places_[m.to];
  Nanos at = handled(cards_[from.world]), least = 0;
  Count bytes = m.bytes;
  if (const ProtocolCosts& p = operations_[from.operation].protocol; !p.none) {
    const auto& way = p.way(places_[from.world].node == to.node);
    if (p.channel_ns_per_byte > 0) {
      least = p.least(bytes);
      at = std::max(at, from.sends_free);
      from.sends_free = at + least;
    }
    at += way.latency;
    bytes = way.on_links(bytes);
  }
  network_.send({.id = i | kMessage,
                 .from = from.card,
                 .to = to.card,
                 .lane = m.sender,
                 .bytes = bytes,
                 .at = at,
                 .receive_ns = to.receive_overhead,
                 .least_ns = least});
}

template <Network N>
inline void Executor<N>::note_left(std::uint32_t i) {
  if (left_.size() <= i) left_.resize(items_.size());
  left_[i] = network_.now();
}

template <Network N>
inline void Executor<N>::leave_in_order() {
  if (leaving_.empty()) return;
  std::sort(leaving_.begin(), leaving_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return std::int32_t(items_[a].order - items_[b].order) < 0; });
  for (std::uint32_t i : leaving_) {
    --lanes_[items_[i].sender]->held;
    leave(i);
  }
  leaving_.clear();
}

template <Network N>
inline void Executor<N>::deliver(std::uint32_t i) {
  Item& m = items_[i];
  if (m.sender_token == kToGroup) return deliver_to_group(i);
  ++messages_;
  if (__builtin_add_overflow(bytes_, m.bytes, &bytes_)) throw BytesOverflow();
  m.delivered = true;
  Worker& from = *lanes_[m.sender];
  if (slowness_)
    slowness_->message(from.world, m.to, m.bytes, places_[from.world].node == places_[m.to].node,
                       network_.now() - left_[i]);
  const Token sender_token = m.sender_token;
  if (payload_) in_transit_[i] = payload_->read(from.operation, from.rank, from.channel, from.step(sender_token).from);
  if (m.met) land(i);
  finish(from, sender_token);
}

// A message that is here and whose receive is posted reaches the receiving lane.
template <Network N>
inline void Executor<N>::land(std::uint32_t i) {
  Worker& w = *lanes_[items_[i].receiver];
  const Token token = items_[i].receiver_token;
  const bool reduces = w.step(token).op == Op::recv_reduce;
  accept(w, token, i);
  if (!reduces) return finish(w, token);
  w.landed(token);
  settle(w);
}

// Takes the message out of the network.
template <Network N>
inline void Executor<N>::accept(Worker& w, Token token, std::uint32_t i) {
  if (payload_) {
    const Step& step = w.step(token);
    if (step.op == Op::recv)
      payload_->write(w.operation, w.rank, w.channel, step.to, in_transit_[i]);
    else
      staged_[std::uint64_t(w.id()) << 8 | token] = std::move(in_transit_[i]);
    in_transit_.erase(i);
  }
  items_.release(i);
}

}  // namespace gccl::sim
