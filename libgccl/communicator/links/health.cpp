#include "libgccl/communicator/links/health.hpp"

#include <algorithm>
#include <cassert>

namespace gccl {

// 0: nothing to compare with. The middle of the ranks' links needs three that know theirs: of two nobody knows which is
// right.
double LinkHealth::expected(std::span<const LinkReport> reports) const {
  constexpr std::size_t kRanksMin = 3;
  std::vector<std::uint64_t> usual;
  for (const LinkReport& r : reports)
    if (r.usual > 0) usual.push_back(r.usual);
  if (usual.size() < kRanksMin) return modelled_;
  const auto middle = usual.begin() + std::ptrdiff_t(usual.size() / 2);
  std::nth_element(usual.begin(), middle, usual.end());
  return modelled_ > 0 ? std::min(modelled_, double(*middle)) : double(*middle);
}

std::vector<LinkHealth::Link> LinkHealth::take(std::span<const LinkReport> reports) {
  std::vector<Link> changed;
  const double due = expected(reports);
  if (due == 0) return changed;
  for (Rank to = 0; to < reports.size(); ++to)
    for (const LinkReport::Seen& s : reports[to].seen) {
      if (s.from == 0 || s.from > reports.size()) continue;
      const auto from = Rank(s.from - 1);
      const std::uint64_t away = reports[from].away_ns, waited = s.waited_ns > away ? s.waited_ns - away : 0;
      if (s.bytes < kBytesMin) continue;
      const double bytes = double(std::max({s.bytes, reports[to].came, reports[from].sent}));
      const double rate = waited > 0 ? bytes / double(waited) * 1e9 : due;
      auto link = std::ranges::find_if(links_, [&](const Link& l) { return l.from == from && l.to == to; });
      const bool is = link != links_.end() && link->slow;
      const bool otherwise = is ? rate * factor_ >= 2 * due : waited >= kWaitedMinNs && rate * factor_ < due;
      if (link == links_.end()) {
        if (!otherwise || links_.size() == kLinksMax) continue;
        link = links_.insert(link, {.from = from, .to = to});
      }
      link->in_a_row = otherwise ? link->in_a_row + 1 : 0;
      if (otherwise || is) link->rate = rate, link->expected = due;
      if (link->in_a_row < kReports) continue;
      link->in_a_row = 0;
      link->slow = !is;
      changed.push_back(*link);
    }
  std::erase_if(links_, [](const Link& l) { return !l.slow && l.in_a_row == 0; });
  return changed;
}

bool LinkHealth::slow(Rank from, Rank to) const {
  return std::ranges::any_of(links_, [&](const Link& l) { return l.slow && l.from == from && l.to == to; });
}

}  // namespace gccl
