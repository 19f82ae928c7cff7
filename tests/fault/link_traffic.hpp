// Random messages over a link in virtual time, by seed: first hurt, then heal and demand completion.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "sim/fault/link_end.hpp"

namespace link_test {

using namespace gccl;
using fault::LinkFrame;
using fault::LinkRules;
using fault::LinkSettings;
using sim::Chance;

constexpr Nanos kUs = 1000, kMs = 1000 * kUs;

struct Plan {
  bool stream = false;
  LinkSettings settings;
  std::array<sim::WireFaults, 2> hurt;
  double slowness = 0;  // how often a user takes nothing
  Nanos hurt_for = 0;
};

inline Plan plan_of(std::uint64_t seed) {
  Chance c(seed);
  Plan p;
  p.stream = c.with(0.4);
  p.settings.ordered_wire = p.stream;
  p.settings.frame_bytes_max = std::uint32_t(1) << c.from(5, 14);
  p.settings.credits = c.with(0.2) ? c.from(1, 3) : c.from(4, 100);
  p.settings.acknowledge_frames = c.from(1, 10);
  p.settings.acknowledge_after = Nanos(c.from(0, 500)) * kUs;
  p.settings.rto_first = Nanos(c.from(1, 50)) * kMs;
  p.settings.rto_min = Nanos(c.from(100, 2000)) * kUs;
  p.settings.rto_max = 200 * kMs;
  if (c.with(0.3)) p.settings.keep_alive = Nanos(c.from(5, 50)) * kMs;
  for (sim::WireFaults& f : p.hurt) {
    // A stream's loss is a break, and every damage becomes one.
    const double most = p.stream ? 0.03 : 0.4;
    if (c.with(0.8)) f.loss = most * double(c.from(0, 100)) / 100;
    if (c.with(0.6)) f.corruption = most / 2 * double(c.from(0, 100)) / 100;
    if (c.with(0.6)) f.duplication = double(c.from(0, 100)) / 200;
    if (c.with(0.6)) f.reordering = double(c.from(0, 100)) / 150;
    f.delay_min = Nanos(c.from(1, 100)) * kUs;
    f.delay_max = f.delay_min * Nanos(c.from(1, 20));
  }
  p.slowness = c.with(0.5) ? double(c.from(0, 70)) / 100 : 0;
  // Then nothing but the end of the connection says how far a frame came, and nobody notices damage.
  if (p.stream && c.with(0.5)) {
    p.settings.checksums = false;
    p.slowness = 0;
    for (sim::WireFaults& f : p.hurt) f.corruption = 0;
  }
  p.hurt_for = Nanos(c.from(10, 200)) * kMs;
  return p;
}

// What message number `k` of an epoch from one side holds depends on these alone.
inline std::vector<std::byte> message_of(std::uint64_t seed, std::uint32_t epoch, unsigned side, std::uint64_t k) {
  Chance c(splitmix::hash(seed) ^ splitmix::hash(std::uint64_t(epoch) << 33 | side) ^ splitmix::hash(k));
  const std::uint64_t kind = c.from(0, 199);
  const std::uint64_t most = kind < 30 ? 0 : kind < 110 ? 200 : kind < 180 ? 4096 : kind < 199 ? 65536 : 1 << 20;
  std::vector<std::byte> bytes(c.from(0, most));
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    const std::uint64_t word = c.next();
    std::memcpy(&bytes[i], &word, std::min<std::size_t>(8, bytes.size() - i));
  }
  return bytes;
}

// One side's program: sends messages, and knows what has to come.
class Side : public fault::LinkUser {
 public:
  Side(std::uint64_t seed, unsigned side, sim::VirtualTime* time, sim::Wire* wire, const Plan& plan,
       const LinkRules& rules)
      : seed_(seed),
        side_(side),
        time_(time),
        slowness_(plan.slowness),
        chance_(splitmix::hash(seed) + side),
        end(time, wire, side, plan.settings, this, rules) {}

  void send() {
    const auto bytes = std::make_shared<std::vector<std::byte>>(message_of(seed_, epoch(), side_, sent_));
    memory_.push_back(bytes);
    end.send({*bytes, signature(epoch(), side_, sent_++), chance_.with(0.3)});
    forget_acknowledged();
  }
  void enter_epoch(std::uint32_t epoch) {
    end.enter_epoch(epoch);
    memory_.clear();
    sent_ = freed_ = came_ = 0;
    message_.clear();
    in_message_ = false;
  }
  void heal() { slowness_ = 0; }

  bool deliver(const LinkFrame& f, std::span<const std::byte> payload) override {
    if (chance_.with(slowness_)) {
      if (!std::exchange(pausing_, true))
        time_->after(Nanos(chance_.from(1, 3000)) * kUs, [this] {
          pausing_ = false;
          end.take_more();
        });
      return false;
    }
    if (!wrong.empty()) return true;
    if (!std::exchange(in_message_, true)) {
      expected_ = message_of(seed_, epoch(), 1 - side_, came_);
      message_.clear();
    }
    if (f.epoch != epoch() || f.signature != signature(epoch(), 1 - side_, came_) ||
        f.message_bytes != expected_.size())
      return fail("another message than the next one");
    if (f.offset != message_.size()) return fail("another part than the next one");
    message_.insert(message_.end(), payload.begin(), payload.end());
    if (message_.size() < expected_.size()) return true;
    if (message_ != expected_) return fail("wrong bytes");
    ++came_;
    in_message_ = false;
    return true;
  }

