#include "sim/protocol/data_links.hpp"

#include <algorithm>
#include <deque>
#include <tuple>

namespace gccl::sim {

// One side: gathers the parts of messages, and keeps what it sends until it is acknowledged.
struct DataLinks::End : fault::LinkUser {
  class Ender : public LinkEnd {
   public:
    Ender(End* owner, VirtualTime* time, Wire* wire, unsigned side, const fault::LinkSettings& s,
          const fault::LinkRules& rules)
        : LinkEnd(time, wire, side, s, owner, rules), owner_(owner) {}
    void arrived(std::span<const std::byte> bytes) override {
      LinkEnd::arrived(bytes);
      owner_->progress();
    }
    void connected() override {
      LinkEnd::connected();
      owner_->progress();
    }

   private:
    End* const owner_;
  };

  bool deliver(const fault::LinkFrame& f, std::span<const std::byte> payload) override {
    if (ended) return true;
    arrivals.came(f, other->on_links, time->now());
    user->part(self);
    incoming.bytes.insert(incoming.bytes.end(), payload.begin(), payload.end());
    if (!f.ends_message()) return true;
    incoming.signature = f.signature;
    time->at(time->now(), [this, e = end->link().epoch(), m = std::exchange(incoming, {})]() mutable {
      if (!ended && e == end->link().epoch()) user->message(self, peer, channel, std::move(m));
    });
    return true;
  }
  void progress() {
    while (!ended && !sent.empty() && acknowledged < end->link().acknowledged_messages()) {
      ++acknowledged;
      sent.pop_front();
      time->at(time->now(), [this, e = end->link().epoch()] {
        if (!ended && e == end->link().epoch()) user->acknowledged(self, peer, channel);
      });
    }
  }
  void enter_epoch(std::uint32_t epoch) {
    if (epoch <= end->link().epoch()) return;
    incoming = {};
    arrivals.take();
    end->enter_epoch(epoch);
    sent.clear();
    acknowledged = 0;
  }

