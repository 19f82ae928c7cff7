// What operations were measured to take beyond the model.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "libgccl/cost/protocol.hpp"

namespace gccl {

// A correction's operations, or one operation.
struct Corrected {
  Collective kind{};
  Rank nodes = 0, cards_per_node = 0;
  std::string algorithm, protocol;  // of a correction: empty for any

  auto operator<=>(const Corrected&) const = default;
};

// Added to what an operation takes before its first message (Protocol::operation_ns), by its bytes as nccl-tests counts
// them: a part of its fixed cost that no parameter of cards, links and protocols describes. Negative ones take away
// from that cost, down to nothing.
struct Correction {
  Corrected of;
  std::vector<Count> bytes;      // ascending, at least one
  std::vector<double> extra_ns;  // of each; straight lines between them, constant before the first and after the last
  std::string source;
  bool more_nodes = false;  // also for operations on more nodes, where no correction is for so many

  double at(Count size) const {
    std::size_t next = 0;
    while (next < bytes.size() && bytes[next] < size) ++next;
    if (next == 0) return extra_ns.front();
    if (next == bytes.size()) return extra_ns.back();
    const double part = double(size - bytes[next - 1]) / double(bytes[next] - bytes[next - 1]);
    return extra_ns[next - 1] + part * (extra_ns[next] - extra_ns[next - 1]);
  }
};
using Corrections = std::vector<Correction>;

// The correction that is for an operation; of several the one for the most nodes, then the one that says most of it,
// the algorithm before the protocol. Null where there is none.
inline const Correction* correction_of(const Corrections& all, const Corrected& operation) {
  const Correction* best = nullptr;
  const auto says = [](const Correction& c) { return 2 * !c.of.algorithm.empty() + !c.of.protocol.empty(); };
  for (const Correction& c : all) {
    const Corrected& of = c.of;
    const bool nodes = of.nodes == operation.nodes || (c.more_nodes && of.nodes < operation.nodes);
    if (!nodes || of.kind != operation.kind || of.cards_per_node != operation.cards_per_node ||
        (!of.algorithm.empty() && of.algorithm != operation.algorithm) ||
        (!of.protocol.empty() && of.protocol != operation.protocol))
      continue;
    if (!best || of.nodes > best->of.nodes || (of.nodes == best->of.nodes && says(c) > says(*best))) best = &c;
  }
  return best;
}

}  // namespace gccl
