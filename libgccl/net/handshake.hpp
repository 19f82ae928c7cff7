// Which peer dials, and does it know the secret? The first bytes of every connection, as a state machine that never
// waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gccl {

// Mutual challenge and response with HMAC-SHA256 over a connected non-blocking socket (handshake_protocol.hpp has the
// frames). The dialling side sends a hello of at most kHelloBytesMax bytes, authenticated too, that says to the
// accepting side what the connection is for. Without a secret the same exchange happens with an empty one. Every frame
// is bounded; whatever else arrives ends in `failed`. How long a peer may take is the caller's to decide.
class Handshake {
 public:
  static constexpr std::size_t kHelloBytesMax = 512;
  enum class State { wants_read, wants_write, done, failed };

  static Handshake dial(std::string secret, std::vector<std::byte> hello);
  static Handshake accept(std::string secret);
  Handshake(Handshake&&) noexcept;
  Handshake& operator=(Handshake&&) noexcept;
  ~Handshake();

  // Reads and writes what it can without waiting, and not one byte beyond the handshake.
  State advance(int fd);
  // After done, accepting side: what the dialling side wants.
  const std::vector<std::byte>& hello() const;
  // After failed: in words, such as "the peer does not know the secret". True in the second when it is that; in the
  // third when the connection ended before the handshake did, so that dialling again may help; in the fourth when this
  // process could not compute what it had to, which says nothing of the peer.
  const std::string& error() const;
  bool unauthenticated() const;
  bool disconnected() const;
  bool failed_here() const;

 private:
  struct Impl;
  explicit Handshake(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gccl
