// The detector in virtual time: when it finds a crash, what it costs, how often it is wrong, against closed forms.
#include "libgccl/fault/detector.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cmath>
#include <functional>
#include <memory>

#include "sim/fault/virtual_time.hpp"

using namespace gccl;
using namespace gccl::fault;
using gccl::sim::Chance;
using gccl::sim::VirtualTime;

namespace {

constexpr Nanos kMs = 1'000'000;

// Detectors that reach each other after `latency`, each packet where `passes` says so.
class Ranks {
 public:
  Ranks(Rank n, const DetectorSettings& settings, std::uint64_t seed,
        const DetectorRules& rules = DetectorRules::standard())
      : settings(settings), chance(seed), state_(n) {
    for (Rank r = 0; r < n; ++r)
      state_[r].detector.emplace(0, settings, r, 1, RankSet::below(n), seed * 1000 + r, rules);
    for (Rank r = 0; r < n; ++r) after_event(r);
  }

  Detector& operator[](Rank r) { return *state_[r].detector; }
  Rank size() const { return Rank(state_.size()); }
  Nanos now() const { return time.now(); }
  void crash(Rank r) { state_[r].alive = false; }
  void pause(Rank r, Nanos lasts) {
    state_[r].paused = true;
    time.after(lasts, [this, r] {
      State& s = state_[r];
      s.paused = false;
      s.detector->time_passed(now());  // before anything is read: the worst order
      for (auto& [from, bytes] : std::exchange(s.inbox, {}))
        s.detector->received(now(), from, *DetectorMessage::decoded(bytes));
      after_event(r);
    });
  }
  // To be called when a detector has received something.
  void after_event(Rank r) {
    State& s = state_[r];
    for (Packet& p : s.detector->take_packets()) {
      ++s.sent;
      if (tap) tap(r, p);
      if (passes && !passes(r, p.to)) continue;
      time.after(latency, [this, r, p = std::move(p)] {
        State& to = state_[p.to];
        if (!to.alive) return;
        if (to.paused) return void(to.inbox.emplace_back(r, p.bytes));
        ++to.received;
        to.detector->received(now(), r, *DetectorMessage::decoded(p.bytes));
        after_event(p.to);
      });
    }
    const Nanos due = std::max(s.detector->deadline(), now());
    if (s.timer >= now() && s.timer <= due) return;
    s.timer = due;
    time.at(due, [this, r, due] {
      State& state = state_[r];
      if (!state.alive || state.paused || state.timer != due) return;
      state.timer = -1;
      if (now() >= state.detector->deadline()) state.detector->time_passed(now());
      by_clock = true;
      after_event(r);
      by_clock = false;
    });
  }
  void run(Nanos until) {
    while (time.step(until)) {
    }
  }
  // Until somebody calls somebody failed, or the limit.
  bool run_until_failure(Nanos limit) {
    while (time.step(limit))
      for (const State& s : state_)
        if (!s.detector->failures().failed.empty()) return true;
    return false;
  }
  std::uint64_t sent(Rank r) const { return state_[r].sent; }
  std::uint64_t received(Rank r) const { return state_[r].received; }

  const DetectorSettings settings;
  VirtualTime time;
  Chance chance;
  Nanos latency = 20'000;
  std::function<bool(Rank from, Rank to)> passes;
  std::function<void(Rank from, const Packet&)> tap;
  bool by_clock = false;  // what is sent now is, and not because something arrived

 private:
  struct State {
    std::optional<Detector> detector;
    bool alive = true, paused = false;
    Nanos timer = -1;
    std::uint64_t sent = 0, received = 0;
    std::vector<std::pair<Rank, std::vector<std::byte>>> inbox;
  };
  std::vector<State> state_;
};

const DetectorSettings kFast{.detection = 200 * kMs, .helpers = 3};

}  // namespace

