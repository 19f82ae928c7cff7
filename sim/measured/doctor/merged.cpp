#include "sim/measured/doctor/merged.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "libgccl/json/reader.hpp"

namespace gccl::sim {
namespace {

// A time in a dump is computed from the processor's counter: so much is no contradiction.
constexpr std::int64_t kClockErrorNs = 500'000;

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

std::map<std::uint32_t, const DumpOfRank*> by_rank(const std::vector<DumpOfRank>& dumps) {
  std::map<std::uint32_t, const DumpOfRank*> of;
  for (const DumpOfRank& d : dumps) {
    const auto [at, fresh] = of.emplace(d.rank, &d);
    if (!fresh)
      throw json::InputError(fmt::format("{}: it is of rank {}, as {} is: expected one dump of each rank", d.file,
                                         d.rank, at->second->file));
  }
  return of;
}

// PyTorch's split_group names all groups that one call makes alike: they have no rank in common. Where a dump does not
// say who is in a group, anybody who left one may be.
// Groups are in the order of ranks, not of files: it is that of findings which explain as much.
std::vector<MergedGroup> groups_of(const std::map<std::uint32_t, const DumpOfRank*>& dumps) {
  std::vector<MergedGroup> groups;
  Ranks anybody;
  for (const auto& [rank, d] : dumps) anybody.insert(rank);
  for (const auto& [rank, d] : dumps) {
    for (const DumpedGroup& g : d->groups) {
      const Ranks ranks = g.ranks.empty() ? anybody : Ranks(g.ranks.begin(), g.ranks.end());
      auto found = groups.begin();
      while (found != groups.end() && (found->name != g.name || apart(found->ranks, ranks))) ++found;
      if (found == groups.end()) found = groups.insert(groups.end(), {.name = g.name, .ranks = ranks, .of = {}});
      if (found->ranks != ranks || !ranks.contains(rank))
        throw json::InputError(
            fmt::format("{}: group {} has {}, expected {} as in the others' dumps, with rank {} among them: are these "
                        "dumps of one job?",
                        d->file, g.name, ranks_text(ranks), ranks_text(found->ranks), rank));
      found->of[rank] = &g;
    }
  }
  std::map<std::string, std::size_t> named;
  for (const MergedGroup& g : groups) ++named[g.name];
  for (MergedGroup& g : groups)
    if (named[g.name] > 1) g.name += " of " + ranks_text(g.ranks);
  return groups;
}

void add_outdated(const MergedGroup& g, Ranks* out) {
  std::uint64_t entered_by_all = 0;
  for (const auto& [rank, d] : g.of)
    for (const DumpedCall& c : d->calls)
      if (c.completed && c.needs_all) entered_by_all = std::max(entered_by_all, c.sequence);
  for (const auto& [rank, d] : g.of)
    if (const auto last = g.last(rank); last && *last < entered_by_all) out->insert(rank);
}

}  // namespace

std::string ranks_text(const Ranks& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

const char* verb(const Ranks& ranks, const char* one, const char* many) { return ranks.size() == 1 ? one : many; }

std::string waiting_text(const DumpedMessage& m) {
  return fmt::format("to {} {} {} rank {}", m.sends ? "send" : "receive", m.what, m.sends ? "to" : "from", m.peer);
}

const DumpedCall* MergedGroup::call(std::uint32_t rank, std::uint64_t sequence) const {
  const auto found = of.find(rank);
  if (found == of.end()) return nullptr;
  const auto& calls = found->second->calls;
  const auto at = std::lower_bound(calls.begin(), calls.end(), sequence,
                                   [](const DumpedCall& c, std::uint64_t s) { return c.sequence < s; });
  return at != calls.end() && at->sequence == sequence ? &*at : nullptr;
}

std::optional<std::uint64_t> MergedGroup::last(std::uint32_t rank) const {
  const auto found = of.find(rank);
  if (found == of.end()) return std::nullopt;
  const DumpedGroup& d = *found->second;
  if (d.calls.empty()) return d.made;
  return std::max(d.calls.back().sequence, d.made.value_or(0));
}

bool MergedGroup::has_failed() const {
  return std::any_of(of.begin(), of.end(), [](const auto& x) { return x.second->failure.code != 0; });
}

bool MergedGroup::clocks_differ() const {
  for (const auto& [rank, d] : of)
    for (const DumpedCall& c : d->calls) {
      if (!c.needs_all || c.ended_ns == 0) continue;
      for (const auto& [peer, unused] : of)
        if (const DumpedCall* const other = call(peer, c.sequence);
            other && other->began_ns > c.ended_ns + kClockErrorNs)
          return true;
    }
  return false;
}

MergedDumps::MergedDumps(const std::vector<DumpOfRank>& dumps) {
  require_one_world(dumps);
  of = by_rank(dumps);
  current = groups = groups_of(of);
  for (const MergedGroup& g : groups) add_outdated(g, &outdated);
  for (MergedGroup& g : current) std::erase_if(g.of, [&](const auto& x) { return outdated.contains(x.first); });
}

std::string MergedDumps::elsewhere(const MergedGroup* but, std::uint32_t rank) const {
  bool ends_known = true;
  for (const MergedGroup& g : current) {
    if (!g.of.contains(rank)) continue;
    ends_known = ends_known && g.of.at(rank)->ends_known;
    if (but && g.name == but->name) continue;
    for (const DumpedCall& c : g.of.at(rank)->calls)
      if (!c.completed && c.waits) return fmt::format("is in call #{} ({}) of group {}", c.sequence, c.what, g.name);
  }
  for (const MergedGroup& g : current)
    if (g.of.contains(rank))
      for (const DumpedMessage& m : g.of.at(rank)->messages)
        if (!m.completed && m.waits) return "waits " + waiting_text(m);
  return ends_known ? "is in no call" : "may be in any call, as its dump does not say which have ended";
}

std::string MergedDumps::why_silent(const Ranks& ranks) const {
  Ranks none, earlier;
  for (const std::uint32_t rank : ranks) (of.contains(rank) ? earlier : none).insert(rank);
  std::string words;
  if (!earlier.empty())
    words = fmt::format("{} {} made calls since {} {} written, which {} of an earlier moment", ranks_text(earlier),
                        verb(earlier, "has", "have"), verb(earlier, "its", "their"),
                        verb(earlier, "dump was", "dumps were"), verb(earlier, "is", "are"));
  if (!none.empty())
    words += fmt::format("{}{} left no dump: {} ended, or {} in no call of GCCL's", words.empty() ? "" : "; ",
                         ranks_text(none), verb(none, "it has", "they have"), verb(none, "is", "are"));
  return words;
}

std::string MergedDumps::why_unknown(const Ranks& ranks) const {
  const bool busy =
      std::any_of(ranks.begin(), ranks.end(), [this](std::uint32_t r) { return of.contains(r) && of.at(r)->skipped; });
  return fmt::format("what {} {} in this group is not in {} {}{}", ranks_text(ranks),
                     verb(ranks, "has done", "have done"), verb(ranks, "its", "their"), verb(ranks, "dump", "dumps"),
                     busy ? ", as another thread was busy with some communicators" : "");
}

}  // namespace gccl::sim
