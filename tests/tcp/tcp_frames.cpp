// What travels between ranks over TCP, as bytes: frames, connection requests, addresses.
#include "libgccl/communicator/descriptor.hpp"
#include "libgccl/transports/tcp/connect/accept.hpp"
#include "tests/support/tcp_ranks.hpp"

using namespace tcp_test;

namespace {

void check_numbers(const tcp::Frame& found, const tcp::Frame& due) {
  CHECK(found.sequence == due.sequence);
  CHECK(found.message_bytes == due.message_bytes);
  CHECK(found.signature == due.signature);
  CHECK(found.offset == due.offset);
  CHECK(found.bytes == due.bytes);
  CHECK(found.acknowledged == due.acknowledged);
}

}  // namespace

TEST_CASE("a frame header survives the wire and every bound is checked") {
  tcp::Frame f{0xfffffffe, 1000, 0x123456789abcdef0, 300, 700};
  f.answer = true;
  f.acknowledged = 0xfedcba9876543210;
  std::byte h[tcp::kFrameHeaderBytes];
  encode(f, h);
  tcp::Frame g;
  REQUIRE(decode(h, &g) == nullptr);
  check_numbers(g, f);
  CHECK(g.answer);
  CHECK_FALSE(g.acknowledge);
  CHECK_FALSE(g.control);
  for (const tcp::Frame& bad :
       {tcp::Frame{0, 10, 0, 11, 0}, tcp::Frame{0, 10, 0, 5, 6}, tcp::Frame{0, 10, 0, ~0ull, 2},
        tcp::Frame{0, 10, 0, 2, ~0ull}, tcp::Frame{0, ~0ull, 0, 0, 1}, tcp::Frame{0, 10, 0, 0, 0}}) {
    encode(bad, h);
    CHECK(decode(h, &g) != nullptr);
  }
  tcp::Frame control;
  control.control = true;
  encode(control, h);
  REQUIRE(decode(h, &g) == nullptr);
  CHECK(g.control);
  control.message_bytes = control.bytes = 1;
  encode(control, h);
  CHECK(decode(h, &g) != nullptr);
  for (int i = 0; i < 4; ++i) {
    encode(f, h);
    h[i] ^= std::byte{0x40};
    CHECK(decode(h, &g) != nullptr);
  }
}

TEST_CASE("each damaged bit of a header that is checked is found, and its fields are as without") {
  tcp::Frame f{77, (1ull << 46) + 5, 0x123456789abcdef0, (1ull << 45) + 3, (1ull << 38) + 1};
  f.acknowledge = true;
  f.payload_crc = 0x89abcdef;
  f.acknowledged = ~0ull;
  std::byte h[tcp::kFrameHeaderBytes], plain[tcp::kFrameHeaderBytes];
  encode(f, h, true);
  encode(f, plain);
  for (const bool checked : {true, false}) {
    tcp::Frame g;
    REQUIRE(decode(checked ? h : plain, &g, checked) == nullptr);
    check_numbers(g, f);
    CHECK(g.acknowledge);
    CHECK_FALSE(g.answer);
    CHECK(g.payload_crc == f.payload_crc);
  }
  tcp::Frame g;
  CHECK(decode(plain, &g, true) == tcp::kDamagedHeader);
  for (std::size_t bit = 0; bit < 8 * sizeof h; ++bit) {
    h[bit / 8] ^= std::byte(1u << bit % 8);
    CHECK(decode(h, &g, true) == tcp::kDamagedHeader);
    h[bit / 8] ^= std::byte(1u << bit % 8);
  }
}

