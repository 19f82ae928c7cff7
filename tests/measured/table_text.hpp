// What tables of measurements are made of in tests.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "libgccl/base/splitmix.hpp"
#include "sim/measured/measurement.hpp"

namespace gccl::test {

inline const std::string kColumns =
    "system,nodes,gpus_per_node,collective,algorithm,protocol,bytes,time_us,algbw_GBps,busbw_GBps,source,note\n";

// Four cards on a switch. A ring's closed form on two of them is 2 (n-1) steps of V/n, each the overheads of both ends,
// two links and the bytes of a step; and the combining of each incoming block.
inline constexpr const char* kFourCards = R"({"schema":"gccl/cluster/1","name":"two","parameters":{
  "card":{"overhead_ns":1000,"combine_GBps":0,"copy_GBps":0},"eager_bytes":"64KiB",
  "links":{"wire":{"bandwidth_GBps":10,"latency_ns":500}}},
  "nodes":[{"count":1,"cards":4,"inside":{"kind":"switch","link":"wire"}}]})";

// Every value of -1 to 1, the same ones each time.
inline double noise(std::uint64_t i) { return double(splitmix::hash(i) >> 11) / double(1ull << 52) - 1; }

// An all-reduce's row of a table.
inline sim::Measurement measured_row(Rank nodes, Rank cards, Count bytes, double us, std::string algorithm = "ring") {
  sim::Measurement m;
  m.at = {"f", 1};
  m.system = "s";
  m.nodes = nodes;
  m.cards = cards;
  m.kind = Collective::allreduce;
  m.collective = "all_reduce";
  m.algorithm = std::move(algorithm);
  m.bytes = bytes;
  m.time_us = us;
  return m;
}

}  // namespace gccl::test
