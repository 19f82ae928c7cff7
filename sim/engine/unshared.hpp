// Rings and chains: ranks whose messages share nothing, without a common clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "libgccl/schedule/lane.hpp"
#include "sim/engine/card_costs.hpp"
#include "sim/engine/network.hpp"
#include "sim/engine/workload.hpp"

namespace gccl::sim {

// First in, first out, in one array.
template <class T>
class Fifo {
 public:
  bool empty() const { return first_ == end_; }
  const T& front() const { return all_[first_ & mask_]; }
  void push(const T& t) {
    if (end_ - first_ > mask_) grow();
    all_[end_++ & mask_] = t;
  }
  T pop() { return all_[first_++ & mask_]; }

 private:
  void grow() {
    auto all = std::make_unique_for_overwrite<T[]>(2 * (mask_ + 1));
    const std::uint32_t size = end_ - first_;
    for (std::uint32_t i = 0; i < size; ++i) all[i] = all_[(first_ + i) & mask_];
    all_ = std::move(all);
    mask_ = 2 * mask_ + 1;
    first_ = 0;
    end_ = size;
  }
  std::uint32_t mask_ = 3, first_ = 0, end_ = 0;
  std::unique_ptr<T[]> all_ = std::make_unique_for_overwrite<T[]>(4);
};

// What an engine gives to the nanosecond, or nothing where the workload is of another kind: one operation of one lane,
// in which each rank sends to one other and hears from one other, and no link is on two ranks' ways. A message's times
// follow from its two ranks' alone then, and ranks may be played in any order as long as each takes what happens to it
// in the order of time: a Kahn process network (Kahn, "The semantics of a simple language for parallel programming",
// IFIP 1974). So some neighbours are played for some dozens of steps while they are in the cache, rather than thousands
// of ranks for one.
//
// `Way` is what the engine makes of a rank's way to the other:
// - Way(cluster, route): the route is not empty;
// - measure(bytes, least_ns): messages have so many bytes on the links from now on, and take at least that long; false
//   where they cannot follow those before on this way;
// - pass(at): when the last byte of a message is there that leaves then, no earlier than the ones before.
template <class Way>
class UnsharedRun {
 public:
  explicit UnsharedRun(const Workload& w)
      : w_(w), o_(w.operations[0]), on_links_(w.cluster->links().size()), taken_(w.cluster->links().size()) {
    if (o_.protocol) protocol_ = *o_.protocol;
    eager_bytes_ = w.cluster->eager_bytes();
  }

  std::optional<Outcome> run() {
    const auto wall = std::chrono::steady_clock::now();
    const std::vector<Place> places = places_of(w_);
    const std::vector<CardState> cards = states_of(w_);
    ranks_.reserve(o_.ranks());
    for (Rank r = 0; r < o_.ranks(); ++r) {
      const Rank world = o_.world(r);
      ranks_.push_back(std::make_unique<Player>(
          *this, r, sliced(o_.algorithm, o_.call, o_.layout->view(r), o_.shares, 0, 1), cards[world], places[world]));
    }
    for (const auto& r : ranks_) {
      begin_ = std::min(begin_, r->now);
      r->now += protocol_.operation;
      r->pump();
    }
    play();
    if (given_up_ || !std::ranges::all_of(ranks_, [](const auto& r) { return r->done(); })) return std::nullopt;

    Outcome out;
    for (const auto& r : ranks_) {
      out.time_ns = std::max(out.time_ns, r->now);
      for (const LinkId l : r->route) on_links_[l] = r->carried;
    }
    out.begin_ns = {begin_};
    out.end_ns = {out.time_ns};
    for (const CardState& c : cards) out.time_ns = std::max(out.time_ns, c.enters);
    out.messages = messages_;
    out.bytes = bytes_;
    out.link_bytes = std::move(on_links_);
    out.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count();
    return out;
  }

  // Backend.
  bool start(Lane<UnsharedRun>& lane, Token token, const Step& step) {
    Player& r = static_cast<Player&>(lane);
    switch (step.op) {
      case Op::send: return send(r, token, step), false;
      case Op::recv:
      case Op::recv_reduce: return receive(r, token, step);
      case Op::copy: return work(r, token, step, r.card.copy_ns_per_byte);
      case Op::reduce: return work(r, token, step, r.card.combine(protocol_));
      case Op::send_all:
      case Op::recv_reduce_all: given_up_ = true;
    }
    return false;
  }
  bool combine(Lane<UnsharedRun>& lane, Token token, const Step& step) {
    Player& r = static_cast<Player&>(lane);
    return work(r, token, step, r.card.combine(protocol_));
  }