TEST_CASE("a crash is found by the first within 0.6, and by all within 1, of the detection time") {
  for (const Rank n : {2, 3, 4, 8, 64, 256}) {
    double mean_first = 0, mean_last = 0, worst_first = 0, worst_last = 0;
    const int trials = n > 64 ? 5 : 40;
    for (int trial = 0; trial < trials; ++trial) {
      Ranks ranks(n, kFast, std::uint64_t(trial) + 1);
      const Nanos crash = 300 * kMs + Nanos(ranks.chance.from(0, 100 * kMs));
      const Rank victim = Rank(ranks.chance.from(0, n - 1));
      ranks.run(crash);
      ranks.crash(victim);
      Nanos first = -1, last = -1;
      while (last < 0 && ranks.time.step(crash + 2 * kFast.detection)) {
        Rank know = 0;
        for (Rank r = 0; r < n; ++r) know += r != victim && ranks[r].failures().failed.contains(victim);
        if (know > 0 && first < 0) first = ranks.now() - crash;
        if (know == n - 1) last = ranks.now() - crash;
      }
      REQUIRE(last >= 0);
      const double f = double(first) / double(kFast.detection), l = double(last) / double(kFast.detection);
      mean_first += f / trials;
      mean_last += l / trials;
      worst_first = std::max(worst_first, f);
      worst_last = std::max(worst_last, l);
      for (Rank r = 0; r < n; ++r)
        if (r != victim) CHECK(ranks[r].failures().failed == RankSet{victim});
    }
    MESSAGE(fmt::format(
        "{} ranks: first after {:.2f} (worst {:.2f}), all after {:.2f} (worst {:.2f}) of the detection time", n,
        mean_first, worst_first, mean_last, worst_last));
    CHECK(worst_first <= 0.605);
    CHECK(worst_last <= 1);
  }
}

TEST_CASE("a node of eight that dies at once is found within the detection time") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Ranks ranks(64, kFast, seed);
    ranks.run(300 * kMs);
    RankSet node;
    for (Rank r = 16; r < 24; ++r) {
      node.insert(r);
      ranks.crash(r);
    }
    ranks.run(300 * kMs + kFast.detection);
    for (Rank r = 0; r < 64; ++r)
      if (!node.contains(r)) CHECK(ranks[r].failures().failed == node);
  }
}

// With heard_first, as real ranks have it: their predecessor on the ring dies with seven of them, and of the others
// hardly one has pinged them.
TEST_CASE("a node of eight that dies soon after the start is found, though few have heard it") {
  DetectorSettings settings = kFast;
  settings.heard_first = true;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Ranks ranks(256, settings, seed);
    const Nanos begins = 8 * settings.period();
    ranks.run(begins);
    RankSet node;
    for (Rank r = 16; r < 24; ++r) {
      node.insert(r);
      ranks.crash(r);
    }
    ranks.run(begins + settings.detection);
    for (Rank r = 0; r < ranks.size(); ++r)
      if (!node.contains(r)) CHECK(ranks[r].failures().failed == node);
  }
}

TEST_CASE("with heard_first, ranks behind a firewall from the start are accused by nobody") {
  DetectorSettings settings = kFast;
  settings.heard_first = true;
  Ranks ranks(64, settings, 5);
  ranks.passes = [](Rank from, Rank to) { return from / 8 == to / 8; };  // only inside a node
  ranks.run(10 * settings.detection);
  for (Rank r = 0; r < ranks.size(); ++r) CHECK(ranks[r].failures().failed.empty());
}

// Its network comes up last: what the others said of it while nobody had heard it is no witness once somebody has.
TEST_CASE("with heard_first, a rank that is reached late is accused by nobody") {
  DetectorSettings settings = kFast;
  settings.heard_first = true;
  for (const Rank n : {3u, 8u})
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      CAPTURE(n);
      CAPTURE(seed);
      Ranks ranks(n, settings, seed);
      const Nanos up = 5 * settings.period() + Nanos(ranks.chance.from(0, std::uint64_t(10 * settings.period())));
      ranks.passes = [&](Rank from, Rank to) { return (from != 1 && to != 1) || ranks.now() >= up; };
      ranks.run(up + 3 * settings.detection);
      for (Rank r = 0; r < n; ++r) CHECK(ranks[r].failures().failed.empty());
    }
}

// Das et al.: the first ping to a member that crashed comes in period 1 / (1 - (1 - 1/(n-1))^(n-1)) on average, which
// tends to e/(e-1), if each pings one drawn from all. The ring's pings, and those that its watcher asks for, are left
// out.
TEST_CASE("shuffled pings come as SWIM predicts") {
  const Rank n = 64;
  double periods = 0;
  const int trials = 300;
  struct : DetectorRules {
    bool accuses(bool, bool) const override { return false; }  // the pings go on
  } accuses_nobody;
  for (int trial = 0; trial < trials; ++trial) {
    Ranks ranks(n, kFast, std::uint64_t(trial) + 1, accuses_nobody);
    const Nanos crash = 500 * kMs + Nanos(ranks.chance.from(0, 50 * kMs));
    const Rank victim = Rank(ranks.chance.from(0, n - 1)), watcher = (victim + n - 1) % n;
    ranks.run(crash);
    ranks.crash(victim);
    Nanos first = -1;
    ranks.tap = [&](Rank from, const Packet& p) {
      if (first < 0 && ranks.by_clock && p.to == victim && from != watcher &&
          DetectorMessage::decoded(p.bytes)->kind == DetectorMessage::Kind::ping)
        first = ranks.now() - crash;
    };
    while (first < 0 && ranks.time.step(crash + kFast.detection)) {
    }
    REQUIRE(first >= 0);
    periods += std::ceil(double(first) / double(kFast.period())) / trials;
  }
  const double expected = 1 / (1 - std::pow(1 - 1.0 / (n - 1), n - 2));
  MESSAGE(fmt::format("{:.3f} periods, expected {:.3f}, e/(e-1) = {:.3f}", periods, expected,
                      std::exp(1) / (std::exp(1) - 1)));
  CHECK(periods == doctest::Approx(expected).epsilon(0.1));
}

