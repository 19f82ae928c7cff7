// What a link's frames are as bytes, and their checksum.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "libgccl/base/crc32c.hpp"
#include "libgccl/fault/link_reader.hpp"
#include "sim/fault/virtual_time.hpp"

using namespace gccl;
using namespace gccl::fault;

namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> b;
  for (const int v : values) b.push_back(std::byte(v));
  return b;
}

std::vector<std::byte> some(std::uint64_t seed, std::size_t n) {
  sim::Chance c(seed);
  std::vector<std::byte> b(n);
  for (std::byte& x : b) x = std::byte(c.next());
  return b;
}

LinkFrame a_frame() {
  LinkFrame f;
  f.kind = LinkFrame::Kind::data;
  f.answer = true;
  f.epoch = 0xfffffffe;
  f.sequence = 1ull << 40, f.acknowledged = 3, f.credit = 1ull << 63;
  f.message_bytes = 1000, f.signature = 0x123456789abcdef0, f.offset = 300, f.bytes = 700;
  return f;
}

}  // namespace

TEST_CASE("CRC32C gives the values of RFC 3720, appendix B.4") {
  std::vector<std::byte> up(32), down(32);
  for (int i = 0; i < 32; ++i) up[std::size_t(i)] = std::byte(i), down[std::size_t(i)] = std::byte(31 - i);
  const auto command =
      bytes_of({0x01, 0xc0, 0, 0,    0, 0, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 4, 0,
                0,    0,    0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0});
  for (const auto crc : {crc32c, crc32c_by_table}) {
    CHECK(crc(std::vector<std::byte>(32), 0) == 0x8a9136aa);
    CHECK(crc(std::vector<std::byte>(32, std::byte(0xff)), 0) == 0x62a8ab43);
    CHECK(crc(up, 0) == 0x46dd794e);
    CHECK(crc(down, 0) == 0x113fdb5c);
    CHECK(crc(command, 0) == 0xd9963a56);
    CHECK(crc(std::as_bytes(std::span("123456789", 9)), 0) == 0xe3069283);
    CHECK(crc({}, 0) == 0);
  }
}

TEST_CASE("CRC32C by instruction and by table agree, at every length, alignment and cut") {
  const auto data = some(1, 40000);
  const std::span<const std::byte> all = data;
  for (std::size_t n = 0; n < 2000; ++n) CHECK(crc32c(all.subspan(n % 9, n)) == crc32c_by_table(all.subspan(n % 9, n)));
  for (const std::size_t n : {12287u, 12288u, 12289u, 13055u, 13056u, 24576u, 39999u, 40000u}) {
    CAPTURE(n);
    const std::uint32_t whole = crc32c_by_table(all.first(n));
    CHECK(crc32c(all.first(n)) == whole);
    for (const std::size_t cut : {std::size_t(0), std::size_t(1), n / 3, n - 1})
      CHECK(crc32c(all.subspan(cut, n - cut), crc32c(all.first(cut))) == whole);
  }
}

TEST_CASE("a link's header survives the wire, and any damaged bit is noticed") {
  const LinkFrame f = a_frame();
  std::byte h[kLinkHeaderBytes];
  encode(f, h);
  LinkFrame g;
  REQUIRE(decode(h, &g) == nullptr);
  CHECK(g.kind == f.kind);
  CHECK(g.answer == f.answer);
  CHECK(g.epoch == f.epoch);
  CHECK(g.sequence == f.sequence);
  CHECK(g.acknowledged == f.acknowledged);
  CHECK(g.credit == f.credit);
  CHECK(g.message_bytes == f.message_bytes);
  CHECK(g.signature == f.signature);
  CHECK(g.offset == f.offset);
  CHECK(g.bytes == f.bytes);
  CHECK(g.ends_message());
  for (std::size_t bit = 0; bit < 8 * kLinkHeaderBytes; ++bit) {
    CAPTURE(bit);
    h[bit / 8] ^= std::byte(1u << bit % 8);
    CHECK(decode(h, &g) != nullptr);
    h[bit / 8] ^= std::byte(1u << bit % 8);
  }
}

TEST_CASE("a link's header with impossible numbers is refused") {
  struct Case {
    std::uint64_t message_bytes, offset;
    std::uint32_t bytes;
  };
  for (const Case& c : {Case{10, 11, 0}, Case{10, 5, 6}, Case{10, ~0ull, 2}, Case{10, 2, ~0u}, Case{~0ull, 0, 1},
                        Case{10, 0, 0}, Case{1ull << 40, 0, kLinkPayloadBytesMax + 1}}) {
    LinkFrame f = a_frame();
    f.message_bytes = c.message_bytes, f.offset = c.offset, f.bytes = c.bytes;
    std::byte h[kLinkHeaderBytes];
    encode(f, h);
    CHECK(decode(h, &f) != nullptr);
  }
  LinkFrame f = a_frame();
  f.kind = LinkFrame::Kind::control;  // with a payload
  std::byte h[kLinkHeaderBytes];
  encode(f, h);
  CHECK(decode(h, &f) != nullptr);
}

TEST_CASE("a payload is that of its frame, or is not") {
  auto payload = some(2, 700);
  LinkFrame f = a_frame();
  f.payload_crc = crc32c(payload);
  CHECK(intact(f, payload));
  payload[699] ^= std::byte(1);
  CHECK_FALSE(intact(f, payload));
  f.checked = false;
  CHECK(intact(f, payload));
}

TEST_CASE("frames are read from a stream whatever its pieces are, up to the first byte that makes no sense") {
  std::vector<std::byte> stream;
  for (std::uint32_t bytes : {0u, 1u, 700u, 5u}) {
    LinkFrame f = a_frame();
    f.message_bytes = bytes, f.offset = 0, f.bytes = bytes;
    stream.resize(stream.size() + kLinkHeaderBytes);
    encode(f, stream.data() + stream.size() - kLinkHeaderBytes);
    stream.resize(stream.size() + bytes, std::byte(7));
  }
  for (const std::size_t piece : {1u, 2u, 71u, 72u, 73u, 500u, 10000u}) {
    CAPTURE(piece);
    LinkReader reader;
    std::vector<std::size_t> found;
    for (std::size_t at = 0; at < stream.size(); at += piece)
      CHECK(reader.read(std::span<const std::byte>(stream).subspan(at, std::min(piece, stream.size() - at)),
                        [&](auto frame) { return found.push_back(frame.size()), true; }));
    CHECK(found == std::vector<std::size_t>{72, 73, 772, 77});
  }
  stream[72 + 73 + 20] ^= std::byte(1);  // in the third header
  LinkReader reader;
  int count = 0;
  CHECK_FALSE(reader.read(stream, [&](auto) { return ++count, true; }));
  CHECK(count == 2);
}
