// What watches send each other, and what one knows of the others. For watch*.cpp alone.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "libgccl/communicator/watch/watch.hpp"

namespace gccl {

// Flags of a note.
inline constexpr std::uint8_t kQuestion = 1, kAnswer = 2, kBlocked = 4, kAlone = 8, kOfCall = 16, kCollective = 32,
                              kLengths = 64, kLeaves = 128;

inline constexpr std::uint32_t kCallsPerQuestion = 8;  // the latest calls
inline constexpr std::size_t kAheadMax = 2 * kCallsPerQuestion;

// One message; short, so that any transport sends it without waiting for its reader.
struct Watch::Note {
  std::uint64_t communicator = 0;
  std::uint64_t digest = 0;     // of the calls up to `sequence`; kLengths: elements sent to the reader
  std::uint64_t signature = 0;  // kOfCall: of call `sequence`; else of what the rank is in
  // kOfCall: its count; elsewhere: the communicator there; kLengths: elements due from the reader; else messages sent
  // to the reader.
  std::uint64_t count = 0;
  std::uint32_t sequence = 0;
  std::uint32_t peer = 0;  // waited for: a rank of the communicator; elsewhere: of the world; kOfCall: the root
  // kOfCall: of a user-defined type; elsewhere: ranks of the communicator there; else messages received from the
  // reader.
  std::uint32_t element_bytes = 0;
  In in = In::nothing;
  std::uint8_t flags = 0;
  In there = In::nothing;  // elsewhere: what it is in
  std::uint8_t reserved = 0;
  // collective, recv: of this rank's blocked wait, and of the one in which it has heard that the rank is that it waits
  // for, which had not begun what would end this one; 0: there is none.
  std::uint32_t wait = 0, awaits = 0;
  // How many agreements this rank has begun, on this communicator and, elsewhere, on the one there.
  std::uint32_t agreements = 0, agreements_there = 0;
};

// What is known of another rank of a communicator.
struct Watch::Peer {
  Rank rank = 0;
  bool asked = false;  // and no answer yet
  std::int64_t asked_ns = 0;
  std::uint32_t confirmed = 0;  // calls up to here are the same
  std::optional<Note> state;    // what it last said that it is in
  std::int64_t heard_ns = 0;
  std::int64_t agrees_since_ns = 0;  // while this rank waits for it in another call; 0: it does not
  std::vector<Note> ahead;           // of calls that this rank has not begun
};

// The notes to and from another rank of the world.
struct Watch::Link {
  Rank world = 0;
  GCCL_Transfer outgoing{}, incoming{};
  Note sent, received;
  bool sending = false, listening = false;
  std::deque<Note> outbox;
};

}  // namespace gccl
