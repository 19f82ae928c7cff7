// What every datagram between ranks that go on without others begins with.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libgccl/net/bytes.hpp"
#include "libgccl/schedule/types.hpp"

namespace gccl {

struct DatagramHeader {
  enum class Kind : std::uint8_t { membership = 1, said, want, detector, broken, broken_known, decided };

  std::uint64_t id = 0;  // of the communicator; detector: of the job
  Rank from = 0;         // its rank there
  Rank to_world = 0;
  Kind kind = Kind::membership;

  static constexpr std::size_t kKindAt = 16, kBytes = 17;

  void write(BytesOut& out) const { out.u64(id).u32(from).u32(to_world).u8(std::uint8_t(kind)); }
  // in.ok() says whether there was one.
  static DatagramHeader read(BytesIn& in) {
    DatagramHeader h;
    h.id = in.u64();
    h.from = in.u32();
    h.to_world = in.u32();
    h.kind = Kind(in.u8());
    return h;
  }
};

}  // namespace gccl