TEST_CASE("the load of a rank does not grow with their number") {
  for (const Rank n : {4, 16, 64, 256}) {
    Ranks ranks(n, kFast, 7);
    ranks.run(100 * kFast.period());
    double sent = 0, most = 0;
    for (Rank r = 0; r < n; ++r) {
      const double mine = double(ranks.sent(r)) / 100;
      sent += mine / n;
      most = std::max(most, mine);
    }
    MESSAGE(fmt::format("{} ranks: {:.2f} packets sent a period, at most {:.2f}", n, sent, most));
    CHECK(sent <= 4);  // two pings, and answers to two
    CHECK(most <= 5);
  }
}

// Two ranks have nobody to ask. In each round a ping or its answer is lost, and the other's own ping too: with loss p
// of a packet that is x = (1 - (1-p)^2) p. The first run of four such rounds ends after (1 - x^4) / ((1 - x) x^4)
// rounds on average (Feller), and either of the two may be first.
TEST_CASE("false alarms of two ranks under loss come as often as computed") {
  const double p = 0.5, x = (1 - (1 - p) * (1 - p)) * p, x4 = x * x * x * x;
  const double expected = (1 - x4) / ((1 - x) * x4) / 2;
  double periods = 0;
  const int trials = 200;
  for (int trial = 0; trial < trials; ++trial) {
    Ranks ranks(2, kFast, std::uint64_t(trial) + 1);
    ranks.passes = [&](Rank, Rank) { return !ranks.chance.with(p); };
    REQUIRE(ranks.run_until_failure(1'000'000 * kMs));
    periods += double(ranks.now()) / double(kFast.period()) / trials;
  }
  MESSAGE(
      fmt::format("half of all packets lost: a false alarm every {:.1f} periods, computed {:.1f}", periods, expected));
  CHECK(periods > expected / 2);
  CHECK(periods < expected * 2);
}

// With k helpers a round is silent with at most y = (1 - (1-p)^2) (1 - (1-p)^4)^k, and four in a row accuse.
TEST_CASE("helpers make false alarms rare") {
  const double p = 0.5, y = (1 - std::pow(1 - p, 2)) * std::pow(1 - std::pow(1 - p, 4), 3);
  const Rank n = 8;
  std::uint64_t probes = 0, alarms = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Ranks ranks(n, kFast, seed);
    ranks.passes = [&](Rank, Rank) { return !ranks.chance.with(p); };
    const bool alarm = ranks.run_until_failure(200 * kFast.period());
    alarms += alarm;
    probes += std::uint64_t(ranks.now() / kFast.period()) * 2 * n;
  }
  const double rate = double(alarms) / double(probes), bound = std::pow(y, 4);
  MESSAGE(fmt::format(
      "half of all packets lost, 8 ranks: {} alarms in {} probes, {:.2g} each; bound {:.2g}; at 1 % loss "
      "the bound is {:.1g}",
      alarms, probes, rate, bound, std::pow((1 - std::pow(0.99, 2)) * std::pow(1 - std::pow(0.99, 4), 3), 4)));
  CHECK(alarms > 0);
  CHECK(rate < bound);
}

TEST_CASE("a link that is down, one way or both, accuses nobody") {
  for (const bool both : {false, true})
    for (const Rank n : {3, 4, 16}) {
      Ranks ranks(n, kFast, n);
      ranks.passes = [&](Rank from, Rank to) { return !((from == 0 && to == 1) || (both && from == 1 && to == 0)); };
      CHECK(!ranks.run_until_failure(20 * kFast.detection));
    }
}

TEST_CASE("a rank that cannot receive accuses nobody, and notices") {
  Ranks ranks(8, kFast, 3);
  ranks.passes = [&](Rank, Rank to) { return to != 2; };
  CHECK(!ranks.run_until_failure(20 * kFast.detection));
  for (Rank r = 0; r < 8; ++r) CHECK(ranks[r].isolated() == (r == 2));
}