  VirtualTime* time = nullptr;
  DataUser* user = nullptr;
  ProcessId self, peer;
  std::uint32_t channel = 0;
  bool ended = false;
  std::unique_ptr<Ender> end;
  std::deque<DataMessage> sent;  // their memory is the link's until they are acknowledged
  std::uint64_t acknowledged = 0;
  DataMessage incoming;
  ArrivalCount arrivals;
  double on_links = 1;         // of what it sends
  const End* other = nullptr;  // the other side
  Nanos stopped_at = 0;
};

struct DataLinks::Pair {
  std::unique_ptr<Wire> wire;
  End ends[2];
};

DataLinks::DataLinks(VirtualTime* time, ClusterWires* wires, const RecoverySettings& settings, DataUser* user,
                     std::uint64_t seed)
    : time_(time), wires_(wires), settings_(settings), user_(user), seed_(seed) {}
DataLinks::~DataLinks() = default;

DataLinks::Pair& DataLinks::pair(const ProcessId& x, const ProcessId& y, std::uint32_t channel) {
  const ProcessId &a = std::min(x, y), &b = std::max(x, y);
  auto& p = pairs_[{a, b, channel}];
  if (p) return *p;
  p = std::make_unique<Pair>();
  const std::uint64_t seed = splitmix::hash(
      seed_ ^ (std::uint64_t(a.rank) << 40 | std::uint64_t(b.rank) << 20 | channel) ^ (a.life << 16) ^ (b.life << 52));
  if (settings_.connections)
    p->wire = std::make_unique<StreamWire>(time_, seed);
  else
    p->wire = std::make_unique<DatagramWire>(time_, seed);
  p->wire->passage = [this, p = p.get(), from = card_of_.at(a), to = card_of_.at(b)](unsigned side, std::size_t bytes) {
    constexpr std::size_t header = fault::kLinkHeaderBytes;
    if (bytes > header) bytes = header + std::size_t(double(bytes - header) * p->ends[side].on_links + 0.5);
    return wires_->passage(side == 0 ? from : to, side == 0 ? to : from, bytes, time_->now());
  };
  const fault::LinkSettings settings{.frame_bytes_max = settings_.frame_bytes,
                                     .credits = settings_.credits,
                                     .ordered_wire = settings_.connections,
                                     .rto_first = 2'000'000,
                                     .rto_max = 200'000'000};
  static const fault::LinkRules rules;
  for (const unsigned side : {0u, 1u}) {
    End& e = p->ends[side];
    e.time = time_;
    e.user = user_;
    e.self = side == 0 ? a : b;
    e.peer = side == 0 ? b : a;
    e.channel = channel;
    e.other = &p->ends[1 - side];
    if (faults) faults(e.self.rank, e.peer.rank, &p->wire->faults[side]);
  }
  for (End& e : p->ends) {
    e.end = std::make_unique<End::Ender>(&e, time_, p->wire.get(), unsigned(&e - p->ends), settings, rules);
    e.stopped_at = time_->now();
    if (stopped_[e.self]) e.end->hold();
  }
  for (End& e : p->ends) e.enter_epoch(user_->epoch_of(e.self));
  return *p;
}

void DataLinks::send(const ProcessId& from, const ProcessId& to, std::uint32_t channel, DataMessage m) {
  Pair& p = pair(from, to, channel);
  End& e = p.ends[from < to ? 0 : 1];
  e.on_links = m.on_links;
  e.arrivals.sent(std::uint64_t(double(m.bytes.size()) * m.on_links + 0.5));
  e.sent.push_back(std::move(m));
  e.end->send({.bytes = e.sent.back().bytes, .signature = e.sent.back().signature, .answer = true});
}

void DataLinks::enter_epoch(const ProcessId& p, std::uint32_t epoch) {
  for (auto& [key, pair] : pairs_)
    for (End& e : pair->ends)
      if (e.self == p) e.enter_epoch(epoch);
}

void DataLinks::hold(const ProcessId& p, bool stopped) {
  stopped_[p] = stopped;
  for (auto& [key, pair] : pairs_)
    for (End& e : pair->ends) {
      if (e.self != p || e.ended) continue;
      if (stopped) {
        e.stopped_at = time_->now();
        e.end->hold();
      } else {
        e.arrivals.stood(time_->now() - e.stopped_at, !e.sent.empty());
        e.end->go_on();
      }
    }
}

void DataLinks::end(const ProcessId& p) {
  for (auto& [key, pair] : pairs_)
    for (End& e : pair->ends) {
      if (e.self != p) continue;
      e.ended = true;
      e.end->hold();
    }
}

void DataLinks::faults_changed() {
  for (auto& [key, pair] : pairs_)
    for (const unsigned side : {0u, 1u})
      faults(pair->ends[side].self.rank, pair->ends[side].peer.rank, &pair->wire->faults[side]);
}

std::vector<fault::Arrivals> DataLinks::take_arrivals(const ProcessId& p, std::span<const ProcessId> peers) {
  std::vector<fault::Arrivals> all(peers.size());
  for (auto& [key, pair] : pairs_)
    for (End& e : pair->ends) {
      if (e.self != p) continue;
      const auto peer = std::ranges::find(peers, e.peer);
      if (peer != peers.end()) all[std::size_t(peer - peers.begin())] += e.arrivals.take();
    }
  return all;
}

fault::Link::Counters DataLinks::counters() const {
  fault::Link::Counters all;
  for (const auto& [key, pair] : pairs_)
    for (const End& e : pair->ends) {
      const auto c = e.end->link().counters();
      all.sent += c.sent;
      all.received += c.received;
      all.repeated += c.repeated;
      all.duplicates += c.duplicates;
      all.damaged += c.damaged;
      all.foreign += c.foreign;
      all.reconnects += c.reconnects;
    }
  return all;
}

std::uint64_t DataLinks::trace() const {
  std::uint64_t all = 0;
  for (const auto& [key, pair] : pairs_)
    for (const End& e : pair->ends) all = splitmix::mix(all ^ e.end->trace()) + splitmix::kGolden;
  return all;
}

}  // namespace gccl::sim
