// The handshake against itself, against another reckoning of its proofs, and against everybody who must not get in.
#include "libgccl/net/handshake.hpp"

#include <doctest/doctest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>

#include "libgccl/net/bytes.hpp"
#include "libgccl/net/handshake_protocol.hpp"
#include "libgccl/net/socket.hpp"

using namespace gccl;
using Bytes = std::vector<std::byte>;

namespace {

HandshakeProtocol::Nonce nonce(unsigned seed) {
  HandshakeProtocol::Nonce n;
  std::mt19937 random(seed);
  for (std::byte& b : n) b = std::byte(random());
  return n;
}

Bytes bytes_of(std::string_view text) { return BytesOut().raw(text).take(); }

// Both sides of one handshake, and what each has said.
struct Pair {
  HandshakeProtocol dialling, accepting;
  Bytes said_by_dialling{}, said_by_accepting{};
  // Changes the byte at this place of what dialling or accepting says; none by default.
  std::size_t flip_in_dialling = std::size_t(-1), flip_in_accepting = std::size_t(-1);

  void run(std::size_t piece_bytes = std::size_t(-1)) {
    for (bool more = true; more;) {
      more = move(dialling, accepting, said_by_dialling, flip_in_dialling, piece_bytes);
      more = move(accepting, dialling, said_by_accepting, flip_in_accepting, piece_bytes) || more;
    }
  }
  static bool move(HandshakeProtocol& from, HandshakeProtocol& to, Bytes& said, std::size_t flip,
                   std::size_t piece_bytes) {
    const std::size_t n = std::min({from.output().size(), to.wants(), piece_bytes});
    if (n == 0) return false;
    Bytes piece(from.output().begin(), from.output().begin() + std::ptrdiff_t(n));
    if (flip >= said.size() && flip < said.size() + n) piece[flip - said.size()] ^= std::byte(1);
    said.insert(said.end(), piece.begin(), piece.end());
    from.sent(n);
    to.received(piece);
    return true;
  }
};

Pair pair(std::string_view dialling_secret, std::string_view accepting_secret, Bytes hello, unsigned seed = 1) {
  return {HandshakeProtocol::dial(dialling_secret, std::move(hello), nonce(seed)),
          HandshakeProtocol::accept(accepting_secret, nonce(seed + 1000))};
}

// The proofs by another interface of the library, from the frames as the header draws them.
Bytes mac(const std::string& secret, const Bytes& text) {
  Bytes key(32), out(32);
  std::size_t bytes = 0;
  EVP_Q_digest(nullptr, "SHA256", nullptr, secret.data(), secret.size(), reinterpret_cast<unsigned char*>(key.data()),
               &bytes);
  EVP_Q_mac(nullptr, "HMAC", nullptr, "SHA256", nullptr, key.data(), key.size(),
            reinterpret_cast<const unsigned char*>(text.data()), text.size(),
            reinterpret_cast<unsigned char*>(out.data()), out.size(), &bytes);
  return out;
}

// Two connected non-blocking sockets.
std::pair<Fd, Fd> sockets() {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

void write_bytes(int fd, std::span<const std::byte> bytes) {
  REQUIRE(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == ssize_t(bytes.size()));
}

// Offers the bytes to a fresh side of either kind, in pieces, and leaves it as it is.
void offer(HandshakeProtocol& to, std::span<const std::byte> bytes, std::size_t piece_bytes = 7) {
  while (!bytes.empty() && to.wants() > 0) {
    const std::size_t n = std::min({bytes.size(), to.wants(), piece_bytes});
    to.received(bytes.first(n));
    bytes = bytes.subspan(n);
  }
}

}  // namespace

TEST_CASE("two sides with one secret find each other, in pieces of any size, and the hello arrives") {
  for (const std::size_t hello_bytes : {0ul, 1ul, 100ul, 511ul, HandshakeProtocol::kHelloBytesMax})
    for (const std::size_t piece_bytes : {1ul, 2ul, 3ul, 39ul, 40ul, 41ul, 10000ul}) {
      Pair p = pair("secret", "secret", Bytes(hello_bytes, std::byte(7)));
      p.run(piece_bytes);
      CHECK(p.dialling.done());
      CHECK(p.accepting.done());
      CHECK(p.accepting.hello() == Bytes(hello_bytes, std::byte(7)));
      CHECK(p.said_by_dialling.size() == 40 + 2 + hello_bytes + 32);
      CHECK(p.said_by_accepting.size() == 40 + 33);
    }
}

TEST_CASE("the frames are those that the header draws") {
  Pair p = pair("the secret", "the secret", bytes_of("hello"));
  p.run();
  const Bytes call = BytesOut().raw("gccl-h\1\1").raw(nonce(1)).take();
  const Bytes challenge = BytesOut().raw("gccl-h\1\2").raw(nonce(1001)).take();
  const Bytes said = BytesOut().raw(call).raw(challenge).raw(std::string_view("\0\5hello", 7)).take();
  const Bytes proof = mac("the secret", BytesOut().raw("gccl dial").raw(said).take());
  const Bytes answer = mac("the secret", BytesOut().raw("gccl accept").raw(said).raw(proof).take());
  CHECK(p.said_by_dialling == BytesOut().raw(call).raw(std::string_view("\0\5hello", 7)).raw(proof).take());
  CHECK(p.said_by_accepting == BytesOut().raw(challenge).u8(1).raw(answer).take());
}

TEST_CASE("no secret is a secret like any other: empty on both sides, or refused") {
  Pair both = pair("", "", bytes_of("x"));
  both.run();
  CHECK(both.dialling.done());
  CHECK(both.accepting.done());
  for (auto [a, b] : {std::pair("", "s"), std::pair("s", ""), std::pair("s", "t"), std::pair("s", "ss")}) {
    Pair p = pair(a, b, bytes_of("x"));
    p.run();
    CHECK(p.accepting.failed());
    CHECK(p.accepting.unauthenticated());
    CHECK(p.accepting.error() == "the peer does not know the secret");
    CHECK(p.dialling.failed());
    CHECK(p.dialling.unauthenticated());
  }
}

TEST_CASE("one changed bit anywhere keeps the side that sees it out") {
  Pair honest = pair("s", "s", bytes_of("hello"));
  honest.run();
  for (std::size_t i = 0; i < honest.said_by_dialling.size(); ++i) {
    Pair p = pair("s", "s", bytes_of("hello"));
    p.flip_in_dialling = i;
    p.run();
    CHECK_MESSAGE(!p.accepting.done(), i);
    CHECK_MESSAGE(!p.dialling.done(), i);
  }
  for (std::size_t i = 0; i < honest.said_by_accepting.size(); ++i) {
    Pair p = pair("s", "s", bytes_of("hello"));
    p.flip_in_accepting = i;
    p.run();
    CHECK_MESSAGE(!p.dialling.done(), i);
    CHECK_MESSAGE(p.accepting.done() == (i >= 40), i);  // it has said its last word by then
  }
}

TEST_CASE("a recorded handshake proves nothing the second time") {
  Pair p = pair("s", "s", bytes_of("hello"));
  p.run();
  auto accepting = HandshakeProtocol::accept("s", nonce(5));
  offer(accepting, p.said_by_dialling);
  CHECK(accepting.failed());
  CHECK(accepting.unauthenticated());
  auto dialling = HandshakeProtocol::dial("s", bytes_of("hello"), nonce(6));
  offer(dialling, p.said_by_accepting);
  CHECK(dialling.failed());
  CHECK(dialling.unauthenticated());
}

TEST_CASE("a reflected proof is rejected") {
  auto dialling = HandshakeProtocol::dial("s", bytes_of("hello"), nonce(1));
  offer(dialling, Bytes(dialling.output().begin(), dialling.output().end()));
  CHECK(dialling.failed());
  // An accepting side whose challenge is taken to a second one, as if that were asked to answer for us.
  auto first = HandshakeProtocol::accept("s", nonce(2));
  offer(first, dialling.output());
  auto second = HandshakeProtocol::accept("s", nonce(3));
  offer(second, first.output());
  CHECK(second.failed());
  CHECK(second.output().size() <= 40);  // no proof in it
}

TEST_CASE("an accepting side proves nothing to a caller who does not") {
  auto accepting = HandshakeProtocol::accept("s", nonce(1));
  Pair p = pair("guess", "s", bytes_of(""));
  p.run();
  CHECK(p.said_by_accepting.size() == 40 + 33);
  CHECK(std::all_of(p.said_by_accepting.begin() + 41, p.said_by_accepting.end(),
                    [](std::byte b) { return b == std::byte(); }));
}

TEST_CASE("what is no handshake fails at its first wrong byte, and lengths are bounded") {
  auto http = HandshakeProtocol::accept("s", nonce(1));
  offer(http, bytes_of("GET / HTTP/1.1\r\n"), 1);
  CHECK(http.failed());
  CHECK(!http.unauthenticated());
  CHECK(http.error() == "not a GCCL handshake");
  CHECK(http.wants() == 0);

  auto lengthy = HandshakeProtocol::accept("s", nonce(1));
  offer(lengthy, BytesOut().raw("gccl-h\1\1").raw(nonce(2)).u16(513).take());
  CHECK(lengthy.failed());
  CHECK(lengthy.error() == "not a GCCL handshake: a hello of 513 bytes");
}

TEST_CASE("another version is named on both sides") {
  auto accepting = HandshakeProtocol::accept("s", nonce(1));
  offer(accepting, BytesOut().raw("gccl-h\2\1").raw(nonce(2)).take());
  CHECK(accepting.failed());
  CHECK(accepting.error().starts_with("the peer speaks version 2 of GCCL's handshake, expected 1"));
  CHECK(to_text(accepting.output().first(8)) == "gccl-h\1\2");
  auto dialling = HandshakeProtocol::dial("s", {}, nonce(1));
  offer(dialling, BytesOut().raw("gccl-h\7\2").raw(nonce(2)).take());
  CHECK(dialling.error().starts_with("the peer speaks version 7"));
}

TEST_CASE("over sockets: done on both sides, and what follows stays in the socket") {
  auto [a, b] = sockets();
  Handshake dialling = Handshake::dial("s", bytes_of("for the store")), accepting = Handshake::accept("s");
  CHECK(accepting.advance(b.get()) == Handshake::State::wants_read);
  CHECK(dialling.advance(a.get()) == Handshake::State::wants_read);
  CHECK(accepting.advance(b.get()) == Handshake::State::wants_read);
  CHECK(dialling.advance(a.get()) == Handshake::State::wants_read);
  write_bytes(a.get(), bytes_of("payload"));  // eager: right behind the proof
  CHECK(accepting.advance(b.get()) == Handshake::State::done);
  write_bytes(b.get(), bytes_of("answer"));
  CHECK(dialling.advance(a.get()) == Handshake::State::done);
  CHECK(dialling.advance(a.get()) == Handshake::State::done);
  CHECK(accepting.hello() == bytes_of("for the store"));
  char text[32] = {};
  CHECK(read(b.get(), text, sizeof text) == 7);
  CHECK(std::string(text) == "payload");
  CHECK(read(a.get(), text, sizeof text) == 6);
}

TEST_CASE("over sockets: the dialling side reports a wrong secret, and does not blame the connection") {
  auto [a, b] = sockets();
  Handshake dialling = Handshake::dial("s", {}), accepting = Handshake::accept("t");
  Handshake::State state[2] = {Handshake::State::wants_read, Handshake::State::wants_read};
  for (int i = 0; i < 10; ++i) state[0] = dialling.advance(a.get()), state[1] = accepting.advance(b.get());
  CHECK(state[0] == Handshake::State::failed);
  CHECK(state[1] == Handshake::State::failed);
  CHECK(dialling.unauthenticated());
  CHECK(accepting.unauthenticated());
  CHECK(!dialling.disconnected());
}

TEST_CASE("over sockets: a peer that ends too early is reported as such") {
  auto [a, b] = sockets();
  Handshake dialling = Handshake::dial("s", {});
  CHECK(dialling.advance(a.get()) == Handshake::State::wants_read);
  b.reset();
  CHECK(dialling.advance(a.get()) == Handshake::State::failed);
  CHECK(dialling.disconnected());
  CHECK(!dialling.unauthenticated());
  CHECK(!dialling.error().empty());
}

TEST_CASE("over sockets: a full socket is waited for") {
  auto [a, b] = sockets();
  const Bytes filler(1 << 16);
  while (send(a.get(), filler.data(), filler.size(), MSG_NOSIGNAL) > 0) {
  }
  Handshake dialling = Handshake::dial("s", {});
  CHECK(dialling.advance(a.get()) == Handshake::State::wants_write);
  Bytes sink(1 << 16);
  while (read(b.get(), sink.data(), sink.size()) > 0) {
  }
  CHECK(dialling.advance(a.get()) == Handshake::State::wants_read);
}

TEST_CASE("two handshakes never say the same") {
  const auto call = [] {
    auto [a, b] = sockets();
    Handshake dialling = Handshake::dial("s", {});
    dialling.advance(a.get());
    Bytes said(64);
    said.resize(std::size_t(std::max<ssize_t>(0, read(b.get(), said.data(), said.size()))));
    return said;
  };
  const Bytes first = call();
  CHECK(first.size() == 40);
  CHECK(first != call());
}
