// The dialling side of a connection: tries a peer's addresses one after the other, and again, until one takes it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "libgccl/transports/tcp/connect/pending_connection.hpp"
#include "libgccl/transports/tcp/connect/reserve.hpp"
#include "libgccl/transports/tcp/settings.hpp"

namespace gccl::tcp {

class Dial : public PendingConnection {
 public:
  struct Target {
    // That rank of the inbox's communicator, where its port is reached.
    Target(ConnectionRequest::Kind kind, std::shared_ptr<PortInbox> from, std::uint32_t to, Clock::duration time_limit);

    std::shared_ptr<PortInbox> inbox;  // where the connection goes, or the fault
    std::vector<SocketAddress> addresses;
    ConnectionRequest request;
    Clock::duration time_limit;  // with a peer whose machine does not answer
    bool for_peer = false;       // nobody here waits for it: a shortage of descriptors may pass until the limit
    // The peer was there: where it refuses, its process has ended. Dialled often, and no longer than the limit.
    bool again = false;
    // An abort that most often finds nobody: no port that closes, and no process that ends, waits for it.
    bool ends_with_port = false;
  };

  // What connects a link to a peer: all its streams. `time_limit`, where it is not the settings' for a peer.
  static std::vector<Target> link(const std::shared_ptr<PortInbox>& from, std::uint32_t to, std::uint32_t channel,
                                  const Settings& settings, std::optional<Clock::duration> time_limit = {});

  // What connects a stream once more whose connection broke, and its far end was `remote`; where the peer is to dial,
  // what asks it to, as connection number `broken` did.
  static Target again(const std::shared_ptr<PortInbox>& from, const StreamPlace& place, std::uint32_t streams,
                      const SocketAddress& remote, const Settings& settings);
  static Target ask_again(const std::shared_ptr<PortInbox>& from, const StreamPlace& place, std::uint32_t streams,
                          std::uint64_t broken, const SocketAddress& remote, const Settings& settings);
  // What says that this rank leaves, to a peer at `remote`.
  static Target leave(const std::shared_ptr<PortInbox>& from, std::uint32_t to, const SocketAddress& remote,
                      const Settings& settings);

  // Where peers have answered that have several addresses, by their listeners' nonces: tried first from then on.
  using Answers = std::unordered_map<std::uint64_t, SocketAddress>;

  // All outlive it.
  Dial(Target target, const std::string* secret, const Settings* settings, Reserve* reserve, Answers* answers);
  Next ready() override;
  Next expired() override;
  Next starved() noexcept override;
  void dropped() override;
  bool outlives_links(std::vector<std::unique_ptr<Link>>* links) override;
  // The same, of one that never began.
  static void dropped(const Target& target);
  // Likewise, for want of memory: of a request of that kind from that port.
  static void starved(ConnectionRequest::Kind kind, PortInbox& from) noexcept;

 private:
  // How an attempt failed: the connection was refused; this machine has no way to the address at all, or none at the
  // moment; nobody answered; the connection was accepted, and nothing came over it; one of the two processes has no
  // descriptor for it; the peer has left the communicator.
  enum class Failure { refused, no_way, cut_off, unanswered, silent, no_descriptor, left };
  enum class Stage { pausing, connecting, handshaking, awaiting_reply, watching, lingering };

  Failure refusal(int error) const;
  bool may_be_damaged() const;
  Next dial_next();
  Next failed_here(const std::string& why);
  Next failed(Failure how, const std::string& why);
  Next end_round();
  Next next_round(Clock::duration pause);
  Next watch_again();
  Next shake();
  Next accepted();
  Next give_up(int result, const std::string& why);
  static void report(const Target& target, int result, const char* why, bool advises = true) noexcept;
  StreamPlace place() const;

  const std::string* secret_;
  const Settings* settings_;
  Reserve* reserve_;
  Answers* answers_;
  const Clock::duration limit_;  // of one attempt
  Clock::duration attempt_;      // of one to connect, where others may go better
  Target target_;
  Stage stage_ = Stage::pausing;
  Handshake handshake_;
  std::vector<std::unique_ptr<Link>> links_;  // of a port that has left: to the peer that is to hear it
  std::size_t address_ = 0;                   // index of the one being tried
  unsigned refusals_ = 0;                     // rounds that say that nobody is there
  Clock::duration pause_again_{};
  Clock::duration silence_ = limit_;
  // Of this round.
  bool unauthenticated_ = false, refused_ = false, cut_off_ = false, unanswered_ = false, silent_ = false,
       no_descriptor_ = false, left_ = false;
  std::size_t short_of_ = 0;  // addresses, of this round, for which this process had no descriptor or no memory
  bool failed_here_ = false;  // at another one, which was there: this process could not compute a handshake
  bool all_short() const { return failed_here_ || short_of_ == target_.addresses.size(); }
  std::string failures_;
};

}  // namespace gccl::tcp
