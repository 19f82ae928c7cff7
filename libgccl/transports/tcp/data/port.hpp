// One communicator's traffic over TCP: the links to its peers, and what becomes of their transfers.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "libgccl/transports/tcp/connect/connector.hpp"
#include "libgccl/transports/tcp/data/link.hpp"

namespace gccl::tcp {

// Used by one thread at a time, abort() apart. Links connect when they are first used, those to the first peers on
// other nodes at once (first_peers.hpp): the lower world rank dials. The higher one waits for it, and asks for it where
// it has something to send, so that sends to either side complete although the other has not come to receive. A few
// active links are simply tried one by one, which costs 0.2 us each; many are watched by epoll.
class Port {
 public:
  Port(Connector* connector, const GCCL_Port_spec& spec);
  ~Port();
  Port(const Port&) = delete;

  Status open();
  // GCCL_BACKEND_ADDRESS_BYTES for each rank; see GCCL_Backend::connect_port.
  Status connect(const GCCL_Port_spec& spec, const void* addresses, std::uint8_t* reaches);

  bool send(GCCL_Transfer* t);  // true: complete
  void receive(GCCL_Transfer* t);
  int poll(GCCL_Transfer** done, int max);
  const GCCL_Fault& fault() const { return fault_; }
  std::uint64_t moved_bytes() const { return moved_bytes_; }  // by poll()
  // Connections that were made anew, and bytes that were sent once more, so far.
  LinkCounts link_counts() const;
  // Adds what has been seen of the peers since the last time (Settings::watches), by rank.
  void take_arrivals(fault::Arrivals* by_peer);
  // It will be destroyed soon: says what its peers would else wait for to hear, as far as that goes without waiting.
  void take_leave() noexcept;
  // It will be destroyed while the peers compute: that waits for no word of theirs.
  void close_alone() { alone_ = true; }
  void cancel(GCCL_Transfer* t);
  void abort(const GCCL_Fault& fault) const noexcept;

 private:
  Link* link_for(GCCL_Transfer* t);
  void activate(Link* link);
  void fail(const Link& link, const std::string& problem);
  void suspect(const GCCL_Fault& fault);
  void read_inbox();
  bool dials(std::uint32_t peer) const { return self_.world_rank[self_.rank] < self_.world_rank[peer]; }
  void dial(LinkPlace link, PendingConnection::Clock::duration time_limit);
  Status await(const std::vector<const Link*>& dialled, PendingConnection::Clock::duration limit);
  void check_unconnected();
  void check_vanished();
  bool advance(Link* link);
  void find_ready();
  std::unique_ptr<Link> make_link(std::uint32_t peer, std::uint32_t channel) const;
  void mend(Link* link);
  void check_broken();
  bool has_last_words() const;
  void say_last_words();
  void say_leaving();

  Connector* const connector_;
  const std::shared_ptr<PortInbox> inbox_;
  const PortIdentity& self_;
  std::vector<PortAddress>& peers_;           // the inbox's
  std::vector<std::unique_ptr<Link>> links_;  // peer * channels + channel; null before its first use
  std::list<Arrival> arrivals_;               // that no link has taken yet: where memory is short, they wait
  std::vector<Link*> active_;                 // with transfers in flight
  Fd epoll_;                                  // over the links' connections, once there are many
  Completions done_;
  Staging staging_;
  GCCL_Fault fault_{};
  std::vector<GCCL_Fault> peer_failures_;  // of peers that could not be dialled when nothing was wanted of them
  // A connection ended, or the watch of a peer. A rank that aborts and leaves, or hears of an abort and leaves, is
  // noticed twice: what was said, which takes a moment longer, counts.
  GCCL_Fault suspected_fault_{};
  PendingConnection::Clock::time_point suspected_at_{}, last_listened_{};
  PendingConnection::Clock::duration listened_{};  // since then
  PendingConnection::Clock::duration settles_;     // how long an abort may be on its way at least

  bool alone_ = false, said_leaving_ = false;
  std::uint32_t polls_ = 0;
  std::uint64_t moved_bytes_ = 0;
  PendingConnection::Clock::time_point next_check_{};  // for machines that have vanished

  // Links whose connections broke, and are to go on.
  std::size_t broken_ = 0;

  // Links that wait for a peer to dial: should it be dead, nothing would ever say so.
  std::size_t unconnected_ = 0;
  std::uint32_t polls_unconnected_ = 0, yields_left_ = 0;
  std::vector<PendingConnection::Clock::time_point> waiting_since_;  // by rank; zero: not waiting, max: being watched
};

}  // namespace gccl::tcp
