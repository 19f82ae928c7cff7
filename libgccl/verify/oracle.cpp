#include "libgccl/verify/oracle.hpp"

#include <algorithm>
#include <cassert>

#include "libgccl/schedule/definition.hpp"

namespace gccl {

Oracle::Oracle(const Call& call, Rank ranks, std::uint64_t seed)
    : call_(call), ranks_(ranks), seed_(splitmix::hash(seed)) {
  if (reduces(call.kind) && !counts_blocks(call.kind)) sums_ = sum(0, call.count);
}

void Oracle::fill(std::span<OracleElement> block, Rank from, Rank to) const {
  const OracleElement b = base(from, to);
  for (Count k = 0; k < block.size(); ++k) block[k] = at(b, k);
}

std::vector<OracleElement> Oracle::sum(Rank block, Count count) const {
  std::vector<OracleElement> sums(count, 0);
  for (Rank r = 0; r < ranks_; ++r) {
    const OracleElement b = base(r, block);
    for (Count k = 0; k < count; ++k) sums[k] += at(b, k);
  }
  return sums;
}

void Oracle::input(Rank r, std::span<OracleElement> out) const {
  assert(out.size() == input_of(call_, ranks_, r).count);
  each_input(call_, ranks_, r, [&](const Piece& p) { fill(out.subspan(p.begin, p.count), p.from, p.block); });
}

void Oracle::output(Rank r, std::span<OracleElement> out) const {
  assert(out.size() == output_of(call_, ranks_, r).count);
  each_output(call_, ranks_, r, [&](const Piece& p) {
    if (!p.reduced) return fill(out.subspan(p.begin, p.count), p.from, p.block);
    if (!sums_.empty()) return void(std::copy(sums_.begin(), sums_.end(), out.begin()));
    const std::vector<OracleElement> sums = sum(p.block, p.count);
    std::copy(sums.begin(), sums.end(), out.begin());
  });
}

}  // namespace gccl
