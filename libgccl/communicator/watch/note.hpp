// What watches send each other, and what one knows of the others. For watch*.cpp alone.
#pragma once

#include <deque>
#include <optional>
#include <type_traits>
#include <variant>
#include <vector>

#include "libgccl/communicator/watch/watch.hpp"

namespace gccl {

// Flags of a note.
inline constexpr std::uint8_t kQuestion = 1, kAnswer = 2, kBlocked = 4, kAlone = 8, kOfCall = 16, kCollective = 32,
                              kLengths = 64, kLeaves = 128;

inline constexpr std::uint32_t kCallsPerQuestion = 8;  // the latest calls
inline constexpr std::size_t kAheadMax = 2 * kCallsPerQuestion;

// What a rank is in, or one of its calls.
struct Watch::Note {
  std::uint64_t communicator = 0;
  std::uint64_t digest = 0;     // of the calls up to `sequence`; kLengths: elements sent to the reader
  std::uint64_t signature = 0;  // kOfCall: of call `sequence`; else of what the rank is in
  // kOfCall: its count; elsewhere: the communicator there; kLengths: elements due from the reader.
  std::uint64_t count = 0;
  std::uint32_t sequence = 0;
  std::uint32_t peer = 0;  // waited for: a rank of the communicator; elsewhere: of the world; kOfCall: the root
  std::uint32_t element_bytes = 0;  // kOfCall: of a user-defined type; elsewhere: ranks of the communicator there
  In in = In::nothing;
  std::uint8_t flags = 0;
  In there = In::nothing;                // elsewhere: what it is in
  bool limited = false;                  // that ends by a time limit, after which the rank may make other calls
  std::uint32_t sent = 0, received = 0;  // messages to and from the reader that this rank has begun
  std::uint64_t wait = 0;                // in which this rank's thread is, on whatever communicator; 0: none
  // How many agreements this rank has begun, on this communicator and, elsewhere, on the one there.
  std::uint32_t agreements = 0, agreements_there = 0;
};

// A rank sends it to one that it waits for in vain, and that one to those that it waits for (circle.cpp).
struct Watch::Probe {
  static constexpr std::size_t kNamed = 4;
  std::uint64_t communicator = 0;  // on which the sender waits; both are in it
  std::uint64_t wait = 0;          // in which the reader was when the sender heard of it
  std::uint64_t origins_wait = 0;  // of the rank that has sent the first one
  Rank origin = 0, ranks = 0;      // in the world; so many have passed it on
  Rank by[kNamed] = {};            // the first of them
  bool agrees = false;             // one of them agrees on who has failed
  bool limited = false;            // one of their waits has a time limit
  bool apart = false;              // they wait on several communicators
};

// One message; short, so that any transport sends it without waiting for its reader.
struct Watch::Letter : std::variant<Note, Probe> {
  using variant::variant;
};

// What is known of another rank of a communicator.
struct Watch::Peer {
  Rank rank = 0;
  bool asked = false;  // and no answer yet
  std::int64_t asked_ns = 0;
  std::uint32_t confirmed = 0;   // calls up to here are the same
  std::uint32_t differs_at = 0;  // up to here one differs, and this one is the same; 0: not known to
  std::uint32_t asked_for = 0;   // a call between the two, and when; 0: none in this call
  std::int64_t narrowed_ns = 0;
  std::optional<Note> state;  // what it last said that it is in
  std::int64_t heard_ns = 0;
  std::int64_t agrees_since_ns = 0;  // while this rank waits for it in another call; 0: it does not
  std::vector<Note> ahead;           // of calls that this rank has not begun
};

// The notes to and from another rank of the world.
struct Watch::Link {
  Rank world = 0;
  GCCL_Transfer outgoing{}, incoming{};
  Letter sent, received;
  bool sending = false, listening = false;
  std::deque<Letter> outbox;
};

}  // namespace gccl
