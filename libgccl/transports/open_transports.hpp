// The transports that one rank has opened, and one communicator's ports on them.
#pragma once

#include <cassert>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gccl/backend.h"
#include "libgccl/base/process.hpp"
#include "libgccl/base/status.hpp"
#include "libgccl/bootstrap/bootstrap.hpp"
#include "libgccl/transports/transport.hpp"

namespace gccl {

// Opened once for each rank of this process; shared by its communicators.
class OpenTransports {
 public:
  // Opens the backends that bootstrap.backends names, in that order. A name that is not built in is looked for in the
  // folders of GCCL_BACKEND_PATH. `bootstrap` must outlive it.
  static Status open(const Bootstrap& bootstrap, std::unique_ptr<OpenTransports>* out);
  ~OpenTransports();
  OpenTransports(const OpenTransports&) = delete;
  OpenTransports& operator=(const OpenTransports&) = delete;

  struct Instance {
    Transport transport;
    void* state;
    void* library;  // of a plug-in; stays loaded while the process lives
  };
  const std::vector<Instance>& instances() const { return instances_; }
  const GCCL_Backend_environment& environment() const { return environment_; }

  // More ranks than processors here, as far as this rank knows.
  bool oversubscribed = false;

 private:
  OpenTransports() = default;
  GCCL_Backend_environment environment_{};
  std::vector<Instance> instances_;
  const InUse in_use_;
};

// Which backend carries the messages to each peer, for one communicator.
class Ports {
 public:
  // Collective: `exchange` gathers the same number of bytes from every rank.
  static Status connect(const OpenTransports& transports, const GCCL_Port_spec& spec, Exchange& exchange,
                        std::int64_t timeout_ms, std::unique_ptr<Ports>* out) {
    return connect(transports, std::span(&spec, 1), exchange, timeout_ms, out);
  }
  // Several at once, of the same ranks, in no more exchanges than one: out[i] for specs[i], or none.
  static Status connect(const OpenTransports& transports, std::span<const GCCL_Port_spec> specs, Exchange& exchange,
                        std::int64_t timeout_ms, std::unique_ptr<Ports>* out);
  // connect() gathers size of an address, this and this again: for a rank that takes part without being a member.
  static std::size_t report_bytes();
  ~Ports();
  Ports(const Ports&) = delete;
  Ports& operator=(const Ports&) = delete;

  struct Port : Transport {
    Port(const Transport& t, void* port) : Transport(t), state(port) {}
    void* state;
    std::uint32_t in_flight = 0;  // transfers that poll will return
    std::uint32_t peers = 0;      // it serves
  };
  std::vector<Port>& all() { return ports_; }
  Port& to(Rank peer) {
    assert(peer < route_.size() && route_[peer] < ports_.size());
    return ports_[route_[peer]];
  }
  // The fast path of the port that reaches all peers; null where none does, or none has one.
  FastPath* fast_path() const { return fast_path_.get(); }
  // A transport of this machine's memory reaches all peers. Every rank comes to the same answer about a communicator:
  // such a transport serves all ranks of a node or none.
  bool in_memory() const { return in_memory_; }
  // Some rank's machine has more ranks than processors. The same on every rank.
  bool oversubscribed() const { return oversubscribed_; }
  // So much memory that all peers have mapped, the same at each call; null where there is not as much.
  std::byte* staging(std::size_t bytes) const {
    for (const Port& p : ports_)
      if (in_memory_ && p.in_memory && p.staging && p.state) return p.staging(p.state, bytes);
    return nullptr;
  }
  bool waits_for_network() const {
    for (const Port& p : ports_)
      if (p.in_flight > 0 && !p.in_memory) return true;
    return false;
  }
  // The bytes of long messages that have moved, as far as the transports know. It only grows.
  std::uint64_t moved_bytes() const {
    std::uint64_t sum = 0;
    for (const Port& p : ports_)
      if (p.moved_bytes && p.state) sum += p.moved_bytes(p.state);
    return sum;
  }
  LinkCounts link_counts() const {
    LinkCounts sum;
    for (const Port& p : ports_)
      if (p.link_counts && p.state) sum += p.link_counts(p.state);
    return sum;
  }
  // What has been seen of the links from and to each rank since the last time, as far as the transports look.
  std::vector<fault::Arrivals> take_arrivals() {
    std::vector<fault::Arrivals> all(route_.size());
    for (const Port& p : ports_)
      if (p.take_arrivals && p.state) p.take_arrivals(p.state, all.data());
    return all;
  }
  // They will be closed, and others of this thread's with them, perhaps their peers' (Transport::take_leave).
  void take_leave() {
    for (const Port& p : ports_)
      if (p.take_leave && p.state) p.take_leave(p.state);
  }
  // They will be closed while the peers keep theirs.
  void close_alone() {
    for (const Port& p : ports_)
      if (p.close_alone && p.state) p.close_alone(p.state);
  }
  // By which of the planner's cost models calls are planned (transport_model_of()); the same on every rank.
  std::string_view cost_model() const { return cost_model_; }

 private:
  Ports() = default;
  class Connecting;
  void set_by_routes(const OpenTransports& transports, Rank size);
  std::vector<Port> ports_;
  std::vector<std::uint8_t> route_;  // by peer: index into ports_
  std::unique_ptr<FastPath> fast_path_;
  bool in_memory_ = false, oversubscribed_ = false;
  std::string_view cost_model_;
};

}  // namespace gccl
