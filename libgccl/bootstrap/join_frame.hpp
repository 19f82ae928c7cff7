// What a process that joins and the member that admits it say to each other, once the handshake has succeeded.
//
//   process                                    member
//   introduction                ->
//                               <-             refused: why; or admitted: as which rank, of how many
//   data                        ->                                                   for each all-gather
//                               <-             data, of all ranks
//                               <-             member: all have the new communicator; or again: not all could be
//                                              connected, and it asks anew
//
// A connection that ends without these says nothing: the member may have failed after all had the communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "libgccl/bootstrap/join_place.hpp"
#include "libgccl/schedule/types.hpp"

namespace gccl {

struct JoinFrame {
  enum class Kind : std::uint8_t { introduction = 1, refused, admitted, data, member, again, last = again };
  static constexpr std::size_t kHeadBytes = 5, kBytesMax = std::size_t(1) << 28;

  Kind kind = Kind::data;
  std::vector<std::byte> bytes;

  std::vector<std::byte> encoded() const;
};

// Takes frames from a socket, without waiting.
class JoinFrameReader {
 public:
  enum class State : std::uint8_t { incomplete, complete, closed };
  // complete: *out is the next one. closed: there is no more, or what came makes no sense.
  State read(int fd, JoinFrame* out);

 private:
  std::vector<std::byte> head_, bytes_;
  std::size_t done_ = 0;  // of bytes_
};

// False: not written whole, before that time has passed or the connection has ended.
bool write_join_frame(int fd, const JoinFrame& frame, std::int64_t timeout_ms);

// The hello of a process that joins, of the library of that version.
struct JoinHello {
  std::uint32_t version = 0;
  JoinPlace::Token token{};
  std::vector<std::byte> encoded() const;
  // False: the connection is for something else.
  static bool parse(std::span<const std::byte> hello, JoinHello* out);
};

}  // namespace gccl
