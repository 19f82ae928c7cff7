#include "cli/algorithm_names.hpp"

#include <algorithm>

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

std::vector<std::string_view> algorithm_names(std::optional<Collective> kind) {
  std::vector<std::string_view> names;
  for (const Algorithm& a : algorithms())
    if ((!kind || *kind == a.kind) && std::find(names.begin(), names.end(), a.name) == names.end())
      names.push_back(a.name);
  return names;
}

}  // namespace gccl
