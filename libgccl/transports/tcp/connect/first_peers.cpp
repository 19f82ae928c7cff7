#include "libgccl/transports/tcp/connect/first_peers.hpp"

#include <algorithm>
#include <unordered_map>

namespace gccl::tcp {
namespace {

// Calls f with the members of a ring of n that `me` is near to.
template <class F>
void near(std::uint64_t me, std::uint64_t n, F f) {
  for (std::uint64_t distance = 1; distance < n; distance *= 2) {
    f((me + distance) % n);
    f((me + n - distance) % n);
    if ((me ^ distance) < n) f(me ^ distance);
  }
}

}  // namespace

std::vector<std::uint32_t> first_peers(const GCCL_Port_spec& spec) {
  const std::uint32_t* const node = spec.node;
  const std::uint32_t me = spec.rank;
  std::vector<std::uint32_t> peers;
  if (spec.size <= kAllPairsMax) {
    for (std::uint32_t r = 0; r < spec.size; ++r) peers.push_back(r);
  } else {
    near(me, spec.size, [&](std::uint64_t r) { peers.push_back(std::uint32_t(r)); });
    // Those with this rank's place in their nodes, one for each node that has so many ranks.
    std::unordered_map<std::uint32_t, std::uint32_t> so_far;
    std::vector<std::uint32_t> place(spec.size), alike;
    for (std::uint32_t r = 0; r < spec.size; ++r) place[r] = so_far[node[r]]++;
    for (std::uint32_t r = 0; r < spec.size; ++r)
      if (place[r] == place[me]) alike.push_back(r);
    const auto mine = std::uint64_t(std::find(alike.begin(), alike.end(), me) - alike.begin());
    near(mine, alike.size(), [&](std::uint64_t i) { peers.push_back(alike[i]); });
  }
  std::ranges::sort(peers);
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  std::erase_if(peers, [&](std::uint32_t r) { return node[r] == node[me]; });
  return peers;
}

}  // namespace gccl::tcp