TEST_CASE("connection requests and port addresses survive the wire, and any bytes may come instead") {
  tcp::ConnectionRequest h;
  h.kind = tcp::ConnectionRequest::Kind::abort;
  h.connection = 12, h.fresh = false;
  h.communicator = 7, h.nonce = 8, h.from = 3, h.to = 4, h.fault.result = GCCL_ERR_ABORTED, h.fault.peer = 3;
  std::memset(h.fault.text, 'x', sizeof h.fault.text - 1);
  h.fault.text[5] = '\n';
  std::memcpy(h.fault.text + 10, "\u202e", 3);
  std::memcpy(h.fault.text + sizeof h.fault.text - 3, "\xe2\x80", 2);  // cut short
  tcp::ConnectionRequest g;
  REQUIRE(decode(encode(h), &g));
  CHECK(g.fault.result == GCCL_ERR_ABORTED);
  const std::string text = g.fault.text;
  CHECK(text.size() == GCCL_BACKEND_TEXT_BYTES - 3);  // three bytes are one
  CHECK(text[5] == ' ');
  CHECK(text.substr(9, 3) == "x x");
  CHECK(text.ends_with("x\xe2\x80"));
  CHECK(g.nonce == 8);
  CHECK(g.connection == 12);
  CHECK_FALSE(g.fresh);
  auto bytes = encode(h);
  bytes.push_back(std::byte{'x'});
  CHECK(!decode(bytes, &g));

  tcp::PortAddress a;
  a.world_rank = 9, a.nonce = 10, a.host = 11;
  for (int i = 0; i < 20; ++i)
    a.addresses.push_back(SocketAddress::loopback(std::uint16_t(1000 + i), i % 2 ? AF_INET : AF_INET6));
  std::byte wire[GCCL_BACKEND_ADDRESS_BYTES];
  encode(a, wire);
  tcp::PortAddress b;
  REQUIRE(decode(wire, &b));
  CHECK(b.addresses.size() == tcp::PortAddress::kAddressesMax);
  CHECK(b.addresses[8] == a.addresses[8]);
  const std::byte none[GCCL_BACKEND_ADDRESS_BYTES] = {};
  CHECK(!decode(none, &b));

  Random random(5);
  for (int i = 0; i < 20000; ++i) {
    auto damaged = encode(h);
    std::byte damaged_wire[GCCL_BACKEND_ADDRESS_BYTES];
    std::memcpy(damaged_wire, wire, sizeof wire);
    for (int k = 0; k < 3; ++k) {
      damaged[random() % damaged.size()] = std::byte(random());
      damaged_wire[random() % sizeof wire] = std::byte(random());
    }
    damaged.resize(random() % (damaged.size() + 1));
    if (decode(damaged, &g)) CHECK(g.stream < g.streams);
    if (decode(damaged_wire, &b)) CHECK(b.addresses.size() <= tcp::PortAddress::kAddressesMax);
  }
}

TEST_CASE("any signature that a peer may send has a text") {
  for (std::uint64_t kind = 0; kind < 16; ++kind)
    for (std::uint64_t rest : {std::uint64_t(0), ~std::uint64_t(0), std::uint64_t(0x123456789abcdef)}) {
      const std::string text = text_of_signature(kind << 60 | (rest >> 4), {.sequence = 1, .ranks = 4});
      CHECK(text.size() > 3);
      CHECK(text.size() < 120);
    }
  // A report before a call of no kind.
  CHECK(text_of_signature(std::uint64_t(13) << 60 | std::uint64_t(13) << 45, {.sequence = 0, .ranks = 4})
            .starts_with("unknown "));
}

TEST_CASE("an abort must say why, and whom it concerns") {
  const tcp::PortIdentity port{1, 0, 3, 1, {0, 1, 2}};
  tcp::ConnectionRequest h;
  h.kind = tcp::ConnectionRequest::Kind::abort;
  h.from = 1, h.to = 0;
  for (const int result : {-5, 0, 7, 99, GCCL_ERR_RANKS_CHANGED + 1, 1 << 30}) {
    h.fault.result = result;
    CHECK(objection(h, port) != nullptr);
  }
  h.fault.result = GCCL_ERR_MISMATCH;
  h.fault.peer = 3;
  CHECK(objection(h, port) != nullptr);
  h.fault.peer = 2;
  CHECK(objection(h, port) == nullptr);
}

TEST_CASE("of two ranks one dials, and only the other asks it to") {
  const tcp::PortIdentity port{1, 1, 3, 1, {0, 1, 2}};
  for (const auto& [kind, dialler] :
       {std::pair(tcp::ConnectionRequest::Kind::stream, 0u), std::pair(tcp::ConnectionRequest::Kind::ask, 2u)})
    for (const std::uint32_t from : {0u, 2u}) {
      tcp::ConnectionRequest h;
      h.kind = kind;
      h.from = from, h.to = 1;
      CHECK((objection(h, port) == nullptr) == (from == dialler));
      h.channel = 1;
      CHECK(objection(h, port) != nullptr);
    }
}
