#include "libgccl/fault/link_reports.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace gccl::fault {
namespace {

// The ranks report so often, as far as collectives of whole megabytes allow that.
constexpr double kPeriodNs = 200e6;
constexpr std::uint64_t kBytesFirst = 16 << 20, kBytesLeast = 4 << 20, kBytesMost = std::uint64_t(4) << 30;
// From one report to the next the bytes grow, or shrink, by so much at most.
constexpr std::uint64_t kSteps = 4;

}  // namespace

LinkReports::LinkReports(Rank rank, Rank ranks, double factor, double modelled, bool avoids, Nanos now)
    : rank_(rank), avoids_(avoids), health_(factor, modelled), usual_(ranks), reported_(now), bytes_due_(kBytesFirst) {}

// What ranks of a v-collective send differs between them.
bool LinkReports::due(Collective kind, Count count, std::uint32_t element_bytes) {
  if (has_counts(kind)) return false;
  bytes_ += count * element_bytes * (counts_blocks(kind) ? usual_.size() : 1);
  return bytes_ >= bytes_due_;
}

LinkReport LinkReports::report(std::span<const Arrivals> arrivals, Nanos now) {
  LinkReport r;
  r.elapsed_ns = std::uint64_t(now - reported_);
  reported_ = now;
  struct Found {
    Rank from;
    bool slow;
    double rate;
    Arrivals seen;
  };
  std::vector<Found> found;
  for (Rank p = 0; p < arrivals.size(); ++p) {
    const Arrivals& seen = arrivals[p];
    r.away_ns = std::max(r.away_ns, seen.away_ns);
    r.came += seen.bytes;
    r.sent += seen.sent;
    if (seen.bytes < LinkHealth::kBytesMin) continue;
    if (seen.best > 0) usual_[p] = seen.best;
    found.push_back(
        {p, health_.slow(p, rank_), seen.waited_ns > 0 ? double(seen.bytes) / double(seen.waited_ns) : INFINITY, seen});
  }
  std::ranges::sort(found, [](const Found& a, const Found& b) { return a.slow != b.slow ? a.slow : a.rate < b.rate; });
  for (std::size_t i = 0; i < std::min(found.size(), LinkReport::kLinks); ++i)
    r.seen[i] = {.from = found[i].from + 1,
                 .bytes = found[i].seen.bytes,
                 .waited_ns = found[i].seen.waited_ns,
                 .best = found[i].seen.best};
  std::vector<std::uint64_t> known;
  std::ranges::copy_if(usual_, std::back_inserter(known), [](std::uint64_t rate) { return rate > 0; });
  if (!known.empty()) r.usual = middle(std::move(known));
  return r;
}

std::vector<LinkHealth::Link> LinkReports::take(std::span<const LinkReport> reports) {
  const std::uint64_t elapsed = std::max<std::uint64_t>(elapsed_ns(reports), 1);
  const auto wanted = std::uint64_t(std::min(double(bytes_) * kPeriodNs / double(elapsed), double(kBytesMost)));
  bytes_due_ = std::clamp(std::clamp(wanted, bytes_due_ / kSteps, bytes_due_ * kSteps), kBytesLeast, kBytesMost);
  bytes_ = 0;
  std::vector<LinkHealth::Link> changed = health_.take(reports);
  if (plans_change() && health_.tries()) bytes_due_ = kBytesLeast;
  return changed;
}

// Of both directions the slower one's rate.
std::vector<SlowPair> LinkReports::to_avoid() const {
  std::vector<SlowPair> pairs;
  for (const LinkHealth::Link& l : health_.links()) {
    if (!l.avoided) continue;
    const SlowPair p{std::min(l.from, l.to), std::max(l.from, l.to), 1e9 / l.rate - 1e9 / l.expected};
    const auto same = std::ranges::find_if(pairs, [&](const SlowPair& o) { return o.a == p.a && o.b == p.b; });
    if (same == pairs.end()) {
      pairs.push_back(p);
    } else {
      same->more_ns_per_byte = std::max(same->more_ns_per_byte, p.more_ns_per_byte);
    }
  }
  return pairs;
}

}  // namespace gccl::fault
