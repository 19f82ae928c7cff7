// What the connector's thread hands to a port: connections that are ready, and faults.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <cstdio>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "gccl/backend.h"
#include "libgccl/net/socket.hpp"
#include "libgccl/transports/tcp/connect/port_address.hpp"
#include "libgccl/transports/tcp/data/link.hpp"

namespace gccl::tcp {

// A connected, authenticated socket for one stream of a link.
struct Arrival {
  Fd fd;
  std::uint32_t peer = 0, channel = 0;
  Link::Connection connection;
};

// Which port it is for: what dialling peers are checked against.
struct PortIdentity {
  std::uint64_t communicator = 0;
  std::uint32_t rank = 0, size = 0, channels = 0;
  std::vector<std::uint32_t> world_rank;
};

struct LinkPlace {
  std::uint32_t peer = 0, channel = 0;
  auto operator<=>(const LinkPlace&) const = default;
};
struct StreamPlace {
  LinkPlace link;
  std::uint32_t stream = 0;
  auto operator<=>(const StreamPlace&) const = default;
};

// What an inbox hands over at once.
struct InboxContents {
  std::list<Arrival> arrivals;
  // Peers that cannot be dialled, or are watched no more: whether that matters depends on what is wanted of them.
  std::vector<GCCL_Fault> peer_failures;
  // Peers that read no more of what this port writes to them.
  std::vector<std::uint32_t> leaving;
  GCCL_Fault fault{};  // of the whole port; its result is GCCL_SUCCESS when there is none
};

// A port as the connector knows it: what has come for it, and what it has asked for.
class PortInbox {
 public:
  explicit PortInbox(PortIdentity identity) : identity_(std::move(identity)) {}

  const PortIdentity& identity() const { return identity_; }
  // Any thread.
  void put(std::list<Arrival> arrivals) noexcept {
    const std::lock_guard lock(mutex_);
    contents_.arrivals.splice(contents_.arrivals.end(), arrivals);
    full_.store(true, std::memory_order_release);
  }
  // The first fault counts. `announced`: the peer that brought it has sent it to every rank.
  void put(const GCCL_Fault& fault, bool announced) noexcept {
    assert(fault.result != GCCL_SUCCESS && fault.peer < identity_.size);
    const std::lock_guard lock(mutex_);
    if (contents_.fault.result == GCCL_SUCCESS) contents_.fault = fault, announced_ = announced;
    full_.store(true, std::memory_order_release);
  }
  // This rank has none for a connection of the port's.
  void put_out_of_memory() noexcept {
    GCCL_Fault fault{.result = GCCL_ERR_SYSTEM, .peer = identity_.rank, .text = {}};
    std::snprintf(fault.text, sizeof fault.text, "rank %u: out of memory while it connects to other ranks over TCP",
                  fault.peer);
    put(fault, false);
  }
  void put_peer_failure(const GCCL_Fault& failure) {
    const std::lock_guard lock(mutex_);
    contents_.peer_failures.push_back(failure);
    full_.store(true, std::memory_order_release);
  }
  void put_leaving(std::uint32_t peer) {
    const std::lock_guard lock(mutex_);
    contents_.leaving.push_back(peer);
    full_.store(true, std::memory_order_release);
  }
  // Cheap enough for every poll.
  bool full() const { return full_.load(std::memory_order_acquire); }
  // All of it; the fault stays.
  InboxContents take() {
    const std::lock_guard lock(mutex_);
    full_.store(false, std::memory_order_relaxed);
    return std::exchange(contents_,
                         InboxContents{.arrivals = {}, .peer_failures = {}, .leaving = {}, .fault = contents_.fault});
  }
  bool announced() const {
    const std::lock_guard lock(mutex_);
    return announced_;
  }

