#pragma once

#include <cstdlib>

namespace gccl::test {

// Whether tests take their whole products: where GCCL_WIDE is set, as scripts/long does. Otherwise, in ./check, some
// take a part of what they have many of, chosen so that each value of each dimension is among it.
inline bool wide() { return std::getenv("GCCL_WIDE") != nullptr; }

}  // namespace gccl::test
