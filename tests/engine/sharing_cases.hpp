// Networks whose messages share links max-min fairly, against times worked out by hand and against a
// progressive-filling simulator of their own. The file that includes this says which network: SharedNet.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "libgccl/cluster/fabrics/star.hpp"
#include "tests/support/child.hpp"

namespace {

// What a test sends; each message from a lane of its own unless it says otherwise.
struct Sent {
  Card from, to;
  Count bytes;
  Nanos at = 0;
  std::uint32_t lane = ~0u;
  Nanos receive_ns = 0;
  Nanos least_ns = 0;
};

Message message(EventId id, const Sent& s) {
  return {id, s.from, s.to, s.lane == ~0u ? 1000 + id : s.lane, s.bytes, s.at, s.receive_ns, s.least_ns};
}

// Any links and any routes.
class Wires final : public Cluster {
 public:
  Wires(Card cards, Links links) : cards_(cards), links_(std::move(links)) {}
  Wires& path(Card from, Card to, std::vector<LinkId> links) {
    routes_[{from, to}] = std::move(links);
    return *this;
  }

  std::string_view name() const override { return "wires"; }
  Card cards() const override { return cards_; }
  Rank nodes() const override { return cards_; }
  Rank node_of(Card c) const override { return c; }
  const Links& links() const override { return links_; }
  std::string link_name(LinkId l) const override { return std::to_string(l); }
  void route(Card from, Card to, std::vector<LinkId>& out) const override {
    out = from == to ? std::vector<LinkId>{} : routes_.at({from, to});
  }
  const CardCosts& costs(Card) const override { return costs_; }
  Count eager_bytes() const override { return ~Count(0); }
  Rank grid_columns() const override { return 0; }

 private:
  Card cards_;
  Links links_;
  std::map<std::pair<Card, Card>, std::vector<LinkId>> routes_;
  CardCosts costs_;
};

Link link(double GBps, Nanos latency_ns) { return {GBps, latency_ns, Tier::other}; }

// Arrival times by message, then the bytes of each link. Sends in the order given; every message must arrive once.
std::vector<Nanos> play(const Cluster& cluster, const std::vector<Sent>& messages, std::vector<EventId> order = {}) {
  if (order.empty()) {
    order.resize(messages.size());
    std::iota(order.begin(), order.end(), 0);
  }
  return test::in_child([&] {
    SharedNet network(cluster);
    for (EventId id : order) {
      const Sent& m = messages[id];
      network.send(message(id, m));
    }
    std::vector<Nanos> arrivals(messages.size(), -1);
    std::vector<EventId> due;
    Nanos before = 0;
    while (network.next(due)) {
      if (due.empty()) throw std::runtime_error("nothing happened");
      if (network.now() < before) throw std::runtime_error("time went back");
      before = network.now();
      for (EventId id : due) {
        if (arrivals.at(id) != -1) throw std::runtime_error("arrived twice");
        arrivals[id] = network.now();
      }
      due.clear();
    }
    for (std::uint64_t b : network.link_bytes()) arrivals.push_back(Nanos(b));
    return arrivals;
  });
}

// The oracle: max-min shares by progressive filling (Bertsekas and Gallager, Data Networks, 6.5.2), event by event.
std::vector<double> fill(const Cluster& cluster, const std::vector<Sent>& messages) {
  const double kNever = std::numeric_limits<double>::infinity();
  const std::size_t n = messages.size();
  std::vector<std::vector<LinkId>> routes(n);
  std::vector<double> enters(n), left(n), arrives(n, -1);
  for (std::size_t i = 0; i < n; ++i) {
    cluster.route(messages[i].from, messages[i].to, routes[i]);
    enters[i] = double(messages[i].at);
    for (LinkId l : routes[i]) enters[i] += double(cluster.links()[l].latency_ns);
    left[i] = routes[i].empty() ? 0 : double(messages[i].bytes);
  }
  for (double now = 0;;) {
    std::vector<std::size_t> flowing;
    double next = kNever;
    for (std::size_t i = 0; i < n; ++i) {
      if (arrives[i] >= 0) continue;
      if (enters[i] > now)
        next = std::min(next, enters[i]);
      else if (left[i] <= 1e-7)
        arrives[i] = now;
      else
        flowing.push_back(i);
    }
    std::vector<double> rate(n, 0), room;
    for (const Link& l : cluster.links()) room.push_back(l.bandwidth_GBps);
    for (auto rising = flowing; !rising.empty();) {
      std::vector<int> users(room.size(), 0);
      for (std::size_t i : rising)
        for (LinkId l : routes[i]) ++users[l];
      double step = kNever;
      for (std::size_t l = 0; l < room.size(); ++l)
        if (users[l] > 0) step = std::min(step, room[l] / users[l]);
      const auto bound = [&](std::size_t i) {
        return messages[i].least_ns > 0 ? double(messages[i].bytes) / double(messages[i].least_ns) : kNever;
      };
      for (std::size_t i : rising) step = std::min(step, bound(i) - rate[i]);
      for (std::size_t l = 0; l < room.size(); ++l) room[l] -= step * users[l];
      for (std::size_t i : rising) rate[i] += step;
      std::erase_if(rising, [&](std::size_t i) {
        return rate[i] >= bound(i) - 1e-9 ||
               std::any_of(routes[i].begin(), routes[i].end(), [&](LinkId l) { return room[l] < 1e-9; });
      });
    }
    for (std::size_t i : flowing) next = std::min(next, now + left[i] / rate[i]);
    if (next == kNever) return arrives;
    for (std::size_t i : flowing) left[i] -= rate[i] * (next - now);
    now = next;
  }
}

// A random network of short and long routes over links of different speeds, and messages that overlap on it.
struct Random {
  Wires wires;
  std::vector<Sent> messages;
  static Links some_links(std::mt19937& rng) {
    Links links;
    for (int l = 0; l < 12; ++l) links.push_back(link(double(1 + rng() % 50), Nanos(rng() % 5000)));
    return links;
  }
  explicit Random(std::mt19937& rng) : wires(6, some_links(rng)) {
    for (Card a = 0; a < 6; ++a)
      for (Card b = 0; b < 6; ++b) {
        std::vector<LinkId> way(12);
        std::iota(way.begin(), way.end(), 0);
        std::shuffle(way.begin(), way.end(), rng);
        way.resize(1 + rng() % 5);
        wires.path(a, b, way);
      }
    const std::size_t n = 1 + rng() % 40;
    for (std::size_t i = 0; i < n; ++i) {
      const Card from = rng() % 6;
      messages.push_back(
          {from, Card((from + 1 + rng() % 5) % 6), Count(rng() % 8 ? rng() % 1000000 : 0), Nanos(rng() % 4 * 10000)});
      if (rng() % 4 == 0) messages.back().least_ns = Nanos(1000 + rng() % 100000);
    }
  }
};

}  // namespace

