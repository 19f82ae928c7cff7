#include "libgccl/cost/binomial_cost.hpp"

#include <array>

#include "libgccl/cost/bunch.hpp"

namespace gccl {
namespace {

constexpr std::size_t kLevels = 32;

// [k]: of the message to or from a whole subtree of 2^k members, which is 2^k members away.
struct Levels {
  std::array<Cost, kLevels> hop;     // the message alone
  std::array<Cost, kLevels> behind;  // how long the next nearer one waits for it on the links that they share
  std::array<Cost, kLevels> whole;   // the subtree's own time
};

// The last member's end; `levels` has all whole subtrees that are smaller.
Cost tree_down(Count members, Carried bytes, const Paths& p, const Levels& levels) {
  Cost end = 0, card = 0, leaves = 0;  // the last member's, until when this card is busy, the message's start
  Cost before = 0;                     // what the message before it keeps the links busy for
  for (auto k = std::size_t(std::bit_width(members - 1)); k-- > 0;) {
    const Count d = Count(1) << k, child = std::min(d, members - d);
    leaves = std::max(card, leaves + before);
    const bool cut = child < d;
    const Cost below = cut ? tree_down(child, bytes, p, levels) : levels.whole[k];
    end = std::max(end, leaves + (cut ? p.binomial(d, Tree::down)(bytes(child)) : levels.hop[k]) + below);
    card += p.model().overhead_ns;
    before = k == 0 ? 0 : cut ? bytes(child) * p.behind(d / 2, Tree::down) : levels.behind[k];
  }
  return end;
}

// One message after the other, from the nearest position on.
struct Arrivals {
  Cost end = 0, arrived = 0;

