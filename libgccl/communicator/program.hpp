// A schedule compiled for small messages in shared memory: its steps in one array, carried out in order.
//
// Every send is buffered in the pipe, so carrying out the steps one after the other is right for any schedule (a Lane
// with window 1 over buffered sends), and no message needs more than its cell.
#pragma once

#include <vector>

#include "libgccl/elements/elements.hpp"
#include "libgccl/schedule/schedule.hpp"
#include "libgccl/transports/shm/shm_port.hpp"

namespace gccl {

// Messages up to here take the way through a chunk; beyond, reading the peer's memory directly beats two copies.
inline constexpr std::uint32_t kProgramBytesMax = shm::kLendBytes - 1;
static_assert(kProgramBytesMax <= shm::kChunkBytes);

// Where a call's buffers are; indexed by Buffer.
struct Memory {
  std::byte* base[4] = {};
};

// Messages of one rank.
struct Traffic {
  std::uint64_t messages_sent = 0, messages_received = 0, bytes_sent = 0, bytes_received = 0;
};

struct Program {
  struct Step {
    Op op;
    Buffer from_buffer, to_buffer;
    Rank peer;
    std::uint32_t bytes;
    shm::End* end;         // send: written to; recv, recv_reduce: read from
    std::size_t from, to;  // bytes
    Count count;
  };
  std::vector<Step> steps;
  Traffic traffic;

  // Null when a peer is beyond shared memory, or a message too long or too many for the pipes. `port` may be null for a
  // single rank.
  static std::unique_ptr<Program> compile(Schedule schedule, std::uint32_t element_bytes, Rank ranks, shm::Port* port);
};

// One execution of a program.
class Replay {
 public:
  enum class Outcome { done, blocked, mismatch, no_room, damaged };

  void begin(const Program& program, shm::Port* port, const Memory& memory, const Elements& elements,
             std::uint64_t signature) {
    program_ = &program;
    port_ = port;
    // One by one: copied in wider pieces they would wait for stores that have just been made.
    for (int i = 0; i < 4; ++i) memory_.base[i] = memory.base[i];
    elements_ = &elements;
    signature_ = signature;
    next_ = 0;
    received_ = 0;
  }
  // The elements have moved.
  void rebind(const Elements& elements) { elements_ = &elements; }
  // Goes on until a message is missing.
  Outcome advance();
  // The step that waits.
  const Program::Step& step() const { return program_->steps[next_]; }
  std::size_t place() const { return next_; }
  std::uint64_t signature_found() const { return signature_found_; }
  std::uint64_t bytes_found() const { return bytes_found_; }

 private:
  Outcome receive(const Program::Step& s, const std::byte* from, std::byte* to);

  const Program* program_ = nullptr;
  shm::Port* port_ = nullptr;
  Memory memory_;
  const Elements* elements_ = nullptr;
  std::uint64_t signature_ = 0, signature_found_ = 0, bytes_found_ = 0;
  std::size_t next_ = 0;
  std::uint32_t received_ = 0;  // bytes of the message that this step waits for
};

}  // namespace gccl
