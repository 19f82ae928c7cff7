// The accepting side of a connection: which peer is it, and which port is it for?
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "libgccl/transports/tcp/connect/dial.hpp"
#include "libgccl/transports/tcp/connect/pending_connection.hpp"
#include "libgccl/transports/tcp/settings.hpp"

namespace gccl::tcp {

class Accept : public PendingConnection {
 public:
  // What it needs of the connector.
  struct Context {
    std::string secret;
    std::uint64_t nonce = 0;
    Settings settings;
    std::function<std::shared_ptr<PortInbox>(std::uint64_t communicator)> find;
    std::function<void(std::vector<Dial::Target>)> dial;
    // The second for what happens at the end of every job that fails, and is no news.
    std::function<void(const SocketAddress&who, const std::string&why)> refused, turned_away;
  };

  // `last`: the process has no other descriptor left, so this is none for a connection that stays.
  Accept(Fd fd, const SocketAddress& who, const Context* context, bool last);
  Next ready() override;
  Next expired() override;
  Next starved() noexcept override;
  bool unauthenticated() const override { return !watched_ && !held_; }
  // Says that it is dropped in favour of younger ones.
  void report_dropped(const std::string& why) const { context_->refused(who_, why); }

 private:
  Next accept(const ConnectionRequest& request);
  void answer(std::byte answer);
  Next refuse(const std::string& why);
  Next turn_away(const std::string& why);

  const Context* context_;
  SocketAddress who_;
  Handshake handshake_;
  const bool last_;
  std::optional<ConnectionRequest::Kind> accepted_;  // once the peer has heard so
  bool watched_ = false;
};

// Null when this port may take what the request wants; else what is wrong with it.
const char* objection(const ConnectionRequest& request, const PortIdentity& port);

}  // namespace gccl::tcp
