// Over which of its addresses each rank is reached by datagrams. A machine has networks that not all others share, some
// under one address on each of them (docker0), so that only what comes back says which to use.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "libgccl/communicator/recovery/contact.hpp"
#include "libgccl/net/datagrams.hpp"
#include "libgccl/schedule/types.hpp"

namespace gccl {

class DatagramPaths {
 public:
  DatagramPaths() = default;
  DatagramPaths(Rank me, const std::vector<Contact>& contacts);

  // Where it was heard last; all that it may have where it never was, or not since the last few were sent to it, and
  // now and then in any case: the way from there need not lead back, which only it knows.
  void send(const Datagrams& datagrams, Rank to, std::span<const std::byte> bytes);
  // An authenticated one came from there.
  void heard(Rank from, const SocketAddress& at);
  // Whether a port that is not open there is that rank's: it shares this rank's network, or was heard from there.
  bool owns(Rank rank, const SocketAddress& at) const;
  // So many were sent to it, since then, and none has come back ever.
  bool never_heard(Rank rank, unsigned sent, std::int64_t since_ns) const;
  const std::vector<SocketAddress>& addresses(Rank rank) const { return paths_[rank].addresses; }
  std::string text(Rank rank) const;  // its addresses

 private:
  struct Path {
    std::vector<SocketAddress> addresses;
    bool near = false, heard = false;
    std::size_t heard_at = kNever;  // where to send; from elsewhere, nobody knows whether that leads back
    unsigned unanswered = 0, sent = 0;
    std::int64_t first_sent_ns = 0;
  };
  static constexpr std::size_t kNever = ~std::size_t(0);
  static constexpr unsigned kUnansweredMax = 2, kOneOf = 4;

  std::vector<Path> paths_;
};

}  // namespace gccl