TEST_CASE("a lone message takes the sum of the latencies plus bytes over the narrowest bandwidth") {
  Wires w(2, {link(100, 700), link(12.5, 1300), link(400, 1)});
  w.path(0, 1, {0, 1, 2});
  for (Count bytes : {1, 2, 3, 100, 4095, 65537, 1000000007})
    CHECK(std::abs(double(play(w, {{0, 1, bytes}})[0]) - (2001 + double(bytes) / 12.5)) <= 1);
  // At any time of the day.
  const Nanos hour = 3'600'000'000'000;
  CHECK(std::abs(double(play(w, {{0, 1, 100000, 24 * hour + 1}})[0] - 24 * hour) - (2002 + 8000)) <= 1);
}

TEST_CASE("no window bounds a flow: 50 GB/s over 10 us, 400 GB/s over 1 ms") {
  CHECK(play(Star(2, 50, 10'000), {{0, 1, 1'000'000'000}})[0] == 20'020'000);
  CHECK(play(Star(2, 400, 1'000'000), {{0, 1, 4'000'000'000}})[0] == 12'000'000);
}

TEST_CASE("a message without bytes takes the latencies alone, one to its own card no time") {
  CHECK(play(Star(3, 50, 600), {{0, 1, 0, 40}, {2, 2, 1000, 7}, {1, 0, 0}}) ==
        std::vector<Nanos>{1240, 7, 1200, 0, 0, 0, 0, 0, 0});
  CHECK(play(Star(2, 50, 0), {{0, 1, 0}, {0, 1, 5000}}) == std::vector<Nanos>{0, 100, 5000, 0, 0, 5000});
}

TEST_CASE("n flows over one link finish at n times the time of one, whatever the length of their routes") {
  Links links = {link(10, 0)};
  for (Nanos i = 1; i <= 40; ++i) links.push_back(link(100, 0));
  Wires w(41, links);
  std::vector<Sent> messages;
  for (Card c = 1; c <= 40; ++c) {
    std::vector<LinkId> way = {0};
    for (LinkId l = 1; l <= c; ++l) way.push_back(l);
    w.path(c, 0, way);
    messages.push_back({c, 0, 25000});
  }
  for (std::size_t n : {1, 2, 3, 7}) {
    const auto out = play(w, {messages.begin(), messages.begin() + std::ptrdiff_t(n)});
    for (std::size_t i = 0; i < n; ++i) CHECK(out[i] == Nanos(2500 * n));
    CHECK(out[n] == Nanos(25000 * n));
  }
}

TEST_CASE("what one lane sends over one link follows each other, what two lanes send shares it") {
  const Star star(3, 10, 0);
  const auto ends = [&](const std::vector<Sent>& sent) {
    auto out = play(star, sent);
    out.resize(sent.size());
    return out;
  };
  CHECK(ends({{0, 1, 10000, 0, 7}, {0, 2, 10000, 0, 7}}) == std::vector<Nanos>{1000, 2000});
  CHECK(ends({{0, 1, 10000, 0, 7}, {0, 1, 10000, 0, 7}, {0, 1, 0, 0, 7}}) == std::vector<Nanos>{1000, 2000, 2000});
  CHECK(ends({{0, 1, 10000, 0, 7}, {0, 2, 10000, 0, 8}}) == std::vector<Nanos>{2000, 2000});
}

TEST_CASE("arrived messages keep the receiving card busy, one after the other") {
  auto out = play(Star(3, 10, 0), {{1, 0, 100, 0, 1, 300}, {2, 0, 100, 0, 2, 300}});
  out.resize(2);
  CHECK(out == std::vector<Nanos>{320, 620});
}

TEST_CASE("a flow with ten times the latency gets the same share") {
  Wires w(3, {link(10, 0), link(100, 1000), link(100, 10000)});
  w.path(1, 0, {0, 1}).path(2, 0, {0, 2});
  // Alone from 1 us to 10 us (90000 bytes of 290000), then both at 5 GB/s; the rest of the second alone.
  CHECK(play(w, {{1, 0, 290000}, {2, 0, 300000}})[0] == 50000);
  CHECK(play(w, {{1, 0, 290000}, {2, 0, 300000}})[1] == 60000);
}

TEST_CASE("a parking lot: what the crossed flow leaves goes to the others") {
  // Link 0 has 12 GB/s for three flows, link 1 20 GB/s for two: 4, 4, 4 and 16.
  Wires w(5, {link(12, 0), link(20, 0)});
  w.path(0, 1, {0, 1}).path(0, 2, {0}).path(0, 3, {0}).path(0, 4, {1});
  const auto out = play(w, {{0, 1, 4000}, {0, 2, 4000}, {0, 3, 4000}, {0, 4, 16000}});
  CHECK(out == std::vector<Nanos>{1000, 1000, 1000, 1000, 12000, 20000});
}

TEST_CASE("an oversubscribed spine slows all that cross it and none that stay below") {
  Links links(32, link(10, 100));
  links.push_back(link(40, 100));  // 8 cards of 10 GB/s behind 40 GB/s
  Wires w(16, links);
  std::vector<Sent> messages;
  for (Card c = 0; c < 8; ++c) {
    const Card next = 8 + (c + 1) % 8;
    w.path(c, c + 8, {2 * c, 32, 2 * (c + 8) + 1}).path(c + 8, next, {2 * (c + 8), 2 * next + 1});
    messages.push_back({c, c + 8, 100000});
  }
  auto out = play(w, messages);
  for (std::size_t i = 0; i < 8; ++i) CHECK(out[i] == 300 + 20000);
  CHECK(out[8 + 32] == 800000);
  for (Card c = 8; c < 16; ++c) messages.push_back({c, 8 + (c + 1) % 8, 100000});
  // Beside them the lower flows get the 5 GB/s that are left of each last link, then all 10.
  out = play(w, messages);
  for (std::size_t i = 0; i < 8; ++i) CHECK(std::abs(out[i] - (300 + 20000)) <= 100);
  for (std::size_t i = 8; i < 16; ++i) CHECK(std::abs(out[i] - (200 + 20000)) <= 100);
}

TEST_CASE("an all-to-all on a star fills every link") {
  const Card n = 24;
  std::vector<Sent> messages;
  for (Card a = 0; a < n; ++a)
    for (Card b = 0; b < n; ++b)
      if (a != b) messages.push_back({a, b, 10000});
  const auto out = play(Star(n, 25, 250), messages);
  for (std::size_t i = 0; i < messages.size(); ++i) CHECK(out[i] == 500 + 23 * 400);
  for (std::size_t i = messages.size(); i < out.size(); ++i) CHECK(out[i] == 230000);
}

TEST_CASE("random traffic gets the shares that progressive filling gives") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    std::mt19937 rng(seed);
    const Random r(rng);
    const auto out = play(r.wires, r.messages);
    const auto expected = fill(r.wires, r.messages);
    for (std::size_t i = 0; i < r.messages.size(); ++i) CHECK(std::abs(double(out[i]) - expected[i]) <= 2);
    for (LinkId l = 0; l < r.wires.links().size(); ++l) {
      Count bytes = 0;
      std::vector<LinkId> way;
      for (const Sent& m : r.messages) {
        r.wires.route(m.from, m.to, way);
        if (std::count(way.begin(), way.end(), l)) bytes += m.bytes;
      }
      CHECK(Count(out[r.messages.size() + l]) == bytes);
    }
  }
}

TEST_CASE("the order of sends within one instant changes no nanosecond") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937 rng(seed);
    const Random r(rng);
    const auto expected = play(r.wires, r.messages);
    std::vector<EventId> order(r.messages.size());
    std::iota(order.begin(), order.end(), 0);
    for (int i = 0; i < 3; ++i) {
      std::shuffle(order.begin(), order.end(), rng);
      CHECK(play(r.wires, r.messages, order) == expected);
    }
  }
  // Shares of thirds, sevenths and elevenths on one star, times full of halves.
  std::vector<Sent> messages;
  for (Card a = 0; a < 12; ++a)
    for (Card b = 0; b < 12; ++b)
      if (a != b && (a * b) % 5 != 2) messages.push_back({a, b, 1000 + 125 * Count(a ^ b)});
  const Star star(12, 25, 100);
  const auto expected = play(star, messages);
  std::mt19937 rng(5);
  std::vector<EventId> order(messages.size());
  std::iota(order.begin(), order.end(), 0);
  for (int i = 0; i < 10; ++i) {
    std::shuffle(order.begin(), order.end(), rng);
    CHECK(play(star, messages, order) == expected);
  }
}

