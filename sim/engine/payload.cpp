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
  if (!spare_.empty()) {
    b = std::move(spare_.back());
    spare_.pop_back();
  }
  b.input.assign(input_count(o.call, n, rank), 0);
  b.output.assign(output_count(o.call, n, rank), 0);
  const View view = o.layout->view(rank);
  b.scratch.resize(o.lanes);
  for (Count lane = 0; lane < o.lanes; ++lane)
    b.scratch[lane].assign(o.algorithm->scratch_count(o.call, view, o.shares, lane, o.lanes), 0);

  const Region given = input_of(o.call, n, rank);
  state.oracle->input(rank, {given.count ? at(operation, rank, 0, given) : nullptr, given.count});
}

void Payload::leave(std::uint32_t operation, Rank rank) {
  const SimulatedOperation& o = workload_.operations[operation];
  State& state = operations_[operation];
  const Region due = output_of(o.call, o.ranks(), rank);
  expected_.assign(due.count, 0);
  state.oracle->output(rank, expected_);
  const OracleElement* found = due.count ? at(operation, rank, 0, due) : nullptr;
  for (Count i = 0; i < due.count; ++i) {
    if (found[i] == expected_[i]) continue;
    if (wrong_++ == 0)
      first_wrong_ = fmt::format("operation {} ({} {}), rank {}, element {}: found {:016x}, expected {:016x}",
                                 operation, name(o.call.kind), o.algorithm->name, rank, i, found[i], expected_[i]);
  }
  if (auto left = state.ranks.extract(rank)) spare_.push_back(std::move(left.mapped()));
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
  OracleElement* const out = at(operation, rank, lane, to);
  const OracleElement* mine = at(operation, rank, lane, from);
  Message copy;  // where the two overlap
  if (mine != out && mine < out + to.count && out < mine + to.count) {
    copy.assign(mine, mine + to.count);
    mine = copy.data();
  }
  for (Count i = 0; i < to.count; ++i) out[i] = mine[i] + message[i];
}

}  // namespace gccl::sim
