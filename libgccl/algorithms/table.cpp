#include "libgccl/algorithms/table.hpp"

namespace gccl {
namespace {

std::vector<Algorithm> table() {
  std::vector<Algorithm> all;
#define GCCL_ROW(name) all.push_back(name);
#define GCCL_FAMILY(name) all.insert(all.end(), name.begin(), name.end());
  GCCL_ALGORITHMS(GCCL_ROW, GCCL_FAMILY)
#undef GCCL_ROW
#undef GCCL_FAMILY
  return all;
}

}  // namespace

std::span<const Algorithm> algorithms() {
  static const auto& all = *new const std::vector<Algorithm>(table());  // plans point into it until the process ends
  return all;
}

const Algorithm* find_algorithm(Collective kind, std::string_view name) {
  for (const Algorithm& a : algorithms())
    if (a.kind == kind && a.name == name) return &a;
  return nullptr;
}

std::vector<std::string_view> algorithm_names(std::optional<Collective> kind) {
  std::vector<std::string_view> names;
  for (const Algorithm& a : algorithms())
    if ((!kind || *kind == a.kind) && std::find(names.begin(), names.end(), a.name) == names.end())
      names.push_back(a.name);
  return names;
}

Schedule sliced(const Algorithm* algorithm, Call call, View view, Count shares, Count lane, Count lanes) {
  for (Count s = lane; s < shares; s += lanes) co_yield algorithm->make(call, view, Share{s, shares});
}

}  // namespace gccl
