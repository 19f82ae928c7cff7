// Clusters that tests describe, of links by the names that stand here.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>

#include "libgccl/cluster/read/load.hpp"

namespace gccl::test {

inline constexpr std::string_view kParameters = R"({"card": {"overhead_ns": 100, "combine_GBps": 50, "copy_GBps": 200},
  "eager_bytes": 4096, "links": {"fast": {"bandwidth_GBps": 300, "latency_ns": 10}, "bus": {"bandwidth_GBps": 64, "latency_ns": 20},
  "port": {"bandwidth_GBps": 40, "latency_ns": 500}, "trunk": {"bandwidth_GBps": 20, "latency_ns": 300},
  "long": {"bandwidth_GBps": 5, "latency_ns": 1000}}})";

inline std::string description(std::string_view nodes, std::string_view fabric) {
  return fmt::format(R"({{"schema": "gccl/cluster/1", "name": "t", "parameters": {}, "nodes": {}{}}})", kParameters,
                     nodes, fabric.empty() ? "" : fmt::format(R"(, "fabric": {})", fabric));
}
inline std::shared_ptr<const Cluster> make(std::string_view nodes, std::string_view fabric) {
  return parse_cluster(description(nodes, fabric), "t.json");
}
inline std::string switched(int count, int cards, int nics) {
  return fmt::format(R"([{{"count": {}, "cards": {}, "inside": {{"kind": "switch", "link": "fast"}},
    "nics": {{"count": {}, "bus": "bus", "port": "port"}}}}])",
                     count, cards, nics);
}

}  // namespace gccl::test
