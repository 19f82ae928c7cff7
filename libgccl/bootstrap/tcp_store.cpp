#include "libgccl/bootstrap/tcp_store.hpp"

#include <fmt/core.h>

#include "libgccl/net/bytes.hpp"

namespace gccl {
namespace {
constexpr std::string_view kStoreHello = "gccl-store/1";
}

std::string text_of(const HostPort& at) {
  const bool v6 = at.host.find(':') != at.host.npos;
  return v6 ? fmt::format("tcp://[{}]:{}", at.host, at.port) : fmt::format("tcp://{}:{}", at.host, at.port);
}

std::vector<std::byte> tcp_store_hello(Rank rank, Rank size) {
  return BytesOut().raw(kStoreHello).u32(size).u32(rank).take();
}

Status parse_tcp_store_hello(std::span<const std::byte> hello, Rank size, Rank* rank) {
  const auto wrong = [](std::string text) { return Status::error(std::move(text), GCCL_ERR_INVALID_ARGUMENT); };
  if (hello.size() != kStoreHello.size() + 8 || !starts_with(hello, kStoreHello))
    return wrong("the connection is not meant for a store");
  BytesIn in(hello.subspan(kStoreHello.size()));
  const Rank found_size = in.u32(), found_rank = in.u32();
  if (found_size != size)
    return wrong(
        fmt::format("rank {} of a job of {} ranks dialled the store of a job of {}", found_rank, found_size, size));
  if (found_rank == 0 || found_rank >= size)
    return wrong(fmt::format("rank {} dialled, expected 1 to {}", found_rank, size - 1));
  *rank = found_rank;
  return {};
}

Status check_reach(const TcpStore& store, const SocketAddress& address) {
  if (!store.secret.empty() || address.is_loopback()) return {};
  return Status::error(
      fmt::format("the store {} ({}) is reached from other machines, which takes a secret: set GCCL_SECRET or "
                  "GCCL_SECRET_FILE for every rank, or use 127.0.0.1 when all ranks are on one machine",
                  text_of(store.at), address.host()),
      GCCL_ERR_INVALID_ARGUMENT);
}

Status open_tcp_store(const TcpStore& store, std::unique_ptr<Exchange>* out) {
  if (store.rank == 0) return open_tcp_store_server(store, out);
  *out = make_tcp_store_client(store);
  return {};
}

}  // namespace gccl
