// What tables of measurements are made of in tests.
#pragma once

#include <cstdint>
#include <string>

#include "libgccl/base/splitmix.hpp"

namespace gccl::test {

inline const std::string kColumns =
    "system,nodes,gpus_per_node,collective,algorithm,protocol,bytes,time_us,algbw_GBps,busbw_GBps,source,note\n";

// Every value of -1 to 1, the same ones each time.
inline double noise(std::uint64_t i) { return double(splitmix::hash(i) >> 11) / double(1ull << 52) - 1; }

}  // namespace gccl::test