TEST_CASE("a rank that cannot send fails") {
  Ranks ranks(8, kFast, 3);
  ranks.passes = [&](Rank from, Rank) { return from != 2; };
  ranks.run(2 * kFast.detection);
  for (Rank r = 0; r < 8; ++r) CHECK(ranks[r].failures().failed == RankSet{2});
  CHECK(ranks[2].expelled());  // it hears that
}

TEST_CASE("a rank that was held up accuses nobody when it goes on") {
  for (const Nanos lasts : {kFast.detection / 4, 10 * kFast.detection}) {
    Ranks ranks(8, kFast, 5);
    ranks.run(300 * kMs);
    ranks.pause(3, lasts);
    ranks.run(300 * kMs + lasts + 2 * kFast.detection);
    // A short pause is nobody's failure; after a long one the paused rank has failed, and learns it.
    const RankSet failed = lasts > kFast.detection ? RankSet{3} : RankSet{};
    for (Rank r = 0; r < 8; ++r) CHECK(ranks[r].failures().failed == failed);
  }
}

// As real ranks do it: what has arrived is read before the clock is looked at.
TEST_CASE("a rank that was held up, and hears nobody from then on, notices in time, and does what it was asked to") {
  const Nanos stop = 300 * kFast.detection;
  Detector d(0, kFast, 0, 1, RankSet::below(3), 7);
  (void)d.take_packets();
  DetectorMessage request;
  request.kind = DetectorMessage::Kind::request;
  request.epoch = 1;
  request.target = 2;
  d.received(stop, 1, request);
  Nanos answered = -1, now = stop;
  for (; !d.isolated() && now < 2 * stop; now = d.deadline()) {
    d.time_passed(now);
    for (const Packet& p : d.take_packets())
      if (answered < 0 && DetectorMessage::decoded(p.bytes)->kind == DetectorMessage::Kind::silent) answered = now;
  }
  CHECK(answered - stop <= kFast.period());
  CHECK(now - stop <= kFast.detection + 3 * kFast.period());
  CHECK(d.failures().failed.empty());
}

TEST_CASE("what the system says of a process counts at once, and distinguishes stopped from dead") {
  Ranks ranks(8, kFast, 5);
  ranks.run(300 * kMs);
  ranks[1].stopped(4, true);
  CHECK(ranks[1].standing(4) == Detector::Standing::stopped);
  CHECK(ranks[2].standing(4) == Detector::Standing::alive);
  ranks[1].stopped(4, false);
  CHECK(ranks[1].standing(4) == Detector::Standing::alive);
  ranks.crash(6);
  ranks[1].gone(6);
  ranks.after_event(1);
  CHECK(ranks[1].standing(6) == Detector::Standing::failed);
  ranks.run(300 * kMs + kFast.period() * 2);
  for (Rank r = 0; r < 8; ++r)
    if (r != 6) CHECK(ranks[r].failures() == Failures{.failed = {6}, .gone = {6}});
}

TEST_CASE("traffic on a link is as good as a heartbeat") {
  Ranks quiet(2, kFast, 1), busy(2, kFast, 1);
  for (Nanos t = 0; t < 100 * kFast.period(); t += kFast.period() / 2) {
    busy.run(t);
    for (const Rank r : {0u, 1u}) busy[r].heard(t, 1 - r);
  }
  quiet.run(100 * kFast.period());
  CHECK(busy[0].failures().failed.empty());
  // The shuffled pings stay, which carry news.
  CHECK(busy.sent(0) <= quiet.sent(0));
}

TEST_CASE("any bytes are taken, and what is no message is refused") {
  Chance chance(11);
  Ranks ranks(4, kFast, 1);
  DetectorMessage m;
  m.kind = DetectorMessage::Kind::request;
  m.epoch = 7;
  m.sequence = 8;
  m.target = 2;
  m.failures = {.failed = {1, 3, 900}, .gone = {3}};
  m.heard = MemberBits(100);
  m.heard.insert(70);
  const auto bytes = m.encoded();
  const auto again = DetectorMessage::decoded(bytes);
  REQUIRE(again);
  CHECK(again->encoded() == bytes);
  CHECK(again->failures == m.failures);
  for (std::size_t place = 0; place < 100; ++place) CHECK(again->heard.contains(place) == (place == 70));
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) CHECK(!DetectorMessage::decoded(std::span(bytes).first(cut)));
  for (int i = 0; i < 20000; ++i) {
    auto damaged = bytes;
    for (int n = 0; n < 3; ++n) damaged[chance.next() % damaged.size()] = std::byte(chance.next());
    if (const auto d = DetectorMessage::decoded(damaged)) {
      ranks[0].received(Nanos(i), Rank(chance.from(0, 5)), *d);
      (void)ranks[0].take_packets();
    }
  }
}
