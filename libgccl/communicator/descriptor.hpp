// What a call is, in the few words that errors, metrics and the mismatch check need.
#pragma once

#include <string>

#include "gccl/gccl.h"
#include "libgccl/schedule/types.hpp"

namespace gccl {

// Besides the collectives: point-to-point calls.
inline constexpr std::uint8_t kSendKind = 14, kRecvKind = 15;

// Of a call that reduces nothing. No std::optional, which the shortest calls would have to look into twice.
inline constexpr GCCL_Op kNoOp = -1;

// The function that the caller called, where it is made of collectives. links: a report before the call that the rest
// of a Descriptor describes.
enum class Purpose : std::uint8_t { itself, split, create, free, finalize, check, confirm, policy, links };

struct Descriptor {
  std::uint8_t kind = 0;  // a Collective, kSendKind or kRecvKind
  Purpose purpose = Purpose::itself;
  GCCL_Dtype dtype = 0;
  GCCL_Op op = kNoOp;
  Rank root = 0;                    // or the peer of a point-to-point call
  Count count = 0;                  // as the caller gave it; for v-collectives a checksum of what must be equal
  std::uint32_t sequence = 0;       // of collectives on the communicator
  std::size_t bytes = 0;            // of user data, for metrics
  std::uint32_t element_bytes = 0;  // of a user-defined type

  bool point_to_point() const { return kind >= kSendKind; }
  // All of this in 64 bits, to travel with every message: exact for counts below 2^32.
  std::uint64_t signature() const;
  // All that must be the same on every rank, apart from the sequence number. User-defined types count by their size and
  // user-defined operations as one: their numbers are each process's own.
  std::uint64_t digest() const;
  // The signature of the same call with another sequence number.
  static std::uint64_t at_sequence(std::uint64_t signature, std::uint32_t sequence) {
    return (signature & ~(std::uint64_t(0x1fff) << 36)) | std::uint64_t(sequence & 0x1fff) << 36;
  }
  // How many calls of a communicator a signature's is after (negative: before) number `sequence`, which is near it.
  static std::int32_t calls_ahead(std::uint64_t signature, std::uint32_t sequence);
  // The last bits of a signature's number of the call; whether those of two are the same.
  static std::uint32_t sequence_in(std::uint64_t signature);
  static bool same_sequence(std::uint64_t a, std::uint64_t b);
  // The purpose of the call that a signature describes.
  static Purpose purpose_of(std::uint64_t signature);
  // What a signature says, with what has come beside it; without bytes.
  static Descriptor of(std::uint64_t signature, std::uint32_t sequence, Rank root, Count count,
                       std::uint32_t element_bytes);
  // "allreduce #17 of 1024 x f32, sum"
  std::string text() const;
};

// What is known of the communicator that a signature comes from.
struct Near {
  std::uint32_t sequence = 0;  // of a call that was about as early
  Rank ranks = 0;
};
// The same of a signature: what another rank calls.
std::string text_of_signature(std::uint64_t signature, const Near& near);
// The same where the root, the count and the bytes of a user-defined type have come beside it.
std::string text_of_signature(std::uint64_t signature, std::uint32_t sequence, Rank root, Count count,
                              std::uint32_t element_bytes);
std::string_view kind_name(std::uint8_t kind);
std::string dtype_text(GCCL_Dtype dtype, std::uint32_t element_bytes);
std::string op_text(GCCL_Op op);

}  // namespace gccl
