// Authenticated datagrams between the ranks of a job: what the fault protocol needs when connections have failed.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "libgccl/base/status.hpp"
#include "libgccl/net/digest.hpp"
#include "libgccl/net/socket.hpp"

namespace gccl {

// Each ends in an HMAC by the key, which only the job's ranks know; others are dropped. One may come twice, late, or
// from an earlier run of the same job: its reader must not mind. Several threads may send, one may receive.
class Datagrams {
 public:
  static constexpr std::size_t kBytesMax = 60000;

  // Where the job's transports would listen, too (ListeningPlace).
  static Status open(const std::string& address, bool have_secret, std::unique_ptr<Datagrams>* out);
  void use_key(const Digest& key) { key_ = key; }

  // Which of them is of use depends on where the other is.
  const std::vector<SocketAddress>& addresses() const { return addresses_; }
  // Where all addresses of a rank are of the other family a second socket reaches it, for sending alone: what it
  // answers comes to addresses(). What open() found in the way of that socket, of errno's numbers; 0: nothing.
  int second_error() const { return second_error_; }
  // No rank needs that socket. Before anybody sends.
  void close_second() { second_.reset(); }
  // What others send is refused from now on, and nothing is sent. While no other thread is in any of these functions.
  void close() {
    fd_.reset();
    second_.reset();
  }
  int family() const { return both_ ? 0 : family_; }  // of the first socket; 0: it reaches both
  int fd() const { return fd_.get(); }
  int second_fd() const { return second_.get(); }  // -1: there is none; nothing comes to it but errors
  // As far as the system takes it now. Requires bytes.size() <= kBytesMax.
  void send(const SocketAddress& to, std::span<const std::byte> bytes) const;
  // The next one that is a rank's, and where it came from, which nobody authenticates. False: none for now, or not
  // soon.
  bool receive(std::vector<std::byte>* bytes, SocketAddress* from);
  // Where one went to a port of this machine or another that nobody has open; one at a time, invalid: no more. Nobody
  // authenticates this, and the address may be another machine's too: only in this network does it say something. Call
  // it when fd() is readable, or one of the two in error.
  SocketAddress refused();

 private:
  bool reaches(const SocketAddress& to) const;

  Fd fd_, second_;
  int family_ = 0, second_error_ = 0;
  bool both_ = false;  // families, by the first socket
  std::vector<SocketAddress> addresses_;
  Digest key_{};
};

}  // namespace gccl
