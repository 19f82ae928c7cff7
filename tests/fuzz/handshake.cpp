// Any bytes offered to either side of a handshake end in done or failed; never a crash, a hang or a leak. And a frame
// of an honest handshake that was tampered with makes the side fail that reads it.
//
// Input: kind, piece size, then for kinds 0 and 1 the bytes that an accepting or dialling side hears, and for others
// triples (side, place, change) that alter an honest handshake.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "libgccl/net/handshake_protocol.hpp"

namespace {

using gccl::HandshakeProtocol;
using Bytes = std::span<const std::byte>;

// The bytes between the two, with places to be changed.
struct Wire {
  std::map<std::size_t, std::byte> changes{};
  std::size_t at = 0;
  bool changed = false;

  bool move(HandshakeProtocol& from, HandshakeProtocol& to, std::size_t piece_bytes) {
    const std::size_t n = std::min({from.output().size(), to.wants(), piece_bytes});
    if (n == 0) return false;
    std::vector<std::byte> piece(from.output().begin(), from.output().begin() + std::ptrdiff_t(n));
    for (std::size_t i = 0; i < n; ++i)
      if (const auto c = changes.find(at + i); c != changes.end() && c->second != std::byte()) {
        piece[i] ^= c->second;
        changed = true;
      }
    at += n;
    from.sent(n);
    to.received(piece);
    return true;
  }
};

void hear(HandshakeProtocol side, Bytes bytes, std::size_t piece_bytes) {
  while (!bytes.empty() && side.wants() > 0) {
    const std::size_t n = std::min({bytes.size(), side.wants(), piece_bytes});
    side.received(bytes.first(n));
    bytes = bytes.subspan(n);
    side.sent(side.output().size());
  }
  if (side.done()) __builtin_trap();  // nobody here knows the secret
  if (side.failed() == side.error().empty()) __builtin_trap();
}

void tamper(Bytes bytes, std::size_t piece_bytes) {
  Wire from_dialling, from_accepting;
  for (; bytes.size() >= 3; bytes = bytes.subspan(3))
    (bytes[0] == std::byte() ? from_dialling : from_accepting).changes[std::size_t(bytes[1])] = bytes[2];
  auto dialling = HandshakeProtocol::dial("secret", {std::byte(1), std::byte(2), std::byte(3)}, {});
  auto accepting = HandshakeProtocol::accept("secret", {std::byte(9)});
  for (bool more = true; more;) {
    more = from_dialling.move(dialling, accepting, piece_bytes);
    more = from_accepting.move(accepting, dialling, piece_bytes) || more;
  }
  const bool changed = from_dialling.changed || from_accepting.changed;
  if (dialling.done() == changed) __builtin_trap();
  if (from_dialling.changed && accepting.done()) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const Bytes bytes = std::as_bytes(std::span(data, size)).subspan(2);
  const std::size_t piece_bytes = std::size_t(data[1]) + 1;
  switch (data[0]) {
    case 0: hear(HandshakeProtocol::accept("secret", {}), bytes, piece_bytes); break;
    case 1: hear(HandshakeProtocol::dial("secret", {std::byte(1)}, {}), bytes, piece_bytes); break;
    default: tamper(bytes, piece_bytes);
  }
  return 0;
}
