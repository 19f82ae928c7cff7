// The links of simulated ranks: for each pair of processes and channel one, over a simulated wire, that carries
// messages.
#pragma once

#include <map>
#include <memory>

#include "sim/fault/link_end.hpp"
#include "sim/protocol/arrival_count.hpp"
#include "sim/protocol/cluster_wires.hpp"

namespace gccl::sim {

// A process: a rank, and which life of it.
struct ProcessId {
  Rank rank = 0;
  std::uint64_t life = 0;
  friend auto operator<=>(const ProcessId&, const ProcessId&) = default;
};

struct DataMessage {
  std::uint64_t signature = 0;  // of the operation that it belongs to
  std::vector<std::byte> bytes;
  // A byte counts as so many on the cluster's links: payloads hold 8 bytes for each element, whatever its type has.
  double on_links = 1;
};

// What hears of messages: not from inside of calls of DataLinks.
class DataUser {
 public:
  virtual ~DataUser() = default;
  virtual void message(const ProcessId& self, const ProcessId& from, std::uint32_t channel, DataMessage m) = 0;
  // A part of a message has come.
  virtual void part(const ProcessId& self) = 0;
  // The oldest message that was sent and not acknowledged has been.
  virtual void acknowledged(const ProcessId& self, const ProcessId& to, std::uint32_t channel) = 0;
  // The epoch that a process is in, which may not have heard of the latest one yet.
  virtual std::uint32_t epoch_of(const ProcessId& self) const = 0;
};

class DataLinks {
 public:
  DataLinks(VirtualTime* time, ClusterWires* wires, const RecoverySettings& settings, DataUser* user,
            std::uint64_t seed);
  ~DataLinks();

  // A process is on this card, from now on.
  void place(const ProcessId& p, Card card) { card_of_[p] = card; }
  // What has not been acknowledged counts on links as this message does: that of one operation is before the next one.
  void send(const ProcessId& from, const ProcessId& to, std::uint32_t channel, DataMessage m);
  void enter_epoch(const ProcessId& p, std::uint32_t epoch);
  void hold(const ProcessId& p, bool stopped);
  void end(const ProcessId& p);  // its process has crashed
  // What is done to what one rank sends another: asked for each wire, when it is made and after each change.
  std::function<void(Rank from, Rank to, WireFaults* faults)> faults;
  void faults_changed();

  // What a process has seen of its links to each of these since the last time; a new epoch begins anew.
  std::vector<fault::Arrivals> take_arrivals(const ProcessId& p, std::span<const ProcessId> peers);

  fault::Link::Counters counters() const;
  std::uint64_t trace() const;

 private:
  struct Pair;
  struct End;
  using Key = std::tuple<ProcessId, ProcessId, std::uint32_t>;
  Pair& pair(const ProcessId& a, const ProcessId& b, std::uint32_t channel);

  VirtualTime* const time_;
  ClusterWires* const wires_;
  const RecoverySettings& settings_;
  DataUser* const user_;
  const std::uint64_t seed_;
  std::map<ProcessId, Card> card_of_;
  std::map<ProcessId, bool> stopped_;
  std::map<Key, std::unique_ptr<Pair>> pairs_;
};

}  // namespace gccl::sim
