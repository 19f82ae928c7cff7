// The one thread of a rank's TCP backend: listens, and brings about every connection, in either direction. Ports take
// what is ready from their inboxes and never wait for a connection.
#pragma once

#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "libgccl/net/refusal_log.hpp"
#include "libgccl/transports/tcp/connect/accept.hpp"
#include "libgccl/transports/tcp/connect/dial.hpp"
#include "libgccl/transports/tcp/connect/port_address.hpp"
#include "libgccl/transports/tcp/settings.hpp"

namespace gccl::tcp {

class Connector {
 public:
  // Accepted peers that have not proved themselves yet, at most: of more the oldest are dropped. Honest ones are done
  // in a few milliseconds, and dial again when they are dropped.
  static constexpr std::size_t kUnauthenticatedMax = 1024;
  // How long the end waits for pending aborts.
  static constexpr std::chrono::milliseconds kAbortLimit{1000};

  explicit Connector(const GCCL_Backend_environment& environment);
  ~Connector();
  // Ends the thread, after the pending aborts and as long as they may take. Nothing is dialled or accepted
  // any more: ports whose connections exist go on, others fail once they need one. Any thread, any number of times.
  // exit() does it for every connector, while the program's later exit handlers may still be to come.
  void finish();
  // Listens and begins the thread.
  Status start();

  const Settings& settings() const { return accept_context_.settings; }
  // How peers reach this rank.
  const PortAddress& address() const { return address_; }
  const GCCL_Backend_environment& environment() const { return environment_; }

  // Before there are ports: no other transport carries aborts to ranks of the job.
  void serve_alone() { alone_ = true; }
  bool alone() const { return alone_; }

  // Any thread. False when the communicator's number is taken.
  bool open(const std::shared_ptr<PortInbox>& inbox);
  // Nothing will come any more, and the port's pending connections end, aborts apart. The links, the connections that
  // they have not taken, and the peers' watches of this rank, end after the aborts; a link to a peer that has not heard
  // yet that this rank leaves, where it is to, after that.
  void close(const std::shared_ptr<PortInbox>& inbox, std::vector<std::unique_ptr<Link>> links,
             std::list<Arrival> arrivals) noexcept;
  // Every peer of the port gets the fault, or where this rank `passes_on` what it has heard its neighbours: as soon as
  // there is memory, where it is short. The first abort counts.
  void abort(const std::shared_ptr<PortInbox>& inbox, const GCCL_Fault& fault, bool passes_on) noexcept;
  void dial(std::vector<Dial::Target> targets);
  // Whether all has been read of every peer that had dialled this rank by `then`. Where it is not known yet, the thread
  // finds out, and the caller asks again.
  bool read_all_dialled(PendingConnection::Clock::time_point then);

 private:
  using Clock = PendingConnection::Clock;

  using PendingConnections = std::unordered_map<PendingConnection*, std::unique_ptr<PendingConnection>>;

  static void finish_all();
  Status listen();
  void ask_to_stop();
  // With mutex_ held.
  void drop_dials();
  void put_broken(PortInbox& inbox) const;
  void note_command(const std::shared_ptr<PortInbox>& inbox) noexcept;
  void wake();

  // The thread's.
  void run();
  void serve();
  bool over() const;
  void add(std::unique_ptr<PendingConnection> c);
  void add_dial(Dial::Target target);
  PendingConnections::iterator drop(PendingConnections::iterator i);
  void note_unauthenticated(PendingConnection* c);
  void advance(PendingConnection* c, PendingConnection::Next (PendingConnection::*how)());
  void watch(PendingConnection* c);
  void take_commands();
  std::shared_ptr<PortInbox> next_with_commands();
  bool begin_aborts(const std::shared_ptr<PortInbox>& inbox);
  bool accept_pending();  // true: nobody is in the listener's queue any more
  void drop_oldest(const std::string& why);
  void end_left();
  void end() noexcept;
  void pause_listening(std::chrono::milliseconds pause);
  void listen_for(std::uint32_t events);
  void postpone(Clock::duration by);
  void expire();

  const GCCL_Backend_environment environment_;
  PortAddress address_;
  Accept::Context accept_context_;
  RefusalLog refusals_, farewells_;
  Fd listener_, epoll_, wakeup_;
  Reserve reserve_;        // the thread's
  Dial::Answers answers_;  // likewise
  std::mutex join_mutex_;
  std::thread thread_;
  const InUse in_use_;
  bool alone_ = false;

  std::mutex mutex_;  // guards the ports and the commands
  std::unordered_map<std::uint64_t, std::shared_ptr<PortInbox>> ports_;
  std::vector<Dial::Target> dials_;
  PortInboxList with_commands_;  // those whose ports have asked for something
  bool stop_ = false, ended_ = false;
  Status broken_;  // why the thread ended before its time

  // Nobody was in the listener's queue then, nor unauthenticated. And whether somebody asks for that.
  std::atomic<Clock::time_point> quiet_{};
  std::atomic<bool> asked_{false};

  // The thread's.
  PendingConnections pending_;
  std::list<PendingConnection*> unauthenticated_;  // the oldest first
  std::size_t aborts_ = 0;
  PortInboxList left_;          // closed, and their aborts are over
  bool commands_left_ = false;  // until there is memory
  bool stopping_ = false;
  Clock::time_point short_since_{};  // of descriptors, even of the one in reserve, or of this having been logged
  Clock::time_point stop_deadline_{}, listen_again_ = Clock::time_point::max();
  Clock::time_point next_check_{};   // when a deadline passes, at the earliest
  Clock::time_point queue_empty_{};  // the listener's, when this was last seen
};

}  // namespace gccl::tcp
