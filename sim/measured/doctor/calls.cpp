#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "libgccl/base/counted.hpp"
#include "sim/measured/doctor/merged.hpp"

namespace gccl::sim {
namespace {

// A call is uneven where the last rank begins it so much after the first. Slow is a rank that comes last to at least
// this share of at least so many uneven calls, and so many times later than the next. A rank came late to the call that
// did not end where that was so much after the others, and half of the time until the dumps were written.
constexpr double kSlowShare = 0.7, kSlowTimes = 2;
constexpr std::size_t kSlowCalls = 8;
constexpr std::int64_t kSlowNs = 500'000, kLateNs = 50'000'000;

std::string ms_text(double ns) {
  return ns < 999e6 ? fmt::format("{:.3g} ms", ns * 1e-6) : fmt::format("{:.0f} ms", ns * 1e-6);
}

// Where ranks may wait.
struct OpenCall {
  std::uint64_t sequence = 0;  // 0: nowhere
  bool ends_known = true;
};
// The first call that some rank has not ended. Where nothing says that, the first that not all of these ranks have
// made.
OpenCall first_open(const MergedGroup& g) {
  constexpr std::uint64_t kNone = ~std::uint64_t(0);
  std::uint64_t open = kNone, least = kNone, most = 0;
  bool ends_known = true;
  for (const auto& [rank, d] : g.of) {
    for (const DumpedCall& c : d->calls)
      if (!c.completed) open = std::min(open, c.sequence);
    ends_known = ends_known && d->ends_known;
    least = std::min(least, g.last(rank).value_or(kNone));
    most = std::max(most, g.last(rank).value_or(0));
  }
  if (!ends_known && least < most && least + 1 < open) return {.sequence = least + 1, .ends_known = false};
  return {.sequence = open == kNone ? 0 : open};
}

// Who began a call last.
struct Latest {
  std::uint32_t rank = 0;
  std::int64_t after_ns = 0;  // all others; 0: not known
  bool holds_up = false;      // for a good part of the time
};
Latest latest(const MergedDumps& all, const MergedGroup& g, std::uint64_t n) {
  std::vector<std::pair<std::int64_t, std::uint32_t>> began;
  std::int64_t written_ns = INT64_MAX;
  for (const std::uint32_t rank : g.ranks) {
    const DumpedCall* const c = g.call(rank, n);
    if (!c || c->began_ns == 0) return {};
    began.emplace_back(c->began_ns, rank);
    written_ns = std::min(written_ns, all.of.at(rank)->written_ns);
  }
  if (began.size() < 2 || g.clocks_differ()) return {};
  std::sort(began.begin(), began.end());
  const std::int64_t after_ns = began.back().first - began[began.size() - 2].first;
  if (after_ns < kLateNs) return {};
  return {.rank = began.back().second,
          .after_ns = after_ns,
          .holds_up = written_ns > 0 && 2 * after_ns >= written_ns - began[0].first};
}

// A rank that polls hears of a failure at once. One whose threads had not polled for so long did something else until
// then: for whom it waits in its dump is no reason.
constexpr std::int64_t kUnpolledNs = 500'000'000;

// Where the chains of who waits for whom end.
struct Chains {
  Ranks ends;
  bool circle = false;
  std::string text;
};
Chains followed(std::map<std::uint32_t, const DumpedCall*> waits) {
  Chains out;
  for (const auto& [rank, call] : waits) {
    std::uint32_t at = *call->waits_for;
    for (std::size_t steps = 0; waits.contains(at) && !out.circle; ++steps) {
      out.circle = steps > waits.size();
      at = *waits[at]->waits_for;
    }
    if (!waits.contains(at)) out.ends.insert(at);
    out.text += fmt::format("{}rank {} for rank {}, {}", out.text.empty() ? "" : "; ", rank, *call->waits_for,
                            call->waits_what);
  }
  return out;
}

// The rank has ended call n, whose record is gone; else that is not known. Where all records are gone its latest number
// may be a message's.
bool ended(const DumpedGroup& d, std::uint64_t n) {
  if (d.oldest_in_flight) return true;
  if (d.calls.empty()) return false;
  return n > d.calls.front().sequence ||
         std::any_of(d.calls.begin(), d.calls.end(), [](const DumpedCall& c) { return c.completed; });
}

// "ranks 0, 1 wait in call #3 (barrier)"
std::string open_text(const Ranks& waiting, const Ranks& in_flight, const OpenCall& open, const std::string& what) {
  const std::string call = fmt::format("call #{} ({})", open.sequence, what);
  if (!open.ends_known)
    return fmt::format("{} {} made {}, which may have ended", ranks_text(waiting), verb(waiting, "has", "have"), call);
  if (waiting.empty())
    return fmt::format("{} {} {} in flight", ranks_text(in_flight), verb(in_flight, "has", "have"), call);
  const std::string in = fmt::format("{} {} in {}", ranks_text(waiting), verb(waiting, "waits", "wait"), call);
  return in_flight.empty()
             ? in
             : fmt::format("{}, which {} {} in flight", in, ranks_text(in_flight), verb(in_flight, "has", "have"));
}

}  // namespace

bool find_difference(const MergedGroup& g, Findings& out) {
  std::set<std::uint64_t> numbers;
  for (const auto& [rank, d] : g.of)
    for (const DumpedCall& c : d->calls) numbers.insert(c.sequence);
  for (const std::uint64_t n : numbers) {
    std::map<std::string, Ranks> by_call;
    for (const auto& [rank, d] : g.of)
      if (const DumpedCall* c = g.call(rank, n)) by_call[c->what].insert(rank);
    if (by_call.size() < 2) continue;
    std::size_t most = 0;
    for (const auto& [what, ranks] : by_call) most = std::max(most, ranks.size());
    std::string words = fmt::format("call #{} differs:", n);
    Ranks few;
    const bool tie =
        std::count_if(by_call.begin(), by_call.end(), [&](const auto& x) { return x.second.size() == most; }) > 1;
    for (const auto& [what, ranks] : by_call) {
      words += fmt::format(" {} {} {};", ranks_text(ranks), verb(ranks, "calls", "call"), what);
      if (tie || ranks.size() < most) few.insert(ranks.begin(), ranks.end());
    }
    words.back() = '.';
    out.add("differs", g, n, few, words);
    return true;
  }
  return false;
}

void find_waiting(const MergedDumps& all, const MergedGroup& g, Findings& out, Findings& idle) {
  const OpenCall open = first_open(g);
  const std::uint64_t n = open.sequence;
  if (n == 0) return;
  Ranks waiting, in_flight, missing, silent, unknown;
  std::string what;
  for (const std::uint32_t rank : g.ranks) {
    if (!all.says_where(rank)) {
      silent.insert(rank);
      continue;
    }
    const DumpedCall* const c = g.call(rank, n);
    const std::optional<std::uint64_t> last = g.last(rank);
    if (!c) {
      if (!last || (*last >= n && !ended(*g.of.at(rank), n)))
        unknown.insert(rank);
      else if (*last < n)
        missing.insert(rank);
    } else if (!c->completed || !open.ends_known) {
      (c->waits ? waiting : in_flight).insert(rank);
      what = c->what;
    }
  }
  // Where threads only poll for it, what they wait for is all that is known.
  std::map<std::uint32_t, const DumpedCall*> waits;
  for (const std::uint32_t rank : waiting.empty() ? in_flight : waiting)
    if (const DumpedCall* const c = g.call(rank, n);
        c->waits_for && *c->waits_for != rank && g.of.at(rank)->failure.unpolled_ns < kUnpolledNs)
      waits[rank] = c;
  const Chains chains = followed(waits);
  const Ranks entered = waiting.empty() ? in_flight : waiting;
  const std::string in = open_text(waiting, in_flight, open, what);
  const std::string how = chains.text.empty() ? "" : " (" + chains.text + ")";
  const bool held_up = !waiting.empty() || g.has_failed();
  Findings& to = held_up ? out : idle;
  for (const std::uint32_t rank : waiting) out.wait_for[rank].insert(missing.begin(), missing.end());
  for (const std::uint32_t rank : missing)
    to.add("missing", g, n, {rank},
           fmt::format("{}; rank {} has not entered it: it has made {}, and {}.", in, rank,
                       counted(*g.last(rank), "call"), all.elsewhere(&g, rank)));
  if (!silent.empty()) {
    Ranks blamed;
    std::set_intersection(silent.begin(), silent.end(), chains.ends.begin(), chains.ends.end(),
                          std::inserter(blamed, blamed.end()));
    if (missing.empty() || !blamed.empty())
      to.add("no_dump", g, n, blamed.empty() ? silent : blamed,
             fmt::format("{}; {}{}.", in, all.why_silent(silent), how));
    return;
  }
  if (!missing.empty()) return;
  const Ranks blamed = chains.ends.empty() || chains.circle ? entered : chains.ends;
  if (!unknown.empty())
    return to.add("waits", g, n, blamed, fmt::format("{}; {}{}.", in, all.why_unknown(unknown), how));
  if (!held_up) return;  // it may just not be over yet
  const Latest late = latest(all, g, n);
  const std::string came = late.after_ns == 0 ? ""
                                              : fmt::format(
                                                    "; rank {} came {} after all others, where the ranks' "
                                                    "clocks agree",
                                                    late.rank, ms_text(double(late.after_ns)));
  if (late.holds_up || (late.after_ns > 0 && waits.empty())) return to.add("late", g, n, {late.rank}, in + came + ".");
  if (waits.empty()) return to.add("waits", g, n, entered, fmt::format("all ranks have entered it: {}.", in));
  const std::string whom =
      chains.circle ? "wait for each other" : fmt::format("all wait for {} at last", ranks_text(chains.ends));
  to.add("waits", g, n, blamed,
         fmt::format("all ranks have entered call #{} ({}), and {}: {}{}.", n, what, whom, chains.text, came));
}

void find_slow(const MergedGroup& g, Findings& out) {
  if (g.of.size() != g.ranks.size() || g.ranks.size() < 2 || g.clocks_differ()) return;
  std::map<std::uint32_t, std::int64_t> late;  // summed
  std::map<std::uint32_t, std::size_t> last;
  std::size_t calls = 0;
  for (const DumpedCall& first : g.of.begin()->second->calls) {
    std::int64_t begin = INT64_MAX, end = 0;
    std::uint32_t latest = 0;
    bool all = true;
    for (const auto& [rank, d] : g.of) {
      const DumpedCall* const c = g.call(rank, first.sequence);
      all = all && c && c->completed && c->began_ns > 0;
      if (!all) break;
      begin = std::min(begin, c->began_ns);
      if (c->began_ns > end) end = c->began_ns, latest = rank;
    }
    if (!all || end - begin < kSlowNs) continue;
    ++calls;
    ++last[latest];
    for (const auto& [rank, d] : g.of) late[rank] += g.call(rank, first.sequence)->began_ns - begin;
  }
  if (calls < kSlowCalls) return;
  const auto worst =
      std::max_element(late.begin(), late.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::int64_t next = 0;
  for (const auto& [rank, ns] : late)
    if (rank != worst->first) next = std::max(next, ns);
  const std::int64_t mean = worst->second / std::int64_t(calls);
  const std::size_t times = last[worst->first];
  if (double(times) < kSlowShare * double(calls) || double(worst->second) < kSlowTimes * double(next)) return;
  out.add("slow", g, 0, {worst->first},
          fmt::format("rank {} comes last to {} of {} calls that ranks began apart, {} after the first on average (the "
                      "next latest: {}), where the ranks' clocks agree.",
                      worst->first, times, calls, ms_text(double(mean)), ms_text(double(next) / double(calls))));
}

}  // namespace gccl::sim