  // Whether the link is still to be dialled; once true, it is the caller who has to. Any thread.
  bool claim(std::uint32_t peer, std::uint32_t channel) {
    const std::lock_guard lock(mutex_);
    return claim_locked({peer, channel});
  }
  // The same for one that a peer asks for, which may do so while this rank's port is still to connect; then the port
  // dials it, with the others that now_connected() returns.
  bool claim_for_peer(std::uint32_t peer, std::uint32_t channel) {
    const std::lock_guard lock(mutex_);
    if (connected_) return claim_locked({peer, channel});
    asked_early_.push_back({peer, channel});
    return false;
  }
  // The same for a stream whose connection of that number broke. False too: it is being dialled, or has been.
  bool claim_again(const StreamPlace& place, std::uint64_t broken) {
    const std::lock_guard lock(mutex_);
    Dialled& d = streams_[place];
    if (d.in_progress || d.attempts != broken || broken == 0) return false;
    return d.in_progress = true;
  }
  // The connector's thread dials a stream: the number of this attempt, and whether the port has had no connection of
  // it.
  std::uint64_t begin_attempt(const StreamPlace& place, bool* fresh) {
    const std::lock_guard lock(mutex_);
    Dialled& d = streams_[place];
    d.in_progress = true;
    *fresh = !d.connected;
    return ++d.attempts;
  }
  void end_attempts(const StreamPlace& place, bool connected) {
    const std::lock_guard lock(mutex_);
    Dialled& d = streams_[place];
    d.in_progress = false;
    d.connected |= connected;
  }
  std::vector<LinkPlace> now_connected() {
    const std::lock_guard lock(mutex_);
    connected_ = true;
    return std::exchange(asked_early_, {});
  }

  // How the peers are reached, by rank; no addresses where they are not. Set before now_connected().
  std::vector<PortAddress> peers;
  // The port has aborted. Any thread.
  std::atomic<bool> aborted{false};

  // What the port has asked for, with the connector's mutex held. It takes no memory: an error of this rank must reach
  // the others also when memory is short.
  struct Commands {
    bool abort = false, close = false, passes_on = false;
    GCCL_Fault fault{};  // of the abort
    // A closed port's, until its aborts are over: a peer that saw its connection end before it hears why would take
    // this rank for lost.
    std::vector<std::unique_ptr<Link>> links;
    std::list<Arrival> arrivals;
  } commands;
  std::shared_ptr<PortInbox> next;  // of a PortInboxList
  bool listed = false;              // among those with commands

  // For the connector's thread alone: which peer hears of the abort next, and how many are hearing of it.
  std::uint32_t next_to_abort = 0;
  std::size_t aborts = 0;
  bool aborting = false, closed = false;
  bool over() const { return closed && aborts == 0 && !(aborting && next_to_abort < identity_.size); }
  // The port has aborted, and of all its peers those that could be reached have heard that from it.
  bool aborted_to_all() const {
    return aborting && !commands.passes_on && aborts == 0 && next_to_abort == identity_.size;
  }

 private:
  bool claim_locked(LinkPlace link) { return !peers[link.peer].addresses.empty() && dialled_.insert(link).second; }

  const PortIdentity identity_;
  mutable std::mutex mutex_;
  InboxContents contents_;
  std::set<LinkPlace> dialled_;
  struct Dialled {
    bool in_progress = false, connected = false;
    std::uint64_t attempts = 0;
  };
  std::map<StreamPlace, Dialled> streams_;
  std::vector<LinkPlace> asked_early_;
  bool connected_ = false;
  bool announced_ = false;
  std::atomic<bool> full_{false};
};

// A list that takes no memory: a inbox is in one at most.
class PortInboxList {
 public:
  void push(std::shared_ptr<PortInbox> m) {
    m->next = std::move(first_);
    first_ = std::move(m);
  }
  // Null where there is none.
  std::shared_ptr<PortInbox> pop() {
    auto m = std::move(first_);
    if (m) first_ = std::move(m->next);
    return m;
  }
  ~PortInboxList() {
    while (pop()) {
    }
  }

 private:
  std::shared_ptr<PortInbox> first_;
};

}  // namespace gccl::tcp
