// What Executor says of a workload that cannot end: included by executor.hpp.
#pragma once

#include <fmt/core.h>

#include <bit>
#include <stdexcept>
#include <string>

#include "sim/engine/executor.hpp"

namespace gccl::sim {

// Names a lane that cannot go on: one whose window is too small where there is one, else the first. A schedule goes on
// with a window of 1 where each message leaves before its receive is posted, and with larger ones whatever waits.
template <Network N>
void Executor<N>::fail_stuck() const {
  static constexpr const char* kOps[] = {"send to",       "recv from",     "recv_reduce from",    "copy beside",
                                         "reduce beside", "send_all with", "recv_reduce_all with"};
  std::string text;
  for (const auto& lane : lanes_) {
    if (!lane) continue;
    const Step* step = lane->blocked();
    if (lane->busy()) step = &lane->step(Token(std::countr_zero(lane->busy())));
    if (!step) continue;
    const SimulatedOperation& o = w_.operations[lane->operation];
    const bool held = o.window == 1 && step->op == Op::send && step->count() * o.element_bytes > eager_bytes_;
    if (!held && !text.empty()) continue;
    text = fmt::format("{} {} cannot go on: rank {}, channel {} waits in {} rank {} ({} elements) at {} ns",
                       gccl::name(o.call.kind), o.algorithm->name, lane->rank, lane->channel, kOps[int(step->op)],
                       step->peer, step->count(), network_.now());
    if (held)
      throw WorkloadError(
          fmt::format("{}; messages above the cluster's eager_bytes, {}, wait for their receive, and with a window of "
                      "1 that comes after the send: take a window of 2 or more",
                      text, eager_bytes_));
  }
  throw std::runtime_error(text.empty() ? "the simulation ended before all ranks had finished" : text);
}

}  // namespace gccl::sim
