#include "sim/measured/doctor/doctor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "libgccl/json/reader.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;
using Ranks = std::set<std::uint32_t>;

// A call is uneven where the last rank begins it so much after the first. Slow is a rank that comes last to at least
// this share of at least so many uneven calls, and so many times later than the next. A rank came late to the call that
// did not end where that was so much after the others.
constexpr double kSlowShare = 0.7, kSlowTimes = 2;
constexpr std::size_t kSlowCalls = 8;
constexpr std::int64_t kSlowNs = 500'000, kLateNs = 50'000'000;

std::string ranks_text(const Ranks& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}
const char* verb(const Ranks& ranks, const char* one, const char* many) { return ranks.size() == 1 ? one : many; }

std::string ms_text(double ns) {
  return ns < 999e6 ? fmt::format("{:.3g} ms", ns * 1e-6) : fmt::format("{:.0f} ms", ns * 1e-6);
}

// A group, with what each rank did in it.
struct MergedGroup {
  std::string name;
  Ranks ranks;
  std::map<std::uint32_t, const DumpedGroup*> of;

  const DumpedCall* call(std::uint32_t rank, std::uint64_t sequence) const {
    const auto found = of.find(rank);
    if (found == of.end()) return nullptr;
    const auto& calls = found->second->calls;
    const auto at = std::lower_bound(calls.begin(), calls.end(), sequence,
                                     [](const DumpedCall& c, std::uint64_t s) { return c.sequence < s; });
    return at != calls.end() && at->sequence == sequence ? &*at : nullptr;
  }
  // The number of the rank's latest call; none: its dump does not say.
  std::optional<std::uint64_t> last(std::uint32_t rank) const {
    const auto found = of.find(rank);
    if (found == of.end()) return std::nullopt;
    const DumpedGroup& d = *found->second;
    if (d.calls.empty()) return d.made;
    return std::max(d.calls.back().sequence, d.made.value_or(0));
  }
};

struct Findings {
  Json list = Json::array();
  std::map<std::uint32_t, Ranks> wait_for;  // of ranks that wait: for whom
  void add(const char* kind, const MergedGroup& g, std::uint64_t sequence, const Ranks& ranks,
           const std::string& words) {
    list.push_back({{"kind", kind}, {"group", g.name}, {"sequence", sequence}, {"ranks", ranks}, {"text", words}});
  }
};

// True where some rank calls something else than the others: what comes after that says nothing.
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

std::string waiting_text(const DumpedMessage& m) {
  return fmt::format("to {} {} {} rank {}", m.sends ? "send" : "receive", m.what, m.sends ? "to" : "from", m.peer);
}

// Where a rank is instead, by its messages and its calls, but not those in one group.
std::string elsewhere(const std::vector<MergedGroup>& groups, const MergedGroup* but, std::uint32_t rank) {
  bool ends_known = true;
  for (const MergedGroup& g : groups) {
    if (!g.of.contains(rank)) continue;
    ends_known = ends_known && g.of.at(rank)->ends_known;
    if (&g == but) continue;
    for (const DumpedCall& c : g.of.at(rank)->calls)
      if (!c.completed) return fmt::format("is in call #{} ({}) of group {}", c.sequence, c.what, g.name);
  }
  for (const MergedGroup& g : groups)
    if (g.of.contains(rank))
      for (const DumpedMessage& m : g.of.at(rank)->messages)
        if (!m.completed) return "waits " + waiting_text(m);
  return ends_known ? "is in no call" : "may be in any call, as its dump does not say which have ended";
}

// What `m`, the k-th message of its direction between the two, meets at its peer; null where that has not come to it.
const DumpedMessage* other_side(const DumpedGroup& here, const DumpedGroup& there, std::uint32_t rank,
                                const DumpedMessage& m, std::size_t k) {
  const bool counted = here.all_messages && there.all_messages;
  std::size_t n = 0;
  for (const DumpedMessage& x : there.messages)
    if (x.sends != m.sends && x.peer == rank && (counted ? n++ == k : !x.completed)) return &x;
  return nullptr;
}

