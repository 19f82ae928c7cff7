#include "libgccl/bootstrap/join_place.hpp"

#include <fmt/core.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <string_view>
#include <thread>

#include "libgccl/bootstrap/deadline.hpp"
#include "libgccl/bootstrap/store_file.hpp"
#include "libgccl/bootstrap/tcp_store.hpp"
#include "libgccl/net/bytes.hpp"

namespace gccl {
namespace {

constexpr std::string_view kPlace = "gccl-join-place/2";
// One that asks whether somebody listens may hold the port for a moment.
constexpr std::int64_t kListenMs = 2000;

// What such a file says; as they are where there is none.
Status read_place(const std::string& path, std::vector<SocketAddress>* at, JoinPlace::Token* token) {
  std::vector<std::byte> bytes;
  bool found = false;
  if (Status s = read_store_file(path, 4096, &bytes, &found); !s.ok() || !found) return s;
  SocketAddress::Wire wire{};
  const std::size_t head = kPlace.size() + token->size();
  if (bytes.size() <= head || (bytes.size() - head) % wire.size() != 0 || !starts_with(bytes, kPlace))
    return Status::error(fmt::format("{} makes no sense: is it of the same release?", path), GCCL_ERR_SYSTEM);
  BytesIn in(std::span<const std::byte>(bytes).subspan(kPlace.size()));
  std::ranges::copy(in.raw(token->size()), token->begin());
  while (!in.rest().empty()) {
    std::ranges::copy(in.raw(wire.size()), wire.begin());
    if (const SocketAddress a = SocketAddress::from_wire(wire); a.valid()) at->push_back(a);
  }
  return {};
}

}  // namespace

Status JoinPlace::parse(const std::string& store, const std::string& secret, const std::string& address,
                        JoinPlace* out) {
  out->store_ = store;
  out->secret_ = secret;
  out->address_ = address;
  return parse_store(store, &out->url_);
}

bool JoinPlace::is_here() const {
  if (!url_.at) return true;
  std::vector<SocketAddress> addresses;
  if (!resolve(url_.at->host, url_.at->port, &addresses).ok()) return false;
  const auto own = interface_addresses();
  return std::ranges::any_of(addresses, [&](const SocketAddress& a) {
    return a.is_loopback() || std::ranges::find(own, a.with_port(0)) != own.end();
  });
}

Status JoinPlace::listen(Fd* listener, Token* token) const {
  *token = {};
  if (!url_.at) {
    ListeningPlace where;
    if (Status s = listening_place(address_, !secret_.empty(), &where); !s.ok()) return s;
    if (Status s = listen_on(where, listener); !s.ok()) return s;
    [[maybe_unused]] const ssize_t got = getrandom(token->data(), token->size(), 0);
    assert(got == ssize_t(token->size()));
    BytesOut out;
    out.raw(kPlace).raw(*token);
    std::vector<SocketAddress> addresses = where.published(listener->get());
    // One on this machine finds it at the others, too.
    if (addresses.size() > 1) std::erase_if(addresses, [](const SocketAddress& a) { return a.is_loopback(); });
    for (const SocketAddress& a : addresses) out.raw(a.wire());
    return write_store_file(file(), out.take());
  }
  std::vector<SocketAddress> addresses;
  if (Status s = store_addresses({.at = *url_.at, .secret = secret_}, &addresses); !s.ok()) return s;
  for (const Deadline deadline = Deadline::in_ms(kListenMs);;) {
    Status s;
    for (const SocketAddress& a : addresses)
      if ((s = listen_on(a, listener)).ok()) return s;
    if (deadline.passed()) return s;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void JoinPlace::leave(const Token& token) const {
  if (url_.at) return;
  const auto has_token = [&](const std::string& path) {
    std::vector<SocketAddress> at;
    Token found{};
    return read_place(path, &at, &found).ok() && found == token;
  };
  if (!has_token(file())) return;
  // Another member may write the file just now: so it is looked at once more, under a name of its own.
  std::string aside = file() + ".";
  for (const std::byte b : token) aside += fmt::format("{:02x}", unsigned(b));
  if (std::rename(file().c_str(), aside.c_str()) != 0) return;
  const bool own = has_token(aside);
  [[maybe_unused]] const int put_back = own ? 0 : ::link(aside.c_str(), file().c_str());  // a newer one keeps the name
  remove_store_file(aside);
}

Status JoinPlace::find(std::vector<SocketAddress>* at, Token* token) const {
  at->clear();
  *token = {};
  if (url_.at) {
    if (Status s = resolve(url_.at->host, url_.at->port, at); !s.ok()) return s;
    for (const SocketAddress& a : *at)
      if (Status s = check_reach({.at = *url_.at, .secret = secret_}, a); !s.ok()) return s;
    return {};
  }
  return read_place(file(), at, token);
}

}  // namespace gccl
