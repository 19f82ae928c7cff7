#include "libgccl/select/others/nccl_graph.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace gccl {
namespace {

// GB/s of a channel that NCCL tries, on one node and on several (src/graph/search.cc).
constexpr double kInside[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr double kInsideHopper[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr double kInsideBlackwell[] = {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};
constexpr double kBetween[] = {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12};
constexpr double kBetweenHopper[] = {48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12};
constexpr double kBetweenBlackwell[] = {96,   80, 48, 45.1, 42, 40,  30,  24,  22, 20,
                                        17.5, 15, 12, 6,    3,  2.4, 1.2, .24, .12};
constexpr unsigned kChannelsMax = 32;

std::span<const double> tried(const NcclLinks& l) {
  const bool one = l.nodes == 1;
  if (l.architecture == NcclArchitecture::blackwell)
    return one ? std::span<const double>(kInsideBlackwell) : kBetweenBlackwell;
  if (l.architecture == NcclArchitecture::hopper) return one ? std::span<const double>(kInsideHopper) : kBetweenHopper;
  return one ? std::span<const double>(kInside) : kBetween;
}

// Channels of that bandwidth that the links carry.
unsigned fit(const NcclLinks& l, double GBps) {
  double most = kChannelsMax;
  if (l.nodes > 1) most = std::min(most, l.nics * std::floor(l.nic_GBps / GBps));
  if (l.cards > 1) {
    const double inside = l.nodes > 1 ? (l.cards - 1.) / l.cards : 1;
    most = std::min(most, std::floor(l.card_GBps / (GBps * inside)));
  }
  return unsigned(most);
}

}  // namespace

NcclGraph nccl_ring_graph(const NcclLinks& l) {
  NcclGraph best;
  for (const double GBps : tried(l)) {
    if (best.channels > 0 && GBps < .49 * best.inside_GBps) break;
    if (const unsigned n = fit(l, GBps); n * GBps > best.channels * best.inside_GBps) best = {n, GBps, GBps};
  }
  const bool kept = l.architecture >= NcclArchitecture::hopper && best.inside_GBps < 50 && best.channels > 4;
  if (best.inside_GBps >= 25 && !kept && 2 * best.channels <= kChannelsMax)
    best = {2 * best.channels, best.inside_GBps / 2, best.between_GBps / 2};
  return best;
}

NcclGraph nccl_tree_graph(const NcclLinks& l, const NcclGraph& rings) {
  NcclGraph best = rings;
  // Inside one node of more than three cards all channels take the cards in one order, of which the first sends all.
  const double share = l.nodes == 1 && l.cards > 3 ? 1 : (l.cards - 1.) / l.cards;
  const std::span<const double> all = tried(l);
  for (auto GBps = all.rbegin(); GBps != all.rend() && best.inside_GBps < 2 * best.between_GBps; ++GBps)
    if (*GBps > best.inside_GBps && best.channels * *GBps * share <= l.card_GBps) best.inside_GBps = *GBps;
  if (l.nodes == 1) best.between_GBps = best.inside_GBps;
  return best;
}

NcclGraph nccl_nvls_graph(const NcclLinks& l) {
  const unsigned channels = l.nodes > 1 ? std::min(l.nics, l.cards) : l.cards;
  if (channels == 0) return {};
  for (const double GBps : tried(l))
    if (GBps * channels <= l.card_GBps && (l.nodes == 1 || GBps <= l.nic_GBps)) return {channels, GBps, GBps};
  return {};
}

}  // namespace gccl
