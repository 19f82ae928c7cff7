#include "libgccl/fault/link_health.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace gccl::fault {

std::uint64_t elapsed_ns(std::span<const LinkReport> reports) {
  std::uint64_t most = 0;
  for (const LinkReport& r : reports) most = std::max(most, r.elapsed_ns);
  return most;
}

std::uint64_t middle(std::vector<std::uint64_t> rates) {
  assert(!rates.empty());
  const auto at = rates.begin() + std::ptrdiff_t(rates.size() / 2);
  std::nth_element(rates.begin(), at, rates.end());
  return *at;
}

// 0: nothing to compare with. The middle of the ranks' links needs three that know theirs: of two nobody knows which is
// right.
double LinkHealth::expected(std::span<const LinkReport> reports) const {
  constexpr std::size_t kRanksMin = 3;
  std::vector<std::uint64_t> usual;
  for (const LinkReport& r : reports)
    if (r.usual > 0) usual.push_back(r.usual);
  if (usual.size() < kRanksMin) return modelled_;
  const auto reached = double(middle(std::move(usual)));
  return modelled_ > 0 ? std::min(modelled_, reached) : reached;
}

std::vector<LinkHealth::Link> LinkHealth::take(std::span<const LinkReport> reports) {
  time_ns_ += elapsed_ns(reports);
  avoided_changed_ = tries_ = false;
  std::vector<Link> changed;
  if (const double due = expected(reports); due > 0)
    for (Rank to = 0; to < reports.size(); ++to)
      for (const LinkReport::Seen& s : reports[to].seen)
        if (s.from > 0 && s.from <= reports.size() && s.bytes >= kBytesMin)
          take(reports, Rank(s.from - 1), to, s, due, &changed);
  std::erase_if(links_, [](const Link& l) { return !l.slow && l.in_a_row == 0; });
  for (Link& l : links_)
    if (l.avoided && time_ns_ >= l.try_again_ns) {
      l.avoided = false;
      avoided_changed_ = tries_ = true;
    }
  return changed;
}

void LinkHealth::take(std::span<const LinkReport> reports, Rank from, Rank to, const LinkReport::Seen& s, double due,
                      std::vector<Link>* changed) {
  const std::uint64_t away = std::max({reports[from].away_ns, reports[from].starved_ns, reports[to].starved_ns}),
                      waited = s.waited_ns > away ? s.waited_ns - away : 0;
  const double bytes = double(std::max({s.bytes, reports[to].came, reports[from].sent}));
  const double rate = waited > 0 ? bytes / double(waited) * 1e9 : due;
  const bool bad = waited >= kWaitedMinNs && rate * factor_ < due;
  // Not waiting alone shows no recovery: a receiver that comes late does not wait for a slow link either.
  const bool good = rate * factor_ >= 2 * due && double(s.best) * factor_ >= due;
  auto link = std::ranges::find_if(links_, [&](const Link& l) { return l.from == from && l.to == to; });
  if (link == links_.end()) {
    if (!bad || links_.size() == kLinksMax) return;
    link = links_.insert(link, {.from = from, .to = to});
  }
  const bool was = link->slow;
  link->in_a_row = (was ? good : bad) ? link->in_a_row + 1 : 0;
  if (bad) link->rate = rate, link->expected = due;
  if (link->in_a_row == kReports) {
    link->in_a_row = 0;
    link->slow = !was;
    changed->push_back(*link);
  }
  const bool avoids = link->slow && (link->avoided || bad);
  if (avoids == link->avoided) return;
  link->avoided = avoids;
  avoided_changed_ = true;
  if (!avoids) return;
  link->try_again_ns = time_ns_ + link->wait_ns;
  link->wait_ns = std::min(2 * link->wait_ns, kTryAgainMostNs);
}

bool LinkHealth::slow(Rank from, Rank to) const {
  return std::ranges::any_of(links_, [&](const Link& l) { return l.slow && l.from == from && l.to == to; });
}

}  // namespace gccl::fault
