// What ranks and rank 0 exchange in one all-gather, over connections and in files alike.
//
// Rank 0 collects everybody's contribution and answers everybody with all of them, or with an error. A contribution
// says how long its rank is going to wait: rank 0 gives up in time to report to it who is missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "libgccl/base/status.hpp"
#include "libgccl/net/bytes.hpp"

namespace gccl {

struct Contribution {
  static constexpr std::size_t kHeadBytes = 4 + 8 + 8 + 8;
  std::int64_t limit_ms = 0, remaining_ms = 0;  // how long the rank waits in all, and from now on
  std::uint64_t bytes = 0;

  std::vector<std::byte> head() const;
  // False when these are not kHeadBytes of a contribution.
  static bool parse(std::span<const std::byte> head, Contribution* out);
};

struct Answer {
  static constexpr std::size_t kHeadBytes = 4 + 4 + 8;
  static constexpr std::size_t kTextBytesMax = 4096;
  std::uint32_t code = 0;   // a GCCL_Result; on success all contributions follow, else the error's text
  std::uint64_t bytes = 0;  // that follow

  std::vector<std::byte> head() const;
  // False when these are not kHeadBytes of an answer with data_bytes of data.
  static bool parse(std::span<const std::byte> head, std::uint64_t data_bytes, Answer* out);
  // The error of this answer, with this text.
  Status status(std::span<const std::byte> text) const;
};

// An answer, whole, that says what went wrong.
std::vector<std::byte> error_answer(const Status& status);

// How much longer than its own limit a rank waits for rank 0's word on who is missing.
constexpr std::int64_t kGraceMs = 1000;

}  // namespace gccl
