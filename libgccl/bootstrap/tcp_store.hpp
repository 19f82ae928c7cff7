// Ranks that meet at a TCP address: rank 0 listens there, the others dial it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "libgccl/bootstrap/bootstrap.hpp"
#include "libgccl/net/socket.hpp"

namespace gccl {

struct TcpStore {
  HostPort at;
  Rank rank = 0, size = 1;
  std::string secret;
  std::int64_t start_timeout_ms = 60000;
};

// Rank 0: listens from now on; a port still in use is tried again for five seconds. Others: dial in their first
// all_gather, again and again until rank 0 answers. GCCL_ERR_INVALID_ARGUMENT when the address is more than loopback
// and there is no secret.
Status open_tcp_store(const TcpStore& store, std::unique_ptr<Exchange>* out);

// The two halves of open_tcp_store. A server serves store.size - 1 ranks in one loop inside all_gather, needs no
// thread, and stops listening once all of them are there.
Status open_tcp_store_server(const TcpStore& store, std::unique_ptr<Exchange>* out);
std::unique_ptr<Exchange> make_tcp_store_client(const TcpStore& store);

// The hello of a rank that dials.
std::vector<std::byte> tcp_store_hello(Rank rank, Rank size);
// GCCL_ERR_INVALID_ARGUMENT unless it is the hello of one of the ranks 1 .. size-1 of a job of this size.
Status parse_tcp_store_hello(std::span<const std::byte> hello, Rank size, Rank* rank);

// Where its server listens. `elsewhere`: where this machine has none of the host's addresses, what is to be said of
// that if nobody comes, as rank 0 may be on another machine than was thought.
Status store_addresses(const TcpStore& store, std::vector<SocketAddress>* out, std::string* elsewhere = nullptr);
// "tcp://HOST:PORT".
std::string text_of(const HostPort& at);
// Refuses addresses beyond loopback when there is no secret.
Status check_reach(const TcpStore& store, const SocketAddress& address);

}  // namespace gccl
