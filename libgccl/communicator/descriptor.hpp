// What a call is, in the few words that errors, metrics and the mismatch check need.
#pragma once

#include <string>

#include "gccl/gccl.h"
#include "libgccl/schedule/types.hpp"

namespace gccl {

// Beside the collectives: point-to-point calls.
inline constexpr std::uint8_t kSendKind = 14, kRecvKind = 15;

struct Descriptor {
  std::uint8_t kind = 0;  // a Collective, kSendKind or kRecvKind
  GCCL_Dtype dtype = 0;
  GCCL_Op op = -1;             // -1: none
  Rank root = 0;               // or the peer of a point-to-point call
  Count count = 0;             // as the caller gave it; for v-collectives a checksum of what must be equal
  std::uint32_t sequence = 0;  // of collectives on the communicator
  std::size_t bytes = 0;       // of user data, for metrics

  bool point_to_point() const { return kind >= kSendKind; }
  // All of this in 64 bits, to travel with every message: exact for counts below 2^32.
  std::uint64_t signature() const;
  // The signature of the same call with another sequence number.
  static std::uint64_t at_sequence(std::uint64_t signature, std::uint32_t sequence) {
    return (signature & ~(std::uint64_t(0x1fff) << 36)) | std::uint64_t(sequence & 0x1fff) << 36;
  }
  // "allreduce #17 of 1024 x f32, sum"
  std::string text() const;
};

// The same of a signature: what another rank calls.
std::string text_of_signature(std::uint64_t signature);
std::string_view kind_name(std::uint8_t kind);
std::string dtype_text(GCCL_Dtype dtype);
std::string op_text(GCCL_Op op);

}  // namespace gccl
