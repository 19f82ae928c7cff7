// Which ranks form a communicator: the whole world, or equal groups of it, or listed ones.
#pragma once

#include <optional>
#include <vector>

#include "libgccl/base/limits.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl::sim {

// "groups". All groups of a task run their collective concurrently.
//   {"size": k}               consecutive ranks: 0..k-1, k..2k-1, ...          (tensor parallel)
//   {"stride": s}             ranks s apart: 0, s, 2s, ...; 1, s+1, ...         (data parallel across)
//   {"size": k, "stride": s}  k ranks s apart, within blocks of k*s ranks
//   [[0, 3], [1, 2]]          exactly these, in this order; the other ranks take no part
struct Groups {
  Rank size = 0, stride = 0;  // 0: not stated
  std::vector<std::vector<Rank>> lists;
  std::optional<json::Node> where;  // absent: the whole world

  bool whole() const { return !where; }
};

}  // namespace gccl::sim
