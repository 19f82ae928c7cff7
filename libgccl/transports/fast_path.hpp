// What a built-in transport may offer in addition to its GCCL_Backend where it reaches every peer of a communicator:
// short messages, and whole schedules of them, carried out in the caller's thread without a transfer for each message.
//
// The communicator asks for a whole attempt with one call, never for a step: that keeps a call of 8 bytes at a tenth of
// a microsecond. Where there is no fast path, where it declines, or where an attempt takes longer than the caller
// waits, everything goes on by transfers or by later attempts; results are the same.
//
// It is C++ inside the library and no part of the plug-in interface: it hands over steps, regions and kernels.
#pragma once

#include <memory>

#include "gccl/backend.h"
#include "libgccl/base/backoff.hpp"
#include "libgccl/elements/elements.hpp"
#include "libgccl/schedule/schedule.hpp"

namespace gccl {

// No fast path takes longer messages.
inline constexpr std::uint32_t kShortBytesMax = 32 * 1024 - 1;

// Where a call's buffers are; indexed by Buffer.
struct Buffers {
  std::byte* base[4] = {};
};

// Messages of one rank.
struct Traffic {
  std::uint64_t messages_sent = 0, messages_received = 0, bytes_sent = 0, bytes_received = 0;
};

// A message that is not the one that is due.
struct Difference {
  Rank peer = 0;
  std::uint64_t signature = 0, bytes = 0, bytes_due = 0;
};

struct Replay;

// A schedule compiled for one communicator. Shared by all calls of its shape.
class Program {
 public:
  virtual ~Program() = default;

  // blocked: a message is missing. mismatch: another one has come: difference(). failed: fault(). After these two the
  // replay is over.
  enum class Outcome { done, blocked, mismatch, failed };
  // Goes on until a message is missing; looks for that one for as long as `backoff` waits, or once where it is null.
  virtual Outcome advance(Replay& replay, Backoff* backoff) const = 0;

  // What a replay that is not done waits for: the step that waits, counted from 0, and the message that it waits for.
  struct Awaited {
    Rank peer;
    std::uint32_t bytes;
    std::size_t steps;  // of the whole program
    bool receives;      // a message is waited for, and not the taking of one
  };
  virtual Awaited awaited(const Replay& replay) const = 0;
  // Looks whether a peer has failed or aborted, or the one that is waited for has left; then *fault says so.
  virtual bool healthy(const Replay& replay, GCCL_Fault* fault) const = 0;
  virtual Difference difference(const Replay& replay) const = 0;
  virtual GCCL_Fault fault(const Replay& replay) const = 0;

  Traffic traffic;  // of a whole replay
};

// One execution of a program, as far as it has come.
struct Replay {
  const Program* program = nullptr;
  Buffers buffers;
  const Elements* elements = nullptr;  // must stay where they are
  std::uint64_t signature = 0, signature_found = 0, bytes_found = 0;
  std::size_t next = 0;        // step
  std::uint32_t received = 0;  // bytes of the message that this step waits for

  void begin(const Program& p, const Buffers& where, const Elements& of, std::uint64_t sign) {
    program = &p;
    // One by one: copied in wider pieces they would wait for stores that have just been made.
    for (int i = 0; i < 4; ++i) buffers.base[i] = where.base[i];
    elements = &of;
    signature = sign;
    next = 0;
    received = 0;
  }
  Program::Outcome advance(Backoff* backoff = nullptr) { return program->advance(*this, backoff); }
  Program::Awaited awaited() const { return program->awaited(*this); }
  bool healthy(GCCL_Fault* fault) const { return program->healthy(*this, fault); }
  Difference difference() const { return program->difference(*this); }
  GCCL_Fault fault() const { return program->fault(*this); }
};

// Belongs to one port, for as long as that is open. One thread at a time.
class FastPath {
 public:
  virtual ~FastPath() = default;
  // Null where the schedule's messages are too long or too many.
  virtual std::unique_ptr<Program> compile(Schedule schedule, std::uint32_t element_bytes) = 0;
  // A message of at most kShortBytesMax bytes to or from another rank, while nothing else is in flight on the channel.
  // False, and nothing done, where there is no room; where it is not there when `backoff` gives up, or another one is.
  virtual bool send(Rank peer, std::uint32_t channel, std::uint64_t signature, const void* data,
                    std::uint32_t bytes) = 0;
  virtual bool receive(Rank peer, std::uint32_t channel, std::uint64_t signature, void* data, std::uint32_t bytes,
                       Backoff* backoff) = 0;
};

}  // namespace gccl
