#include "sim/fault/timeline.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/fault/virtual_time.hpp"

namespace gccl::sim {
namespace {

class Dice : public Chance {
 public:
  using Chance::Chance;
  std::uint64_t below(std::uint64_t n) { return from(0, n - 1); }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  Nanos between(Nanos a, Nanos b) { return Nanos(from(std::uint64_t(a), std::uint64_t(b))); }
};

using Kind = Injury::Kind;

// Many crash close together where agreements and recoveries take place.
void add_crashes(Dice& dice, FaultTimeline* t) {
  const Rank most = std::max<Rank>(1, dice.one_in(4) ? t->ranks - 1 : (t->ranks - 1) / 2);
  const Rank count = 1 + Rank(dice.below(std::min<Rank>(most, 4)));
  Nanos at = dice.between(0, 150 * kMillisecond);
  for (Rank i = 0; i < count; ++i) {
    const Rank who = dice.one_in(3) ? 0 : Rank(dice.below(t->ranks));  // the coordinator more often
    t->injuries.push_back({at, Kind::crash, who, 0});
    if (dice.one_in(4))
      t->injuries.push_back({at + dice.between(1 * kMillisecond, 250 * kMillisecond), Kind::restart, who, 0});
    at += dice.one_in(3) ? 0 : dice.between(0, dice.one_in(2) ? 2 * kMillisecond : 200 * kMillisecond);
  }
}

void cut(FaultTimeline* t, Nanos from, Nanos until, Rank a, Rank b) {
  if (a == b) return;
  t->injuries.push_back({from, Kind::cut, a, b});
  t->injuries.push_back({until, Kind::mend, a, b});
}

void add_partition(Dice& dice, FaultTimeline* t) {
  const Nanos from = dice.between(0, 200 * kMillisecond),
              until = from + dice.between(1 * kMillisecond, 400 * kMillisecond);
  const bool one_way = dice.one_in(3);
  std::vector<bool> side(t->ranks);
  for (Rank r = 0; r < t->ranks; ++r) side[r] = dice.one_in(2);
  if (dice.one_in(2)) {
    std::fill(side.begin(), side.end(), false);
    side[dice.below(t->ranks)] = true;
  }
  for (Rank a = 0; a < t->ranks; ++a)
    for (Rank b = 0; b < t->ranks; ++b)
      if (side[a] != side[b] && (!one_way || side[a])) cut(t, from, until, a, b);
  t->partitions = true;
}

}  // namespace

FaultTimeline random_timeline(std::uint64_t seed, Rank ranks_min, Rank ranks_max) {
  Dice dice(seed ^ 0x7469'6d65'6c69'6e65);  // not the numbers that the run draws
  FaultTimeline t;
  // Small groups have the most delicate quorums.
  const Rank most = dice.one_in(4) ? ranks_max : std::min(ranks_max, ranks_min + 7);
  t.ranks = Rank(dice.from(ranks_min, most));
  if (dice.one_in(4)) t.spares = 1 + Rank(dice.below(3));
  t.begins.resize(t.ranks + t.spares);
  for (Rank r = 0; r < t.ranks + t.spares; ++r)
    t.begins[r] = r >= t.ranks     ? dice.between(0, 200 * kMillisecond)
                  : dice.one_in(4) ? dice.between(0, 30 * kMillisecond)
                                   : 0;
  t.system_reports = dice.one_in(3);
  t.delay_max = t.delay_min + dice.between(0, dice.one_in(3) ? 2 * kMillisecond : 200'000);
  if (dice.one_in(3)) t.duplication = 0.01 * double(dice.below(30));
  if (dice.one_in(4)) t.loss = 0.01 * double(1 + dice.below(20));
  bool linked = false;
  if (t.ranks > 1) {
    if (!dice.one_in(5)) add_crashes(dice, &t);
    if (dice.one_in(4)) {  // one link, in one direction or both
      const Rank a = Rank(dice.below(t.ranks)), b = Rank(dice.below(t.ranks));
      const Nanos from = dice.between(0, 200 * kMillisecond),
                  until = from + dice.between(1 * kMillisecond, 400 * kMillisecond);
      cut(&t, from, until, a, b);
      if (dice.one_in(2)) cut(&t, from, until, b, a);
      linked = true;
    }
    if (dice.one_in(5)) add_partition(dice, &t);
    if (dice.one_in(5)) {
      const Rank who = Rank(dice.below(t.ranks));
      const Nanos from = dice.between(0, 200 * kMillisecond),
                  lasts = dice.between(1 * kMillisecond, 400 * kMillisecond);
      t.injuries.push_back({from, Kind::pause, who, 0});
      t.injuries.push_back({from + lasts, Kind::resume, who, 0});
      t.partitions |= lasts > t.detection / 10;
    }
  }
  // In the middle of what a rank says to several: the coordinator more often. One that pauses comes back when the
  // others agree without it.
  if (dice.one_in(2)) {
    const Nanos pause = dice.one_in(3) ? dice.between(t.detection / 4, 2 * t.detection) : 0;
    FaultTimeline::AfterPackets& a = t.after_packets.emplace_back();
    a.rank = dice.one_in(3) ? Rank(dice.below(t.ranks)) : 0;
    a.packets = 1 + dice.below(20 * t.ranks);
    a.pause = pause;
    if (dice.one_in(2)) a.along = Rank(dice.below(t.ranks)), a.along_after = dice.between(0, 2 * t.delay_max);
    t.partitions |= pause > 0;
  }
  // A third rank reports to two that their link is down, unless it has crashed.
  const auto crashes =
      std::count_if(t.injuries.begin(), t.injuries.end(), [](const Injury& i) { return i.kind == Kind::crash; });
  if (linked) t.partitions |= t.ranks < 3 + std::size_t(crashes) + 2 * t.after_packets.size();
  t.heal = 600 * kMillisecond;
  std::stable_sort(t.injuries.begin(), t.injuries.end(), [](const Injury& x, const Injury& y) { return x.at < y.at; });
  return t;
}

std::string text(const FaultTimeline& t) {
  static constexpr const char* kNames[] = {"crash", "restart", "pause", "resume", "cut", "mend"};
  std::string s =
      fmt::format("{} ranks, {} spares, loss {}, duplication {}, delay up to {} us, the system {}", t.ranks, t.spares,
                  t.loss, t.duplication, t.delay_max / 1000, t.system_reports ? "reports crashes" : "says nothing");
  for (const auto& a : t.after_packets) {
    s += fmt::format("; rank {} {} after packet {}", a.rank, a.pause > 0 ? "pauses" : "crashes", a.packets);
    if (a.pause > 0) s += fmt::format(" for {:.3f} ms", double(a.pause) * 1e-6);
    if (a.along) s += fmt::format(", rank {} crashes {:.3f} ms later", *a.along, double(a.along_after) * 1e-6);
  }
  for (const Injury& i : t.injuries) {
    s += fmt::format("; {:.3f} ms {} {}", double(i.at) * 1e-6, kNames[std::size_t(i.kind)], i.a);
    if (i.kind == Kind::cut || i.kind == Kind::mend) s += fmt::format(" to {}", i.b);
  }
  return s;
}

}  // namespace gccl::sim
