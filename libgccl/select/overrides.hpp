// The algorithms that the user asks for: GCCL_ALGORITHM.
#pragma once

#include <string>
#include <vector>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/base/status.hpp"

namespace gccl {

// At the commas, but not inside parentheses: hierarchical(ring,swing) is one name. Without spaces around the names.
std::vector<std::string> split_names(const std::string& list);

// A table such as "allreduce=ring,broadcast=chain", checked; "" is empty.
class Overrides {
 public:
  static Status parse(const std::string& text, Overrides* out);
  // The same for tables that mean the same.
  std::string text() const;
  const Algorithm* of(Collective kind) const { return by_kind_[std::size_t(kind)]; }

 private:
  const Algorithm* by_kind_[16] = {};
};

}  // namespace gccl