 private:
  static constexpr Rank kNobody = ~Rank(0);
  enum class Kind : std::uint8_t { any, eager, rendezvous };
  struct Event {
    Nanos at;
    Token token;
  };
  struct Sending {
    Nanos at;
    Count bytes;
    Token token;
  };
  // One rank. What happens to it comes in three kinds, each in the order of time; it knows when, or that it has to wait
  // until others have been played further.
  struct alignas(64) Player : Lane<UnsharedRun> {
    Player(UnsharedRun& u, Rank r, Schedule s, const CardState& c, const Place& p)
        : Lane<UnsharedRun>(u, r, std::move(s), u.o_.window), now(c.enters), card(c), place(p) {}
    Nanos now;              // of what happened to it last
    Fifo<Event> sent;       // its messages that have left: when they are complete
    Fifo<Event> arriving;   // messages that it has posted receives for: when they land
    Fifo<Event> working;    // combining and copying: when it ends
    Fifo<Sending> sending;  // those that wait for their receives
    Fifo<Event> receiving;  // receives whose messages have not left
    Fifo<Nanos> early;      // messages that have left, and whose receives are not posted: when they arrive
    Rank to = kNobody, from = kNobody;
    Kind kind = Kind::any;  // of all messages that it sends
    CardState card;
    Place place;
    Nanos received = 0;  // when it is done with the last message
    Nanos worked = -1;   // when it last began to work
    // Its way to `to`.
    std::optional<Way> way;
    std::vector<LinkId> route;
    ProtocolCosts::Way protocol;
    Nanos channel_free = 0;
    Count bytes = ~Count(0);  // of the last message
    Count on_links = 0;       // as long as it was there
    Nanos least = 0;
    std::uint64_t carried = 0;  // bytes on each of its links
  };

  void send(Player& a, Token token, const Step& step) {
    if (a.to != step.peer && !join(a, step.peer)) return;
    Player& b = *ranks_[a.to];
    const Count bytes = step.from.count * o_.element_bytes;
    const Kind kind = bytes <= eager_bytes_ ? Kind::eager : Kind::rendezvous;
    if (a.kind == Kind::any) a.kind = kind;
    if (a.kind != kind) given_up_ = true;
    if (kind == Kind::rendezvous && b.receiving.empty()) return a.sending.push({a.now, bytes, token});
    const Nanos left = kind == Kind::eager ? a.now : std::max(a.now, b.receiving.front().at);
    const Nanos arrives = leave(a, b, left, bytes);
    a.sent.push({arrives, token});
    if (b.receiving.empty()) return b.early.push(arrives);
    const Event receive = b.receiving.pop();
    b.arriving.push({std::max(arrives, receive.at), receive.token});
  }

  bool receive(Player& b, Token token, const Step& step) {
    if (b.from != step.peer && b.from != kNobody) return given_up_ = true, false;
    b.from = step.peer;
    Player& a = *ranks_[step.peer];
    if (!b.early.empty()) {
      const Nanos arrives = b.early.pop();
      if (arrives <= b.now && step.op == Op::recv) return true;
      b.arriving.push({std::max(arrives, b.now), token});
    } else if (!a.sending.empty() && a.to == b.id()) {
      const Sending s = a.sending.pop();
      const Nanos arrives = leave(a, b, std::max(s.at, b.now), s.bytes);
      a.sent.push({arrives, s.token});
      b.arriving.push({arrives, token});
    } else {
      b.receiving.push({b.now, token});
    }
    return false;
  }

  // The rank's first message, to whom all the others must go; false where something of its way is shared. A rank has
  // a way where it has `to`: it may send again before the run ends.
  bool join(Player& a, Rank to) {
    if (a.to != kNobody || to == a.id()) return given_up_ = true, false;
    Player& b = *ranks_[to];
    if (b.from != kNobody && b.from != a.id()) return given_up_ = true, false;
    b.from = a.id();
    w_.cluster->route(a.place.card, b.place.card, a.route);
    for (const LinkId l : a.route) {
      if (taken_[l]) return given_up_ = true, false;
      taken_[l] = true;
    }
    if (a.route.empty()) return given_up_ = true, false;
    a.to = to;
    a.way.emplace(*w_.cluster, a.route);
    a.protocol = protocol_.way(a.place.node == b.place.node);
    return true;
  }

