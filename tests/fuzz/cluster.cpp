// Any bytes offered as a cluster file are either a cluster or one clear InputError; never a crash, a hang or a leak.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "libgccl/cluster/read/load.hpp"
#include "libgccl/json/reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gccl;
  try {
    const auto cluster =
        parse_cluster({reinterpret_cast<const char*>(data), size}, GCCL_SOURCE_DIR "/topologies/fuzz.json");
    std::vector<LinkId> route;
    const Card n = cluster->cards();
    for (Card c = 0; c < n; c += n / 16 + 1) {
      cluster->route(c, n - 1, route);
      for (const LinkId l : route)
        if (l >= cluster->links().size() || cluster->link_name(l).empty()) __builtin_trap();
    }
  } catch (const json::InputError&) {
  }
  return 0;
}