  std::uint32_t epoch() const { return end.link().epoch(); }
  std::uint64_t sent() const { return sent_; }
  std::uint64_t came() const { return came_; }
  bool all_acknowledged() const { return end.link().acknowledged_messages() == sent_; }
  // Its memory may be used for something else: here it is given back, so that a sanitizer sees who still reads it.
  void forget_acknowledged() {
    for (; freed_ < end.link().acknowledged_messages(); ++freed_) memory_.pop_front();
  }

  std::string wrong;

 private:
  static std::uint64_t signature(std::uint32_t epoch, unsigned side, std::uint64_t k) {
    return std::uint64_t(epoch) << 40 | std::uint64_t(side) << 39 | k;
  }
  bool fail(const char* what) {
    wrong = what;
    return true;
  }

  const std::uint64_t seed_;
  const unsigned side_;
  sim::VirtualTime* const time_;
  double slowness_;
  Chance chance_;
  std::deque<std::shared_ptr<std::vector<std::byte>>> memory_;
  std::uint64_t sent_ = 0, freed_ = 0, came_ = 0;
  std::vector<std::byte> message_, expected_;
  bool in_message_ = false, pausing_ = false;

 public:
  sim::LinkEnd end;  // after what its user needs
};

struct Outcome {
  std::string wrong;  // empty: every message of the last epoch came once, in order, unchanged
  std::uint64_t trace = 0;
  std::uint64_t messages = 0;
  fault::Link::Counters counters{};
};

inline Outcome run(std::uint64_t seed, const LinkRules& rules = LinkRules()) {
  const Plan plan = plan_of(seed);
  Chance c(splitmix::hash(~seed));
  sim::VirtualTime time;
  std::unique_ptr<sim::Wire> wire;
  if (plan.stream) {
    wire = std::make_unique<sim::StreamWire>(&time, c.next());
  } else {
    wire = std::make_unique<sim::DatagramWire>(&time, c.next());
  }
  Side a(seed, 0, &time, wire.get(), plan, rules), b(seed, 1, &time, wire.get(), plan, rules);
  wire->faults = plan.hurt;

  // Sends, epochs, partitions and breaks, all in the time of hurt.
  const auto some_time = [&] { return Nanos(c.from(0, std::uint64_t(plan.hurt_for))); };
  for (Side* s : {&a, &b})
    for (std::uint64_t n = c.with(0.1) ? 0 : c.from(1, 40); n > 0; --n) time.at(some_time(), [s] { s->send(); });
  const std::uint32_t epochs = c.with(0.5) ? 0 : std::uint32_t(c.from(1, 3));
  for (std::uint32_t e = 1; e <= epochs; ++e) {
    const Nanos at = plan.hurt_for * e / (epochs + 1);
    for (Side* s : {&a, &b})
      time.at(at + Nanos(c.from(0, 5000)) * kUs, [s, e] {
        if (e > s->epoch()) s->enter_epoch(e);
      });
  }
  for (std::uint64_t n = c.with(0.5) ? 0 : c.from(1, 3); n > 0; --n) {
    const Nanos begin = some_time(), length = Nanos(c.from(1, 30)) * kMs;
    const std::uint64_t sides = c.from(1, 3);  // one way, the other, or both
    for (const unsigned side : {0u, 1u}) {
      if (!(sides >> side & 1)) continue;
      time.at(begin, [&wire, side] { wire->faults[side].cut = true; });
      time.at(begin + length, [&wire, side] { wire->faults[side].cut = false; });
    }
  }
  if (plan.stream)
    for (std::uint64_t n = c.from(0, 5); n > 0; --n)
      time.at(some_time(), [&wire] { static_cast<sim::StreamWire*>(wire.get())->break_now(); });

  Outcome out;
  const auto bad = [&] { return !a.wrong.empty() || !b.wrong.empty(); };
  while (!bad() && time.step(plan.hurt_for)) {
  }
  // The last sends of an epoch may be due at the very end: everybody is in the last one now.
  for (Side* s : {&a, &b}) {
    if (s->epoch() < epochs) s->enter_epoch(epochs);
    s->heal();
    s->end.take_more();
  }
  for (sim::WireFaults& f : wire->faults) f = {.delay_min = f.delay_min, .delay_max = f.delay_max};
  const Nanos limit = time.now() + 60'000 * kMs;
  const auto complete = [&] {
    return a.came() == b.sent() && b.came() == a.sent() && a.all_acknowledged() && b.all_acknowledged();
  };
  while (!bad() && !complete() && time.step(limit)) {
    a.forget_acknowledged();
    b.forget_acknowledged();
  }
  if (bad())
    out.wrong = !a.wrong.empty() ? a.wrong : b.wrong;
  else if (!complete())
    out.wrong = "not complete: " + std::to_string(b.came()) + " of " + std::to_string(a.sent()) + " and " +
                std::to_string(a.came()) + " of " + std::to_string(b.sent()) + " messages came";
  out.trace = a.end.trace() ^ splitmix::hash(b.end.trace());
  out.messages = a.came() + b.came();
  for (const Side* s : {&a, &b}) {
    const auto n = s->end.link().counters();
    out.counters.sent += n.sent, out.counters.received += n.received, out.counters.repeated += n.repeated;
    out.counters.duplicates += n.duplicates, out.counters.damaged += n.damaged, out.counters.foreign += n.foreign;
    out.counters.reconnects += n.reconnects;
  }
  return out;
}

}  // namespace link_test
