// Which life of a rank's process is meant: each that begins anew in its place has a greater number.
#pragma once

#include <map>

#include "libgccl/net/bytes.hpp"
#include "libgccl/schedule/types.hpp"

namespace gccl::fault {

using Lives = std::map<Rank, std::uint64_t>;

inline void write(BytesOut& out, const Lives& lives) {
  out.u32(std::uint32_t(lives.size()));
  for (const auto& [rank, life] : lives) out.u32(rank).u64(life);
}

// False: these bytes are none, or name a rank twice.
inline bool read(BytesIn& in, Lives* lives) {
  const std::uint32_t size = in.u32();
  for (std::uint32_t i = 0; i < size && in.ok(); ++i) {
    const Rank rank = in.u32();
    (*lives)[rank] = in.u64();
  }
  return in.ok() && lives->size() == size;
}

}  // namespace gccl::fault