  void add(bool first, Cost alone, Cost gap, Cost combining) {
    // A cut off subtree is done early; whichever message is the later one waits for the other.
    arrived = first ? alone : std::max(std::max(alone, arrived), std::min(alone, arrived) + gap);
    end = std::max(end, arrived) + combining;
  }
};

Cost tree_up(Count members, Carried bytes, bool combines, const Paths& p, const Levels& levels) {
  Arrivals at;
  for (Count d = 1; d < members; d *= 2) {
    const Count child = std::min(d, members - d);
    const double size = bytes(child);
    const Cost above =
        child == d ? levels.whole[std::size_t(std::countr_zero(d))] : tree_up(child, bytes, combines, p, levels);
    at.add(d == 1, above + p.binomial(d, Tree::up)(size),
           std::max(p.model().receive_overhead_ns, d > 1 ? size * p.behind(d / 2, Tree::up) : 0),
           combines ? p.model().combine(size) : 0);
  }
  return at.end;
}

// Of several channels the last one's end at position 0. A whole subtree's messages take the way of its deepest leaf's.
Cost tree_up_at_once(Count members, Carried bytes, bool combines, const Paths& p, Bunch& bunch) {
  const auto combine = [&](Count child) { return combines ? p.model().combine(bytes(child)) : 0; };
  const Count whole = std::bit_floor(members), child = members - whole;
  const Bunch begun = bunch;
  Cost end = bunch.begin();
  for (Count d = 1; d < whole; d *= 2)
    end = bunch.combine(bunch.pass(end, p.binomial(d, Tree::up), bytes(d)), combine(d));
  if (child == 0) return end;
  // The last subtree is cut off, and may be done first; the later ones wait for the earlier ones.
  Bunch last = begun;
  const Cost done = tree_up_at_once(child, bytes, combines, p, last);
  const Cost alone = last.pass(done, p.binomial(whole, Tree::up), bytes(child));
  const double gap =
      double(p.channels()) * std::max(p.model().receive_overhead_ns, bytes(child) * p.behind(whole / 2, Tree::up));
  return bunch.combine(std::max(std::max(end, alone), std::min(end, alone) + gap), combine(child));
}

// The same from a member that has it at `there`, to all below it: those that the first whole subtree's messages reach
// last, and those of subtrees that are cut off before it. At the `root` those of the last one on each port, too, whose
// messages leave the latest; elsewhere these leave later by as much as they have fewer levels to pass.
Cost tree_down_at_once(Count members, Carried bytes, const Paths& p, Bunch bunch, Cost there, bool root) {
  Cost end = there, leaves = there;
  bool first = true;  // no whole subtree was before this one
  for (Count d = std::bit_ceil(members) / 2; d > 0; d /= 2) {
    const Count child = std::min(d, members - d);
    const double behind = d > 1 ? p.behind(d / 2, Tree::down) : 0;
    if (first || behind == 0) {
      Bunch passes = bunch;
      Cost arrived = passes.pass(leaves, p.binomial(d, Tree::down), bytes(child));
      if (child == d)
        for (Count below = d / 2; below > 0; below /= 2)
          arrived = passes.pass(arrived, p.binomial(below, Tree::down), bytes(below));
      else
        arrived = tree_down_at_once(child, bytes, p, passes, arrived, false);
      end = std::max(end, arrived);
    }
    if (child == d && !root) break;
    first = first && child < d;
    leaves += double(p.channels()) * std::max(p.model().overhead_ns, bytes(child) * behind);
  }
  return end;
}

// While the busiest link carries what all channels' messages hold.
Cost busiest(Rank n, Carried bytes, Tree way, const Paths& p) {
  if (n <= 1) return 0;
  return p.binomial(n / 2, way).alpha_ns +
         p.channels() * (bytes.vector * p.binomial_ns_per_byte(way) + bytes.block * p.binomial_blocks_ns_per_byte(way));
}

Cost one_down(Rank n, Carried bytes, const Paths& p) {
  Levels levels;
  levels.whole[0] = 0;
  for (std::size_t k = 0; Count(1) << k < n; ++k) {
    const Count d = Count(1) << k;
    levels.hop[k] = p.binomial(d, Tree::down)(bytes(d));
    levels.behind[k] = k > 0 ? bytes(d) * p.behind(d / 2, Tree::down) : 0;
    if (2 * d < n) levels.whole[k + 1] = tree_down(2 * d, bytes, p, levels);
  }
  return tree_down(n, bytes, p, levels);
}

Cost one_up(Rank n, Carried bytes, bool combines, const Paths& p) {
  // A whole subtree has the messages of the next smaller one and one more.
  Levels levels;
  levels.whole[0] = 0;
  Arrivals at;
  for (std::size_t k = 0; Count(2) << k < n; ++k) {
    const Count d = Count(1) << k;
    const double size = bytes(d);
    at.add(k == 0, levels.whole[k] + p.binomial(d, Tree::up)(size),
           std::max(p.model().receive_overhead_ns, k > 0 ? size * p.behind(d / 2, Tree::up) : 0),
           combines ? p.model().combine(size) : 0);
    levels.whole[k + 1] = at.end;
  }
  return tree_up(n, bytes, combines, p, levels);
}

// Levels' slowest messages are mostly on different ways, so what they are predicted to take by level is too much. One
// channel takes no more than latencies and bytes in turn; `combining` is that of the longest way.
Cost on_ways(Tree way, const Paths& p, Cost levels, Carried bytes, Cost combining) {
  const LinkLoads::Binomial* const known = p.binomial_known(way);
  if (!known) return levels;
  const Cost now = levels - known->excess_ns;
  if (p.channels() > 1) return now;
  return std::min(now, known->empty_ns + bytes.vector * known->in_turn_ns_per_byte +
                           bytes.block * known->blocks_in_turn_ns_per_byte + combining);
}

}  // namespace

Cost binomial_down(Rank n, Carried bytes, const Paths& p) {
  Cost levels;
  if (p.channels() <= 1) {
    levels = one_down(n, bytes, p);
  } else {
    const Bunch bunch(p.channels(), p.model().exchange_gap_ns());
    levels = tree_down_at_once(n, bytes, p, bunch, bunch.begin(), true);
  }
  return std::max(busiest(n, bytes, Tree::down, p), on_ways(Tree::down, p, levels, bytes, 0));
}

Cost binomial_up(Rank n, Carried bytes, bool combines, const Paths& p) {
  Cost levels;
  if (p.channels() <= 1) {
    levels = one_up(n, bytes, combines, p);
  } else {
    Bunch bunch(p.channels(), p.model().exchange_gap_ns());
    levels = tree_up_at_once(n, bytes, combines, p, bunch);
  }
  const Cost combining = combines && n > 1 ? std::bit_width(n - 1) * p.model().combine(bytes.vector) : 0;
  return std::max(busiest(n, bytes, Tree::up, p), on_ways(Tree::up, p, levels, bytes, combining));
}

Cost binomial_interval(Rank n, Carried bytes, Cost overhead_ns, Tree way, const Paths& p) {
  Cost port = 0, messages = 0;
  Cost busiest = bytes.vector * p.binomial_ns_per_byte(way) + bytes.block * p.binomial_blocks_ns_per_byte(way);
  for (Count d = std::bit_ceil(Count(n)) / 2; d > 0; d /= 2) {
    const bool farthest = 2 * d >= n;
    const double behind = farthest ? 0 : p.behind(d, way), carried = bytes(std::min(d, n - d));
    const Cost alone = carried * p.binomial(d, way).beta_ns_per_byte;
    port = behind > 0 ? port + carried * behind : alone;
    busiest = std::max({busiest, port, alone});
    messages += 1;
  }
  return std::max(busiest, messages * overhead_ns);
}

Cost binomial_cycle(Rank n, double bytes, const Paths& p) {
  Cost slowest = 0, combining = 0;
  for (Count d = 2; d < n; d *= 2) {
    combining += p.model().combine(bytes);
    slowest = std::max(slowest, p.binomial(d, Tree::up)(bytes) + combining);
  }
  return slowest;
}

}  // namespace gccl
