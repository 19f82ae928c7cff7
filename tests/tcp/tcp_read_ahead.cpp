// What a link that listens reads before it is received: its memory is bounded.
#include <doctest/doctest.h>

#include "libgccl/transports/tcp/data/stream.hpp"

using namespace gccl::tcp;

TEST_CASE("what is read ahead by a receiver that is always one message behind takes no more memory with time") {
  constexpr std::size_t kMessage = 1 << 20, kPiece = 64 << 10;
  ReadAhead ahead;
  std::uint64_t in = 0, out = 0;
  for (int messages = 0; messages < 300; ++messages) {
    for (std::size_t got = 0; got < kMessage; got += kPiece) {
      const auto room = ahead.more_room(kPiece);
      for (std::byte& b : room) b = std::byte(in++ / 1000);
      ahead.grew(room.size());
    }
    while (ahead.size() > kMessage) {
      REQUIRE(*ahead.data() == std::byte(out / 1000));
      ahead.drop(kPiece);
      out += kPiece;
    }
  }
  CHECK(ahead.dropped() == out);
  CHECK(ahead.held_bytes() <= 8 * kMessage);
}
