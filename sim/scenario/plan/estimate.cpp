#include "sim/scenario/plan/estimate.hpp"

#include <algorithm>
#include <set>

namespace gccl::sim {

EstimatedWork estimated_work(const Algorithm& algorithm, const Call& call, const Layout& layout, Count shares,
                             Count lanes) {
  const Rank n = layout.ranks();
  double sends = 0, receives = 0, local = 0;
  const std::set<Rank> sample{0, std::min<Rank>(1, n - 1), n / 2, n - 1, call.root};
  for (const Rank r : sample) {
    Schedule schedule = algorithm.make(call, layout.view(r), Share{0, shares});
    while (const Step* step = schedule.next()) {
      const Region& content = step->op == Op::send ? step->from : step->to;
      if (content.count == 0 && content.buffer() != Buffer::none) continue;
      (step->local() ? local : step->op == Op::send ? sends : receives) += 1;
    }
  }
  const double of_share = std::min(sends, receives) / double(sample.size()) * n;
  // Shares beyond the elements are empty and send nothing.
  const Count all = shares + (algorithm.staggers(shares, lanes) ? lanes - 1 : 0);
  const Count full = call.count ? std::min(all, call.count) : all;
  return {of_share * double(full), (2 * of_share + local / double(sample.size()) * n) * double(full)};
}

}  // namespace gccl::sim
