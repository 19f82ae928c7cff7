#include "sim/engine/payload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace gccl::sim {

void Payload::enter(std::uint32_t operation, Rank rank) {
  const SimulatedOperation& o = workload_.operations[operation];
  State& state = operations_[operation];
  const Rank n = o.ranks();
  if (!state.oracle) state.oracle = std::make_unique<Oracle>(o.call, n, workload_.seed + operation);

  Buffers& b = state.ranks[rank];
  b.input.assign(input_count(o.call, n, rank), 0);
  b.output.assign(output_count(o.call, n, rank), 0);
  const View view = o.layout->view(rank);
  for (Count lane = 0; lane < o.lanes; ++lane)
    b.scratch.emplace_back(o.algorithm->scratch_count(o.call, view, o.shares, lane, o.lanes));

  std::vector<OracleElement> values(input_of(o.call, n, rank).count);
  state.oracle->input(rank, values);
  write(operation, rank, 0, input_of(o.call, n, rank), values);
}

void Payload::leave(std::uint32_t operation, Rank rank) {
  const SimulatedOperation& o = workload_.operations[operation];
  State& state = operations_[operation];
  const Region due = output_of(o.call, o.ranks(), rank);
  std::vector<OracleElement> expected(due.count);
  state.oracle->output(rank, expected);
  const OracleElement* found = due.count ? at(operation, rank, 0, due) : nullptr;
  for (Count i = 0; i < due.count; ++i) {
    if (found[i] == expected[i]) continue;
    if (wrong_++ == 0)
      first_wrong_ = fmt::format("operation {} ({} {}), rank {}, element {}: found {:016x}, expected {:016x}",
                                 operation, name(o.call.kind), o.algorithm->name, rank, i, found[i], expected[i]);
  }
  state.ranks.erase(rank);
}

OracleElement* Payload::at(std::uint32_t operation, Rank rank, std::uint32_t lane, Region r) {
  Buffers& b = operations_[operation].ranks.at(rank);
  std::vector<OracleElement>& memory = r.buffer() == Buffer::input    ? b.input
                                       : r.buffer() == Buffer::output ? b.output
                                                                      : b.scratch[lane];
  if (r.offset() + r.count > memory.size())
    throw std::logic_error(fmt::format("{}: rank {} touches elements {}..{} of a buffer of {}",
                                       workload_.operations[operation].algorithm->name, rank, r.offset(),
                                       r.offset() + r.count, memory.size()));
  return memory.data() + r.offset();
}

Payload::Message Payload::read(std::uint32_t operation, Rank rank, std::uint32_t lane, Region from) {
  if (from.count == 0) return {};
  const OracleElement* x = at(operation, rank, lane, from);
  return Message(x, x + from.count);
}

void Payload::write(std::uint32_t operation, Rank rank, std::uint32_t lane, Region to, const Message& message) {
  if (to.count) std::copy_n(message.data(), to.count, at(operation, rank, lane, to));
}

void Payload::combine(std::uint32_t operation, Rank rank, std::uint32_t lane, Region from, Region to,
                      const Message& message) {
  if (to.count == 0) return;
  const Message mine = read(operation, rank, lane, from);
  OracleElement* out = at(operation, rank, lane, to);
  for (Count i = 0; i < to.count; ++i) out[i] = mine[i] + message[i];
}

}  // namespace gccl::sim
