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