  // When a message that leaves then is complete at both ends (Executor::leave).
  Nanos leave(Player& a, Player& b, Nanos left, Count bytes) {
    ++messages_;
    if (__builtin_add_overflow(bytes_, bytes, &bytes_)) given_up_ = true;
    if (a.bytes != bytes) measure(a, bytes);
    a.carried += a.on_links;
    Nanos at = a.card.handled(left);
    if (!protocol_.none) {
      if (protocol_.channel_ns_per_byte > 0) {
        at = std::max(at, a.channel_free);
        a.channel_free = at + a.least;
      }
      at += a.protocol.latency;
    }
    Nanos tail = a.way->pass(at);
    if (b.place.receive_overhead > 0) tail = b.received = std::max(tail, b.received) + b.place.receive_overhead;
    if (tail > kTimeMax) given_up_ = true;
    return tail;
  }

  // A length that the last message did not have.
  void measure(Player& a, Count bytes) {
    a.bytes = bytes;
    a.least = protocol_.least(bytes);
    a.on_links = protocol_.none ? bytes : a.protocol.on_links(bytes);
    if (!a.way->measure(a.on_links, a.least)) given_up_ = true;
  }

  // What starts at one instant may start in either order, and would end in it: then another engine has to say which.
  bool work(Player& r, Token token, const Step& step, double ns_per_byte) {
    const Nanos cost = duration(double(step.to.count * o_.element_bytes) * ns_per_byte);
    if (cost == 0) return true;
    if (r.worked == r.now) given_up_ = true;
    r.worked = r.now;
    r.card.unit_free = std::max(r.now, r.card.unit_free) + cost;
    if (r.card.unit_free > kTimeMax) given_up_ = true;
    r.working.push({r.card.unit_free, token});
    return false;
  }

  // Some neighbours at a time. At their edges they wait for others, so the next time these are in the middle.
  void play() {
    const std::size_t n = ranks_.size();
    std::size_t offset = 0;
    for (bool moved = true; moved && !given_up_; offset = (offset + kTogether / 2) % kTogether) {
      moved = false;
      for (std::size_t from = 0; from < n; from += kTogether)
        for (bool again = true; again && !given_up_; moved = moved || again) {
          again = false;
          for (std::size_t i = from; i < std::min(from + kTogether, n); ++i)
            again = advance(*ranks_[(i + offset) % n]) || again;
        }
    }
  }

  // Whatever can be known to happen to the rank next, in the order of time. False where that is nothing.
  bool advance(Player& r) {
    bool moved = false;
    for (int k = 0; k < kAtOnce && r.receiving.empty() && r.sending.empty() && !given_up_; ++k) {
      Fifo<Event>* first = nullptr;
      for (Fifo<Event>* kind : {&r.sent, &r.arriving, &r.working})
        if (!kind->empty() && (!first || kind->front().at < first->front().at)) first = kind;
      if (!first) break;
      const Event e = first->pop();
      r.now = e.at;
      if (first == &r.arriving && r.step(e.token).op == Op::recv_reduce)
        r.landed(e.token);
      else
        r.complete(e.token);
      moved = true;
    }
    return moved;
  }

  static constexpr std::size_t kTogether = 32;  // ranks
  static constexpr int kAtOnce = 32;            // what happens to one of them, in a turn

  const Workload& w_;
  const SimulatedOperation& o_;
  ProtocolCosts protocol_;
  Count eager_bytes_ = 0;
  bool given_up_ = false;
  std::vector<std::unique_ptr<Player>> ranks_;
  Nanos begin_ = kTimeMax;
  std::uint64_t messages_ = 0, bytes_ = 0;
  std::vector<std::uint64_t> on_links_;
  std::vector<bool> taken_;  // by link: it is on somebody's way
};

// To whom the first rank sends, and from whom it receives, tells rings and chains from nearly all other algorithms; the
// root tells them from trees, in which the first rank may be a leaf.
inline bool one_peer_each_way(const SimulatedOperation& o, Rank rank) {
  std::optional<Rank> to, from;
  Schedule s = sliced(o.algorithm, o.call, o.layout->view(rank), o.shares, 0, 1);
  while (const Step* step = s.next()) {
    if (step->to_group()) return false;
    if (step->local() || step->idle()) continue;
    std::optional<Rank>& peer = step->op == Op::send ? to : from;
    if (peer.value_or(step->peer) != step->peer) return false;
    peer = step->peer;
  }
  return true;
}

template <class Way>
std::optional<Outcome> run_unshared(const Workload& w) {
  if (w.payload || w.trace_ranks > 0 || w.faults || w.operations.size() != 1) return std::nullopt;
  const SimulatedOperation& o = w.operations[0];
  if (o.lanes != 1 || o.ranks() < 2 || o.algorithm->in_switch || !one_peer_each_way(o, 0)) return std::nullopt;
  if (o.call.root != 0 && !one_peer_each_way(o, o.call.root)) return std::nullopt;
  return UnsharedRun<Way>(w).run();
}

}  // namespace gccl::sim
