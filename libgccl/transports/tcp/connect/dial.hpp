// The dialling side of a connection: tries a peer's addresses one after the other, and again, until one takes it.
#pragma once

#include <memory>
#include <optional>
#include <string>
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
  };

  // What connects a link to a peer: all its streams. `time_limit`, where it is not the settings' for a peer.
  static std::vector<Target> link(const std::shared_ptr<PortInbox>& from, std::uint32_t to, std::uint32_t channel,
                                  const Settings& settings, std::optional<Clock::duration> time_limit = {});

  // All outlive it.
  Dial(Target target, const std::string* secret, const Settings* settings, Reserve* reserve);
  Next ready() override;
  Next expired() override;
  void dropped() override;
  // The same, of one that never began.
  static void dropped(const Target& target);

 private:
  // How an attempt failed: the connection was refused; nobody answered; the connection was accepted, and nothing came
  // over it; one of the two processes has no descriptor for it.
  enum class Failure { refused, unanswered, silent, no_descriptor };
  enum class Stage { pausing, connecting, handshaking, awaiting_reply, watching };

  Next dial_next();
  Next failed(Failure how, const std::string& why);
  Next end_round();
  Next shake();
  Next accepted();
  Next give_up(int result, const std::string& why);
  static void report(const Target& target, int result, const char* why);

  const std::string* secret_;
  const Settings* settings_;
  Reserve* reserve_;
  const Clock::duration limit_;  // of one attempt
  Target target_;
  Stage stage_ = Stage::pausing;
  Handshake handshake_;
  std::size_t address_ = 0;  // index of the one being tried
  unsigned refusals_ = 0;    // rounds in which every address refused
  Clock::duration silence_ = limit_;
  // Of this round.
  bool unauthenticated_ = false, unanswered_ = false, silent_ = false, no_descriptor_ = false;
  std::string failures_;
};

}  // namespace gccl::tcp
