#include "libgccl/communicator/links/link_watch.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "libgccl/base/clock.hpp"
#include "libgccl/base/log.hpp"

namespace gccl {
namespace {

// The ranks report so often, as far as collectives of whole megabytes allow that.
constexpr double kPeriodNs = 200e6;
constexpr std::uint64_t kBytesFirst = 16 << 20, kBytesLeast = 4 << 20, kBytesMost = std::uint64_t(4) << 30;
// From one report to the next the bytes grow, or shrink, by so much at most.
constexpr std::uint64_t kSteps = 4;

std::string rate_text(double bytes_per_second) {
  const double mb = bytes_per_second / 1e6;
  return fmt::format("{:.{}f} MB/s", mb, mb < 10 ? 1 : 0);
}

std::string pairs_text(const std::vector<SlowPair>& pairs) {
  std::string text;
  for (const SlowPair& p : pairs)
    text += fmt::format("{}the link between rank {} and rank {}", text.empty() ? "" : ", ", p.a, p.b);
  return text;
}

}  // namespace

LinkWatch::LinkWatch(Members members, double factor, double modelled, bool avoids)
    : members_(std::move(members)),
      avoids_(avoids),
      health_(factor, modelled),
      usual_(members_.size()),
      reported_ns_(now_ns()),
      bytes_due_(kBytesFirst) {}

// What ranks of a v-collective send differs between them.
bool LinkWatch::due(const Work& work) {
  if (has_counts(work.call.kind)) return false;
  bytes_ += work.call.count * work.elements.bytes * (counts_blocks(work.call.kind) ? members_.size() : 1);
  return bytes_ >= bytes_due_;
}

LinkReport LinkWatch::report(Ports& ports, std::int64_t now_ns) {
  LinkReport r;
  r.elapsed_ns = std::uint64_t(now_ns - reported_ns_);
  reported_ns_ = now_ns;
  struct Found {
    Rank from;
    bool slow;
    double rate;
    Arrivals seen;
  };
  std::vector<Found> found;
  const std::vector<Arrivals> arrivals = ports.take_arrivals();
  for (Rank p = 0; p < arrivals.size(); ++p) {
    const Arrivals& seen = arrivals[p];
    r.away_ns = std::max(r.away_ns, seen.away_ns);
    r.came += seen.bytes;
    r.sent += seen.sent;
    if (seen.bytes < LinkHealth::kBytesMin) continue;
    if (seen.best > 0) usual_[p] = seen.best;
    found.push_back({p, health_.slow(p, members_.rank),
                     seen.waited_ns > 0 ? double(seen.bytes) / double(seen.waited_ns) : INFINITY, seen});
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

std::vector<LinkHealth::Link> LinkWatch::take(std::span<const LinkReport> reports) {
  const std::uint64_t elapsed = std::max<std::uint64_t>(elapsed_ns(reports), 1);
  const auto wanted = std::uint64_t(std::min(double(bytes_) * kPeriodNs / double(elapsed), double(kBytesMost)));
  bytes_due_ = std::clamp(std::clamp(wanted, bytes_due_ / kSteps, bytes_due_ * kSteps), kBytesLeast, kBytesMost);
  bytes_ = 0;
  std::vector<LinkHealth::Link> changed = health_.take(reports);
  if (plans_change() && health_.tries()) bytes_due_ = kBytesLeast;
  for (const LinkHealth::Link& l : changed) {
    const bool concerned = members_.rank == 0 || members_.rank == l.from || members_.rank == l.to;
    log_line(concerned ? kLogWarnings : kLogInfo,
             fmt::format(
                 "{}: the link {}", members_.name(members_.rank),
                 l.slow ? "is slow " + text(l)
                        : fmt::format("from {} to {} is no longer slow", members_.name(l.from), members_.name(l.to))));
  }
  if (plans_change() && members_.rank == 0)
    log_line(kLogInfo, to_avoid().empty() ? "calls are planned as if no link were slow"
                                          : fmt::format("calls are planned around {}", pairs_text(to_avoid())));
  return changed;
}

// Of both directions the slower one's rate.
std::vector<SlowPair> LinkWatch::to_avoid() const {
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

std::string LinkWatch::text(const LinkHealth::Link& l) const {
  return fmt::format("from {} to {}, {} where {} are expected", members_.name(l.from), members_.name(l.to),
                     rate_text(l.rate), rate_text(l.expected));
}

std::string LinkWatch::text() const {
  std::string all;
  for (const LinkHealth::Link& l : health_.links())
    if (l.slow) all += fmt::format("{}{}", all.empty() ? "" : "; ", text(l));
  return all;
}

Work LinkExchange::work() {
  Work w;
  w.what = {.kind = std::uint8_t(Collective::allgather),
            .purpose = Purpose::links,
            .dtype = GCCL_UINT8,
            .count = sizeof mine};
  w.call = {.kind = Collective::allgather, .count = sizeof mine};
  w.memory.base[std::size_t(Buffer::input)] = reinterpret_cast<std::byte*>(&mine);
  w.memory.base[std::size_t(Buffer::output)] = reinterpret_cast<std::byte*>(all.data());
  return w;
}

}  // namespace gccl
