#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/algorithms/all_reduce_ring.hpp"

namespace gccl {
namespace {

constexpr Algorithm kTable[] = {
    {"ring", Collective::allreduce, ring_all_reduce, nullptr, nullptr, ring_all_reduce_cost},
};

}  // namespace

std::span<const Algorithm> algorithms() { return kTable; }

const Algorithm* find_algorithm(Collective kind, std::string_view name) {
  for (const Algorithm& a : kTable)
    if (a.kind == kind && a.name == name) return &a;
  return nullptr;
}

Schedule sliced(const Algorithm* algorithm, Call call, View view, Count shares, Count lane, Count lanes) {
  for (Count s = lane; s < shares; s += lanes) co_yield algorithm->make(call, view, Share{s, shares});
}

}  // namespace gccl
