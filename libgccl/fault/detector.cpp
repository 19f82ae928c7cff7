#include "libgccl/fault/detector.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "libgccl/base/splitmix.hpp"

namespace gccl::fault {
namespace {

constexpr Nanos kLongAgo = std::numeric_limits<Nanos>::min() / 2;

}  // namespace

std::vector<std::byte> DetectorMessage::encoded() const {
  BytesOut out;
  out.u8(std::uint8_t(kind)).u32(epoch).u32(sequence).u32(target);
  write(out, failures);
  write(out, heard);
  return out.take();
}

std::optional<DetectorMessage> DetectorMessage::decoded(std::span<const std::byte> bytes) {
  BytesIn in(bytes);
  DetectorMessage m;
  m.kind = Kind(in.u8());
  m.epoch = in.u32();
  m.sequence = in.u32();
  m.target = in.u32();
  if (!read(in, &m.failures) || !read(in, &m.heard) || !in.rest().empty() || m.kind < Kind::ping || m.kind > Kind::last)
    return {};
  return m;
}

const DetectorRules& DetectorRules::standard() {
  static const DetectorRules rules;
  return rules;
}

Detector::Detector(Nanos now, const DetectorSettings& settings, Rank self, Epoch epoch, const RankSet& members,
                   std::uint64_t seed, const DetectorRules& rules)
    : settings_(settings),
      rules_(&rules),
      self_(self),
      epoch_(epoch),
      members_(members),
      random_(seed),
      heard_(members.size(), kLongAgo),
      heard_by_some_(members.size()),
      heard_any_(now) {
  assert(members.contains(self) && settings.period() >= 3);
  // Ranks that begin at one time do not ping at one time.
  next_period_ = now + 1 + Nanos(random() % std::uint64_t(settings_.period()));
}

std::uint64_t Detector::random() { return splitmix::mix(random_ += splitmix::kGolden); }

Detector::Standing Detector::standing(Rank rank) const {
  if (failures_.failed.contains(rank)) return Standing::failed;
  if (stopped_.contains(rank)) return Standing::stopped;
  return suspects(rank) ? Standing::suspected : Standing::alive;
}

// ---- Who is pinged ----

Detector::Probe* Detector::probe_of(Rank target) {
  const auto at = std::find_if(probes_.begin(), probes_.end(), [&](const Probe& p) { return p.target == target; });
  return at == probes_.end() ? nullptr : &*at;
}

bool Detector::suspects(Rank r) const {
  return std::any_of(probes_.begin(), probes_.end(),
                     [&](const Probe& p) { return p.target == r && p.rounds_over > 0; });
}

// The next after this rank of those that seem to live.
std::optional<Rank> Detector::successor() const {
  const auto after = std::upper_bound(members_.begin(), members_.end(), self_) - members_.begin();
  for (Rank i = 0; i + 1 < members_.size(); ++i) {
    const Rank r = members_[(std::size_t(after) + i) % members_.size()];
    if (others(r) && !suspects(r)) return r;
  }
  return {};
}

std::optional<Rank> Detector::next_of_round() {
  for (int fresh = 0; fresh < 2; ++fresh) {
    while (!round_.empty()) {
      const Rank r = round_.back();
      round_.pop_back();
      if (others(r)) return r;
    }
    for (const Rank r : members_)
      if (others(r)) round_.push_back(r);
    for (std::size_t left = round_.size(); left > 1; --left) std::swap(round_[left - 1], round_[random() % left]);
  }
  return {};
}

// At most `count`, drawn from those that seem to live.
std::vector<Rank> Detector::some_others(std::size_t count, std::optional<Rank> but) {
  std::vector<Rank> drawn;
  // Most draws hit where most ranks live; a bounded number of them keeps this cheap at any size.
  for (std::size_t tries = 0; tries < 8 * count && drawn.size() < count; ++tries) {
    const Rank r = members_[random() % members_.size()];
    if (others(r) && r != but && !suspects(r) && std::find(drawn.begin(), drawn.end(), r) == drawn.end())
      drawn.push_back(r);
  }
  return drawn;
}

// ---- Probing ----

void Detector::send(Rank to, Kind kind, std::uint32_t sequence, Rank target) {
  packets_.push_back({to, DetectorMessage{kind, epoch_, sequence, target, failures_, heard_by_some_}.encoded()});
}

void Detector::begin_period(Nanos now) {
  next_period_ = now + settings_.period();
  if (const auto next = successor(); next && now - heard_[place_of(*next)] >= settings_.period())
    begin_probe(now, *next);
  if (const auto next = next_of_round()) begin_probe(now, *next);
}

void Detector::begin_probe(Nanos now, Rank target) {
  if (probe_of(target)) return;
  ping(now, probes_.emplace_back(Probe{.target = target}));
}

void Detector::ping(Nanos now, Probe& p) {
  p.begun = now;
  p.sequence = ++sequence_;
  send(p.target, Kind::ping, p.sequence, p.target);
}

void Detector::ask_helpers(Probe& p) {
  p.asked = true;
  for (const Rank helper : some_others(settings_.helpers, p.target)) send(helper, Kind::request, p.sequence, p.target);
}

// True: the target has failed.
bool Detector::round_over(Nanos now, Probe& p) {
  const bool alone = members_.size() - failures_.failed.size() == 2;
  const bool unheard = settings_.heard_first && !heard_by_some_.contains(place_of(p.target));
  suspicions_ += p.rounds_over == 0;
  if (++p.rounds_over >= kRounds) {
    p.over = unheard || rules_->lives(p.target);
    if (p.over) return false;
    if (rules_->accuses(p.witnessed, alone)) return true;
  }
  ping(now, p);
  ask_helpers(p);
  return false;
}

void Detector::time_passed(Nanos now) {
  if (const Nanos late = now - deadline(); late > settings_.period() / 2) excuse(now, late);
  Failures news;
  for (Probe& p : probes_) {
    if (!p.asked && now >= p.begun + reply_timeout()) ask_helpers(p);
    if (now >= p.begun + settings_.period() && round_over(now, p)) news.failed.insert(p.target);
  }
  std::erase_if(probes_, [](const Probe& p) { return p.over; });
  fail(news);
  for (const Rank r : news.failed) send(r, Kind::notice, 0, r);  // it may hear, and not be heard
  std::erase_if(duties_, [&](const Duty& d) {
    if (now < d.until) return false;
    send(d.asker, rules_->lives(d.target) ? Kind::alive : Kind::silent, d.sequence, d.target);
    return true;
  });
  if (now >= next_period_) begin_period(now);
  if (members_.size() - failures_.failed.size() < 2) heard_any_ = now;
  isolated_ = isolated_ || (now - heard_any_ > settings_.detection && (heard_once_ || !settings_.heard_first));
}

// Answers that came meanwhile may still wait to be read. What has been read, and begun, since this rank went on is as
// late as it should be.
void Detector::excuse(Nanos now, Nanos late) {
  for (Probe& p : probes_) p.begun = std::min(p.begun + late, now);
  for (Duty& d : duties_) d.until = std::min(d.until + late, now + reply_timeout());
  heard_any_ = std::min(heard_any_ + late, now);
}

Nanos Detector::deadline() const {
  Nanos first = next_period_;
  for (const Probe& p : probes_) first = std::min(first, p.begun + (p.asked ? settings_.period() : reply_timeout()));
  for (const Duty& d : duties_) first = std::min(first, d.until);
  return first;
}

// ---- What is heard ----

void Detector::heard(Nanos now, Rank from) {
  if (!others(from)) return;
  heard_[place_of(from)] = now;
  heard_by_some_.insert(place_of(from));
  heard_any_ = now;
  heard_once_ = true;
  lives(from);
  std::erase_if(duties_, [&](const Duty& d) {
    if (d.target != from) return false;
    send(d.asker, Kind::alive, d.sequence, d.target);
    return true;
  });
}

void Detector::lives(Rank target) {
  std::erase_if(probes_, [&](const Probe& p) {
    if (p.target == target) withdrawn_ += p.rounds_over > 0;
    return p.target == target;
  });
}

void Detector::received(Nanos now, Rank from, const DetectorMessage& m) {
  // Also a rank that counts as failed, or of another epoch, is answered: so it learns that.
  if (m.kind == Kind::ping) send(from, Kind::ack, m.sequence, from);
  if (!others(from)) return;
  heard(now, from);
  if (m.epoch == epoch_) learn_heard(now, m.heard);
  if (m.epoch == epoch_ && members_.includes(m.failures.failed) && has_quorum(members_, m.failures)) learn(m.failures);
  Probe* const probe = probe_of(m.target);
  switch (m.kind) {
    case Kind::request: {
      if (m.target == self_) return send(from, Kind::alive, m.sequence, self_);
      const auto same = [&](const Duty& d) { return d.asker == from && d.target == m.target; };
      std::erase_if(duties_, same);
      if (!members_.contains(m.target)) return;
      duties_.push_back({from, m.target, m.sequence, now + reply_timeout()});
      return send(m.target, Kind::ping, m.sequence, m.target);
    }
    case Kind::alive:
      if (probe && probe->sequence == m.sequence) lives(m.target);
      return;
    case Kind::silent:
      if (probe && probe->sequence == m.sequence) probe->witnessed = true;
      return;
    default: return;
  }
}

void Detector::gone(Rank rank) {
  Failures news;
  if (members_.contains(rank) && rank != self_) news.insert_gone(rank);
  fail(news);
}

void Detector::stopped(Rank rank, bool is) {
  stopped_ = stopped_ - RankSet{rank};
  if (is) stopped_.insert(rank);
}

void Detector::learn(const Failures& failures) {
  fail({.failed = failures.failed & members_, .gone = failures.gone & members_});
}

// Where somebody has heard a rank at last, what was said of it before bears no witness against it: perhaps its network
// has come up just now. It has a period more to answer.
void Detector::learn_heard(Nanos now, const MemberBits& heard) {
  std::vector<Probe*> unheard;
  for (Probe& p : probes_)
    if (settings_.heard_first && !heard_by_some_.contains(place_of(p.target))) unheard.push_back(&p);
  heard_by_some_.insert(heard);
  for (Probe* p : unheard) {
    if (!heard_by_some_.contains(place_of(p->target))) continue;
    p->witnessed = p->asked = false;
    ping(now, *p);
  }
}

void Detector::fail(const Failures& news) {
  if (!failures_.insert(news)) return;
  std::erase_if(probes_, [&](const Probe& p) { return failures_.failed.contains(p.target); });
  if (expelled()) return;
  for (const Rank r : some_others(settings_.helpers, {})) send(r, Kind::notice, 0, r);
}

}  // namespace gccl::fault