TEST_CASE("what happens at one instant is handed over together, timers included") {
  const auto out = test::in_child([] {
    const Star star(4, 10, 0);
    SharedNet network(star);
    std::vector<Nanos> log;
    std::vector<EventId> due;
    network.send(message(1, {0, 1, 1000, 0}));  // 100 ns
    network.send(message(2, {2, 3, 1004, 0}));  // 100.4 ns
    network.send(message(3, {1, 0, 1000, 0}));
    network.wake(4, 100);
    network.wake(5, 50);
    network.wake(6, 200);
    while (network.next(due)) {
      if (due.back() == 6) network.wake(7, 200);  // at once, again
      std::sort(due.begin(), due.end());
      log.push_back(network.now());
      log.insert(log.end(), due.begin(), due.end());
      due.clear();
    }
    return log;
  });
  CHECK(out == std::vector<Nanos>{50, 5, 100, 1, 2, 3, 4, 200, 6, 200, 7});
}

TEST_CASE("sends from what has just arrived go on in lockstep") {
  const auto out = test::in_child([] {
    const Card n = 9;
    const Star star(n, 30, 333);  // 1000 bytes take 33.3 ns
    SharedNet network(star);
    for (Card c = 0; c < n; ++c) network.send(message(c, {c, (c + 1) % n, 1000, 11}));
    std::vector<Nanos> together;
    std::vector<EventId> due;
    for (int round = 0; round < 200 && network.next(due); ++round) {
      together.push_back(Nanos(due.size()));
      for (EventId id : due) network.send(message(id, {id, (id + 1) % n, 1000, network.now() + 11}));
      due.clear();
    }
    together.push_back(network.now());
    return together;
  });
  for (int i = 0; i < 200; ++i) CHECK(out[std::size_t(i)] == 9);
  CHECK(std::abs(double(out.back()) - 200 * (11 + 666 + 1000 / 30.0)) <= 200 * 0.5);
}

TEST_CASE("nothing to play is no error: no message, one card, no link") {
  CHECK(play(Star(4, 10, 100), {}) == std::vector<Nanos>(8, 0));
  CHECK(play(Star(1, 10, 100), {{0, 0, 77, 5}}) == std::vector<Nanos>{5, 0, 0});
  CHECK(play(Wires(1, {}), {}).empty());
}

TEST_CASE("a flow with a bound leaves the rest to the others") {
  // 10 GB/s for three: one takes 1 GB/s at most, the others 4.5 each.
  const auto out = play(Star(4, 10, 0), {{0, 1, 1000, 0, 1, 0, 1000}, {0, 2, 4500}, {0, 3, 4500}});
  CHECK(out[0] == 1000);
  CHECK(out[1] == 1000);
  CHECK(out[2] == 1000);
  CHECK(play(Star(2, 10, 100), {{0, 1, 1000, 0, 1, 0, 7000}})[0] == 200 + 7000);
}
