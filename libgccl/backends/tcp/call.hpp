// The dialling side of a connection: tries a peer's addresses one after the other, and again, until one takes it.
#pragma once

#include <string>
#include <vector>

#include "libgccl/backends/tcp/conversation.hpp"
#include "libgccl/backends/tcp/settings.hpp"

namespace gccl::tcp {

class Call : public Conversation {
 public:
  struct Target {
    std::shared_ptr<Mailbox> mailbox;  // where the connection goes, or the fault
    std::vector<SocketAddress> addresses;
    Hello hello;
  };

  // Both outlive it.
  Call(Target target, const std::string* secret, const Settings* settings);
  Next ready() override;
  Next expired() override;

 private:
  enum class Stage { pausing, connecting, handshaking, awaiting_welcome, watching };

  Next dial_next();
  Next failed(const std::string& why);
  Next shake();
  Next welcomed();
  Next give_up(int result, const std::string& why);

  const std::string* secret_;
  const Settings* settings_;
  Target target_;
  Stage stage_ = Stage::pausing;
  Handshake handshake_;
  std::size_t address_ = 0;  // index of the one being tried
  unsigned round_ = 0;
  bool unauthenticated_ = false;
  std::string failures_;  // of this round
};

}  // namespace gccl::tcp
