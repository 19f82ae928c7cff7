// Chain broadcast: the vector travels from the root through all positions. In many chunks it is a pipeline that uses
// every port fully.
#include "libgccl/algorithms/parts/chain.hpp"

#include <cmath>

#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/paths.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

Cost broadcast_chain_over(Rank n, double bytes, const Paths& p) { return p.chain(n, bytes, Tree::down); }

Schedule chain_broadcast(Call c, View v, Share mine) {
  const Chain chain(v, c.root);
  const Region in = input_of(c, v, mine);
  const Region out = output_of(c, v, mine);
  if (!chain.head()) co_yield recv(chain.before, out);
  if (!chain.tail()) co_yield send(chain.next, chain.head() ? in : out);
  if (chain.head()) co_yield copy(in, out);
}

// How many times the first messages of all channels, which begin at once and share links, pass one of so many links in
// a row as one message before they have spread out, beyond the time that the link carries them. Long ones share it
// fairly and so all come late, shorter ones follow each other. Fitted to the flow engine's times of 6 to 48 ranks of
// deepseek-v3-h800-2048, dgx-h100-superpod-2048, alps-gh200-2048 and marenostrum5-acc (48 to 768 KiB in 2 to 32
// channels).
double blocks_in_step(double links, double bytes) {
  const double turns = bytes / kTurnsAbove;
  return 3 * (1 - std::exp(-links / 2.5)) * (turns <= 1 ? 1.0 / 3 : 1 - 0.4 / turns);
}

// How much more time the links inside nodes need for long messages of several channels, which drift apart from node to
// node. By the same times.
double drift(const View& v, const Slicing& s, double bytes) {
  if (s.lanes <= 1 || bytes <= kTurnsAbove) return 1;
  return 1 + 1.1 * (1 - 1 / double(v.nodes)) / std::sqrt(double(s.lanes));
}

// A rank passes on no more chunks at once than its lanes' windows hold, over the slowest hop too; of those that wait
// for their receive one a lane.
Cost chain_broadcast_interval(const Call& c, const View& v, const CostModel& m, const Slicing& s) {
  const Paths p(v, m);
  const double bytes = m.bytes(double(c.count)), block = bytes * p.chain_ns_per_byte(Tree::down),
               link = block / v.channels;
  const bool by_network = v.nodes > 1 && block > 1.05 * v.channels * bytes * m.node.beta_ns_per_byte;
  const Cost busiest = std::max(link * (by_network ? 1 : drift(v, s, bytes)), m.exchange_gap_ns());
  const Cost window =
      m.in_channel(p.slowest_in_chain(Tree::down), bytes) / chunks_in_flight(s, m.met(bytes) ? s.window : 1);
  const double links = by_network ? v.nodes - 1 : v.all.size - 1;
  const Cost in_step =
      double(s.lanes - 1) * busiest + blocks_in_step(links, bytes) * (block - block / p.in_step(Tree::down));
  return after_in_step(std::max(busiest, window), 0, in_step, s);
}

}  // namespace

constexpr Algorithm broadcast_chain = {
    .name = "chain",
    .kind = Collective::broadcast,
    .source = "Pjesivac-Grbovic et al., Cluster Computing 10 (2007), section 3 (pipeline)",
    .steps = "n-1",
    .bytes = "V",
    .make = chain_broadcast,
    .cost = broadcast_cost<broadcast_chain_over>,
    .channels = true,
    .interval = chain_broadcast_interval,
};

}  // namespace gccl
