// A schedule compiled for small messages in shared memory: its steps in one array, carried out in order.
//
// Every send is buffered in the pipe, so carrying out the steps one after the other is right for any schedule (a Lane
// with window 1 over buffered sends), and no message needs more than its pipe's chunks.
#pragma once

#include <span>
#include <vector>

#include "libgccl/transports/fast_path.hpp"
#include "libgccl/transports/shm/shm_port.hpp"

namespace gccl::shm {

static_assert(kShortBytesMax < kZeroCopyBytes && kShortBytesMax <= kChunkBytes);

class PipeProgram final : public Program {
 public:
  // Null when a peer is beyond shared memory, or a message too long or too many for what memory there is for pipes.
  // `port` may be null for a single rank; it outlives the program.
  static std::unique_ptr<PipeProgram> compile(Schedule schedule, std::uint32_t element_bytes, Port* port);

  Outcome advance(Replay& replay, Backoff* backoff) const override;
  Awaited awaited(const Replay& replay) const override;
  bool healthy(const Replay& replay, GCCL_Fault* fault) const override;
  Difference difference(const Replay& replay) const override;
  GCCL_Fault fault(const Replay& replay) const override;

  struct Step {
    Op op;
    Buffer from_buffer, to_buffer;
    Rank peer;
    std::uint32_t bytes;
    End* end;              // send: written to; recv, recv_reduce: read from
    std::size_t from, to;  // bytes
    Count count;
    std::uint32_t same = 1;  // send: so many steps from here on send the same, which is written once for all
  };
  const std::vector<Step>& steps() const { return steps_; }

 private:
  void join_sends();
  bool fits() const;
  std::span<End* const> ends_of(const Step& s) const { return {ends_.data() + (&s - steps_.data()), s.same}; }
  Outcome receive(Replay& replay, const Step& s, const std::byte* from, std::byte* to) const;
  Outcome attempt(Replay& replay) const;

  Port* port_ = nullptr;
  std::vector<Step> steps_;
  std::vector<End*> ends_;  // of each step
};

}  // namespace gccl::shm
