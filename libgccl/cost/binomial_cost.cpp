#include "libgccl/cost/binomial_cost.hpp"

#include <array>

namespace gccl {
namespace {

// [k]: the time of a whole subtree of 2^k members.
using Whole = std::array<Cost, 32>;

Cost tree_down(Count members, Carried bytes, const Paths& p, const Whole& whole) {
  Cost end = 0, card = 0, leaves = 0;  // the last member's, until when this card is busy, the message's start
  double before = 0;                   // bytes of the message before it
  for (Count d = std::bit_ceil(members) / 2; d > 0; d /= 2) {
    const Count child = std::min(d, members - d);
    const Hop& hop = p.binomial(d);
    const double size = bytes(child);
    leaves = std::max(card, before > 0 ? leaves + before * p.behind(d) : 0);
    const Cost below = child == d ? whole[std::size_t(std::countr_zero(d))] : tree_down(child, bytes, p, whole);
    end = std::max(end, leaves + hop(size) + below);
    card += p.model().overhead_ns;
    before = size;
  }
  return end;
}

Cost tree_up(Count members, Carried bytes, bool combines, const Paths& p, const Whole& whole) {
  Cost end = 0, arrived = 0;
  for (Count d = 1; d < members; d *= 2) {
    const Count child = std::min(d, members - d);
    const Hop& hop = p.binomial(d);
    const double size = bytes(child);
    const Cost above = child == d ? whole[std::size_t(std::countr_zero(d))] : tree_up(child, bytes, combines, p, whole);
    const Cost gap = std::max(p.model().receive_overhead_ns, d > 1 ? size * p.behind(d / 2) : 0);
    const Cost alone = above + hop(size);
    // A cut off subtree is done early; whichever message is the later one waits for the other.
    arrived = d == 1 ? alone : std::max(std::max(alone, arrived), std::min(alone, arrived) + gap);
    end = std::max(end, arrived) + (combines ? p.model().combine(size) : 0);
  }
  return end;
}

}  // namespace

Cost binomial_down(Rank n, Carried bytes, const Paths& p) {
  Whole whole{};
  for (std::size_t k = 1; Count(1) << k < n; ++k) whole[k] = tree_down(Count(1) << k, bytes, p, whole);
  return tree_down(n, bytes, p, whole);
}

Cost binomial_up(Rank n, Carried bytes, bool combines, const Paths& p) {
  Whole whole{};
  for (std::size_t k = 1; Count(1) << k < n; ++k) whole[k] = tree_up(Count(1) << k, bytes, combines, p, whole);
  return tree_up(n, bytes, combines, p, whole);
}

Cost binomial_interval(Rank n, double bytes, Cost overhead_ns, const Paths& p) {
  Cost port = 0, busiest = 0, messages = 0;
  for (Count d = std::bit_ceil(Count(n)) / 2; d > 0; d /= 2) {
    const bool farthest = 2 * d >= n;
    const double behind = farthest ? 0 : p.behind(d);
    port = behind > 0 ? port + bytes * behind : bytes * p.binomial(d).beta_ns_per_byte;
    busiest = std::max(busiest, port);
    messages += 1;
  }
  return std::max(busiest, messages * overhead_ns);
}

Cost binomial_cycle(Rank n, double bytes, const Paths& p) {
  Cost slowest = 0, combining = 0;
  for (Count d = 2; d < n; d *= 2) {
    combining += p.model().combine(bytes);
    slowest = std::max(slowest, p.binomial(d)(bytes) + combining);
  }
  return slowest;
}

}  // namespace gccl