// Of the messages between two ranks the first that waits says what is wrong.
void find_waiting_messages(const std::vector<MergedGroup>& groups, const Ranks& dumped, const MergedGroup& g,
                           Findings& out) {
  for (const auto& [rank, d] : g.of) {
    std::map<std::pair<bool, std::uint32_t>, std::size_t> before;  // by direction and peer
    std::set<std::pair<bool, std::uint32_t>> said;
    std::string on_its_way;  // of messages that the other side is done with
    const std::size_t found = out.list.size();
    for (const DumpedMessage& m : d->messages) {
      const std::pair way(m.sends, m.peer);
      const std::size_t k = before[way]++;
      if (m.completed || !said.insert(way).second) continue;
      const std::string in = fmt::format("rank {} waits {}", rank, waiting_text(m));
      if (!dumped.contains(m.peer)) {
        out.add("no_dump", g, 0, {m.peer}, in + ", which left no dump: it has ended, or is in no call.");
        continue;
      }
      const auto peer = g.of.find(m.peer);
      const DumpedMessage* const other = peer == g.of.end() ? nullptr : other_side(*d, *peer->second, rank, m, k);
      const char* const done = m.sends ? "received" : "sent";
      const Ranks both = {rank, m.peer};
      if (m.peer == rank && !other) {
        out.add("waits", g, 0, {rank}, fmt::format("{}, which is itself, and has not {} it.", in, done));
      } else if (peer == g.of.end()) {
        out.add("waits", g, 0, {rank},
                fmt::format("{}; what rank {} has done in this group is not in its dump.", in, m.peer));
      } else if (!other) {
        out.wait_for[rank].insert(m.peer);
        out.add("missing", g, 0, {m.peer},
                fmt::format("{}, which has not {} it, and {}.", in, done, elsewhere(groups, nullptr, m.peer)));
      } else if (m.sends && !other->completed) {
        continue;  // said of the receiver, for both
      } else if (m.bytes != other->bytes && m.bytes > 0 && other->bytes > 0) {
        out.add("differs", g, 0, both, fmt::format("{}, which has {} {}.", in, done, other->what));
      } else if (other->completed) {
        on_its_way = fmt::format("{}, which has {} it.", in, done);
      } else {
        out.add("waits", g, 0, both, in + ", which waits as well.");
      }
    }
    // Parts of a batch wait for its others.
    if (out.list.size() == found && !on_its_way.empty()) out.add("waits", g, 0, {rank}, on_its_way);
  }
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

void find_waiting(const std::vector<MergedGroup>& groups, const Ranks& dumped, const MergedGroup& g, Findings& out) {
  const auto [n, ends_known] = first_open(g);
  if (n == 0) return;
  Ranks waiting, missing, silent, unknown;
  std::string what;
  std::map<std::uint32_t, std::uint32_t> waits_for;
  for (const std::uint32_t rank : g.ranks) {
    if (!dumped.contains(rank)) {
      silent.insert(rank);
      continue;
    }
    const DumpedCall* const c = g.call(rank, n);
    const std::optional<std::uint64_t> last = g.last(rank);
    if (!c) {
      if (!last)
        unknown.insert(rank);
      else if (*last < n)
        missing.insert(rank);
    } else if (!c->completed || !ends_known) {
      waiting.insert(rank);
      what = c->what;
      if (c->waits_for && *c->waits_for != rank) waits_for[rank] = *c->waits_for;
    }
  }
  const std::string in =
      ends_known ? fmt::format("{} {} in call #{} ({})", ranks_text(waiting), verb(waiting, "waits", "wait"), n, what)
                 : fmt::format("{} {} made call #{} ({}), which may have ended", ranks_text(waiting),
                               verb(waiting, "has", "have"), n, what);
  for (const std::uint32_t rank : waiting) out.wait_for[rank].insert(missing.begin(), missing.end());
  for (const std::uint32_t rank : missing)
    out.add("missing", g, n, {rank},
            fmt::format("{}; rank {} has not entered it: it has made {} calls, and {}.", in, rank, *g.last(rank),
                        elsewhere(groups, &g, rank)));
  if (missing.empty() && silent.empty() && unknown.empty()) {
    std::vector<std::pair<std::int64_t, std::uint32_t>> began;
    for (const std::uint32_t rank : g.ranks) began.emplace_back(g.call(rank, n) ? g.call(rank, n)->began_ns : 0, rank);
    std::sort(began.begin(), began.end());
    const std::int64_t apart = began.size() > 1 ? began.back().first - began[began.size() - 2].first : 0;
    if (began[0].first > 0 && apart >= kLateNs)
      return out.add("late", g, n, {began.back().second},
                     fmt::format("{}; rank {} came {} after all others, where the ranks' clocks agree.", in,
                                 began.back().second, ms_text(double(apart))));
  }
  Ranks ends;  // of the chains of who waits for whom
  bool circle = false;
  for (const auto& [rank, first] : waits_for) {
    std::uint32_t at = first;
    for (std::size_t steps = 0; waits_for.contains(at); ++steps) {
      if (steps > waits_for.size()) {
        circle = true;
        break;
      }
      at = waits_for[at];
    }
    if (!waits_for.contains(at)) ends.insert(at);
  }
  std::string chain;
  for (const auto& [rank, to] : waits_for) {
    const DumpedCall* const c = g.call(rank, n);
    chain += fmt::format("{}rank {} for rank {}, {}", chain.empty() ? "" : "; ", rank, to, c->waits_what);
  }
  const std::string how = chain.empty() ? "" : " (" + chain + ")";
  if (!silent.empty()) {
    Ranks blamed;
    std::set_intersection(silent.begin(), silent.end(), ends.begin(), ends.end(), std::inserter(blamed, blamed.end()));
    if (missing.empty() || !blamed.empty())
      out.add("no_dump", g, n, blamed.empty() ? silent : blamed,
              fmt::format("{}; {} left no dump: {} ended, or {} in no call of GCCL's{}.", in, ranks_text(silent),
                          verb(silent, "it has", "they have"), verb(silent, "is", "are"), how));
  } else if (missing.empty() && !unknown.empty()) {
    out.add("waits", g, n, ends.empty() || circle ? waiting : ends,
            fmt::format("{}; what {} {} in this group is not in {} {}{}.", in, ranks_text(unknown),
                        verb(unknown, "has done", "have done"), verb(unknown, "its", "their"),
                        verb(unknown, "dump", "dumps"), how));
  } else if (missing.empty() && !chain.empty()) {
    out.add(
        "waits", g, n, circle ? waiting : ends,
        fmt::format("all ranks have entered call #{} ({}), and {}: {}.", n, what,
                    circle ? "wait for each other" : fmt::format("all wait for {} at last", ranks_text(ends)), chain));
  } else if (missing.empty()) {
    out.add("waits", g, n, waiting, fmt::format("all ranks have entered it: {}.", in));
  }
}

void find_slow(const MergedGroup& g, Findings& out) {
  if (g.of.size() != g.ranks.size() || g.ranks.size() < 2) return;
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

// Ranks of which each waits for the next, and the last for the first; empty where there are none.
std::vector<std::uint32_t> circle_of(const std::map<std::uint32_t, Ranks>& wait_for) {
  std::map<std::uint32_t, Ranks::const_iterator> next;  // of the ranks that were come to: whom to follow
  for (const auto& [start, unused] : wait_for) {
    std::vector<std::uint32_t> way;
    const auto go_to = [&](std::uint32_t rank) {
      const auto found = wait_for.find(rank);
      if (found == wait_for.end() || !next.emplace(rank, found->second.begin()).second) return;
      way.push_back(rank);
    };
    for (go_to(start); !way.empty();) {
      const std::uint32_t at = way.back();
      Ranks::const_iterator& to = next.at(at);
      if (to == wait_for.at(at).end()) {
        way.pop_back();
        continue;
      }
      const std::uint32_t rank = *to++;
      if (const auto before = std::find(way.begin(), way.end(), rank); before != way.end()) return {before, way.end()};
      go_to(rank);
    }
  }
  return {};
}

bool apart(const Ranks& a, const Ranks& b) {
  return std::none_of(a.begin(), a.end(), [&](std::uint32_t rank) { return b.contains(rank); });
}

// A process that has joined may have the rank of one that has gone, and left a dump.
void require_one_world(const std::vector<DumpOfRank>& dumps) {
  std::vector<std::pair<std::string, std::string>> files;  // by world, in the order in which they are given
  for (const DumpOfRank& d : dumps) {
    if (d.world.empty()) continue;
    auto at = std::ranges::find(files, d.world, &std::pair<std::string, std::string>::first);
    if (at == files.end()) at = files.insert(files.end(), {d.world, ""});
    at->second += (at->second.empty() ? "" : ", ") + d.file;
  }
  if (files.size() < 2) return;
  std::string all;
  for (const auto& [world, names] : files) all += (all.empty() ? "" : "; or ") + names;
  throw json::InputError(
      fmt::format("{}: these dumps are of different jobs, or processes joined between them and ranks have had other "
                  "numbers since: expected one of {}",
                  dumps.back().file, all));
}

// PyTorch's split_group names all groups that one call makes alike: they have no rank in common.
std::vector<MergedGroup> groups_of(const std::vector<DumpOfRank>& dumps) {
  std::vector<MergedGroup> groups;
  std::map<std::uint32_t, const DumpOfRank*> seen;
  for (const DumpOfRank& d : dumps) {
    const auto [at, fresh] = seen.emplace(d.rank, &d);
    if (!fresh)
      throw json::InputError(fmt::format("{}: it is of rank {}, as {} is: expected one dump of each rank", d.file,
                                         d.rank, at->second->file));
    for (const DumpedGroup& g : d.groups) {
      const Ranks ranks(g.ranks.begin(), g.ranks.end());
      auto found = groups.begin();
      while (found != groups.end() && (found->name != g.name || apart(found->ranks, ranks))) ++found;
      if (found == groups.end()) found = groups.insert(groups.end(), {.name = g.name, .ranks = ranks, .of = {}});
      if (found->ranks != ranks || !ranks.contains(d.rank))
        throw json::InputError(
            fmt::format("{}: group {} has {}, expected {} as in the others' dumps, with rank {} among them: are these "
                        "dumps of one job?",
                        d.file, g.name, ranks_text(ranks), ranks_text(found->ranks), d.rank));
      found->of[d.rank] = &g;
    }
  }
  std::map<std::string, std::size_t> named;
  for (const MergedGroup& g : groups) ++named[g.name];
  for (MergedGroup& g : groups)
    if (named[g.name] > 1) g.name += " of " + ranks_text(g.ranks);
  return groups;
}

}  // namespace

nlohmann::json examined(const std::vector<DumpOfRank>& dumps) {
  require_one_world(dumps);
  const std::vector<MergedGroup> groups = groups_of(dumps);
  Ranks dumped, waiting, absent;
  for (const DumpOfRank& d : dumps) dumped.insert(d.rank);
  Findings differences, waits, slow;
  for (const MergedGroup& g : groups)
    if (!find_difference(g, differences)) {
      find_waiting(groups, dumped, g, waits);
      find_waiting_messages(groups, dumped, g, waits);
      find_slow(g, slow);
    }
  for (const MergedGroup& g : groups) {
    for (const std::uint32_t rank : g.ranks)
      if (!dumped.contains(rank)) absent.insert(rank);
    for (const auto& [rank, d] : g.of) {
      const auto pending = [](const auto& x) { return !x.completed; };
      if (std::any_of(d->calls.begin(), d->calls.end(), pending) ||
          std::any_of(d->messages.begin(), d->messages.end(), pending))
        waiting.insert(rank);
    }
  }
  Json all = std::move(differences.list);
  // Who waits for somebody only hands on what others hold up, unless they wait for each other.
  const auto hands_on = [&](const Json& f) {
    return f["kind"] == "missing" && waiting.contains(f["ranks"][0].get<std::uint32_t>());
  };
  const auto add_all = [&](bool handed_on) {
    for (const char* kind : {"differs", "missing", "no_dump", "late", "waits"})
      for (const Json& f : waits.list)
        if (f["kind"] == kind && hands_on(f) == handed_on) all.push_back(f);
  };
  add_all(false);
  if (all.empty() && !waits.list.empty())
    if (const auto circle = circle_of(waits.wait_for); !circle.empty()) {
      std::string words;
      for (std::size_t i = 0; i < circle.size(); ++i)
        words += fmt::format("{}rank {} for rank {}", i ? ", " : "", circle[i], circle[(i + 1) % circle.size()]);
      Json f = waits.list[0];
      f["kind"] = "waits", f["sequence"] = 0, f["ranks"] = Ranks(circle.begin(), circle.end());
      f["text"] = fmt::format("they wait for each other: {}.", words);
      all.push_back(std::move(f));
    }
  add_all(true);
  for (const Json& f : slow.list) all.push_back(f);
  Json files = Json::array();
  for (const DumpOfRank& d : dumps)
    files.push_back({{"file", json::valid_text(d.file)}, {"rank", d.rank}, {"reason", d.reason}});
  Json document = {{"schema", "gccl/doctor/1"},
                   {"dumps", std::move(files)},
                   {"findings", all},
                   {"absent", absent},
                   {"ok", all.empty()}};
  json::replace_control(document);
  return document;
}

std::string doctor_text(const nlohmann::json& document) {
  const Json& findings = document["findings"];
  std::string out;
  const Ranks absent = document["absent"].get<Ranks>();
  const std::string none = absent.empty() ? "" : fmt::format("; {} left none", ranks_text(absent));
  if (findings.empty())
    return fmt::format("{} dumps: no rank holds up the others{}.\n", document["dumps"].size(), none);
  Ranks culprits;
  for (const Json& r : findings[0]["ranks"]) culprits.insert(r.get<std::uint32_t>());
  out += fmt::format("culprit: {}\n{}\n", ranks_text(culprits), findings[0]["text"].get<std::string>());
  for (std::size_t i = 1; i < findings.size(); ++i)
    out += fmt::format("also, in group {}: {}\n", findings[i]["group"].get<std::string>(),
                       findings[i]["text"].get<std::string>());
  return out + fmt::format("(group {}; {} dumps{})\n", findings[0]["group"].get<std::string>(),
                           document["dumps"].size(), none);
}

}  // namespace gccl::sim
