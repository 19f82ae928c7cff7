#include "libgccl/net/handshake.hpp"

#include <fmt/core.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <system_error>

#include "libgccl/net/handshake_protocol.hpp"

namespace gccl {
namespace {

static_assert(Handshake::kHelloBytesMax == HandshakeProtocol::kHelloBytesMax);

HandshakeProtocol::Nonce new_nonce() {
  HandshakeProtocol::Nonce nonce;
  const ssize_t got = getrandom(nonce.data(), nonce.size(), 0);  // up to 256 bytes come whole, getrandom(2)
  assert(got == ssize_t(nonce.size()));
  return nonce;
}

bool would_wait(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

struct Handshake::Impl {
  HandshakeProtocol protocol;
  bool over = false;
  State result = State::failed;
  std::string error{};
  bool disconnected = false;

  State end(State state) {
    over = true;
    return result = state;
  }
  State lose(std::string why) {
    error = std::move(why);
    disconnected = true;
    return end(State::failed);
  }
  State fail_as_protocol() {
    error = protocol.error();
    return end(State::failed);
  }
  State advance(int fd);
};

Handshake::State Handshake::Impl::advance(int fd) {
  if (over) return result;
  for (;;) {
    while (!protocol.output().empty()) {
      const auto output = protocol.output();
      const ssize_t n = send(fd, output.data(), output.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n >= 0) {
        protocol.sent(std::size_t(n));
        continue;
      }
      if (errno == EINTR) continue;
      if (protocol.failed()) return fail_as_protocol();  // the peer need not hear why
      if (would_wait(errno)) return State::wants_write;
      return lose(fmt::format("the connection broke during the handshake: {}", std::generic_category().message(errno)));
    }
    if (protocol.done()) return end(State::done);
    if (protocol.failed()) return fail_as_protocol();
    std::array<std::byte, 1024> buffer;
    const ssize_t n = recv(fd, buffer.data(), std::min(buffer.size(), protocol.wants()), MSG_DONTWAIT);
    if (n > 0) {
      protocol.received(std::span(buffer).first(std::size_t(n)));
      continue;
    }
    if (n == 0) return lose("the peer closed the connection during the handshake");
    if (errno == EINTR) continue;
    if (would_wait(errno)) return State::wants_read;
    return lose(fmt::format("the connection broke during the handshake: {}", std::generic_category().message(errno)));
  }
}

Handshake::Handshake(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Handshake::Handshake(Handshake&&) noexcept = default;
Handshake& Handshake::operator=(Handshake&&) noexcept = default;
Handshake::~Handshake() = default;

Handshake Handshake::dial(std::string secret, std::vector<std::byte> hello) {
  return Handshake(std::make_unique<Impl>(Impl{HandshakeProtocol::dial(secret, std::move(hello), new_nonce())}));
}

Handshake Handshake::accept(std::string secret) {
  return Handshake(std::make_unique<Impl>(Impl{HandshakeProtocol::accept(secret, new_nonce())}));
}

Handshake::State Handshake::advance(int fd) { return impl_->advance(fd); }
const std::vector<std::byte>& Handshake::hello() const { return impl_->protocol.hello(); }
const std::string& Handshake::error() const { return impl_->error; }
bool Handshake::unauthenticated() const { return impl_->protocol.unauthenticated(); }
bool Handshake::disconnected() const { return impl_->disconnected; }
bool Handshake::failed_here() const { return impl_->protocol.failed_here(); }

}  // namespace gccl
