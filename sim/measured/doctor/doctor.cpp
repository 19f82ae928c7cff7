#include "sim/measured/doctor/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "gccl/gccl.h"
#include "libgccl/base/counted.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/measured/doctor/merged.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

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

// It says by itself what went wrong; the others say that nothing moved, or that somebody gave up.
bool explains(const MergedDumps& all, const DumpedFailure& f) {
  switch (f.code) {
    case GCCL_SUCCESS:
    case GCCL_ERR_TIMEOUT:
    case GCCL_ERR_ABORTED:
    case GCCL_ERR_REVOKED:
    case GCCL_ERR_RANKS_CHANGED: return false;
    // What made it end is in its own dump.
    case GCCL_ERR_PEER_LOST: return !all.says_where(f.rank);
    default: return true;
  }
}

// Why a group's communicator failed, where that explains it: most name the rank that they found, and that one itself.
// `earlier`: where the dumps were written for something else. True where there is such a failure.
bool find_failure(const MergedDumps& all, const MergedGroup& g, Findings& out, Findings& earlier) {
  std::map<std::uint32_t, std::pair<std::size_t, const DumpedFailure*>> named;  // how often, and by what
  bool reason = false;
  for (const auto& [rank, d] : g.of) {
    if (!explains(all, d->failure)) continue;
    auto& [times, with] = named[d->failure.rank];
    times += rank != d->failure.rank;
    // Others hear who found a difference, and not whom else it is about.
    if (!with || with->ranks.size() < d->failure.ranks.size()) with = &d->failure;
    reason = reason || all.of.at(rank)->reason == d->failure.text;
  }
  if (named.empty()) return false;
  const auto most = std::max_element(named.begin(), named.end(),
                                     [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
  const DumpedFailure& with = *most->second.second;
  Ranks ranks(with.ranks.begin(), with.ranks.end());
  ranks.insert(most->first);
  (reason ? out : earlier).add("failed", g, 0, ranks, with.text + ".");
  return true;
}

}  // namespace

nlohmann::json examined(const std::vector<DumpOfRank>& dumps) {
  const MergedDumps merged(dumps);
  Findings differences, failures, waits, idle, earlier, slow;
  std::set<std::string> failed;  // groups in which nobody waits any more
  for (std::size_t i = 0; i < merged.groups.size(); ++i) {
    const MergedGroup &g = merged.groups[i], &now = merged.current[i];
    if (find_difference(g, differences)) continue;
    if (find_failure(merged, now, failures, earlier))
      failed.insert(g.name);
    else
      find_waiting(merged, now, waits, idle);
    find_waiting_messages(merged, now, waits, idle);
    find_slow(g, slow);
  }
  Ranks waiting, absent;
  for (const MergedGroup& g : merged.current) {
    for (const std::uint32_t rank : g.ranks)
      if (!merged.of.contains(rank)) absent.insert(rank);
    if (failed.contains(g.name)) continue;
    for (const auto& [rank, d] : g.of) {
      const auto pending = [](const auto& x) { return !x.completed && x.waits; };
      if (std::any_of(d->calls.begin(), d->calls.end(), pending) ||
          std::any_of(d->messages.begin(), d->messages.end(), pending))
        waiting.insert(rank);
    }
  }
  // Where no dump says when calls end: who has made one that others have not.
  for (const auto& [rank, whom] : waits.wait_for)
    if (!whom.empty()) waiting.insert(rank);
  Json all = std::move(differences.list);
  const auto append = [&all](const Findings& findings) {
    for (const Json& f : findings.list) all.push_back(f);
  };
  const auto add_kind = [&](const char* kind, auto due) {
    for (const Json& f : waits.list)
      if (f["kind"] == kind && due(f)) all.push_back(f);
  };
  add_kind("differs", [](const Json&) { return true; });
  append(failures);
  // Who waits for somebody only hands on what others hold up, unless they wait for each other.
  const auto hands_on = [&](const Json& f) {
    return f["kind"] == "missing" && waiting.contains(f["ranks"][0].get<std::uint32_t>());
  };
  const auto add_all = [&](bool handed_on) {
    for (const char* kind : {"missing", "no_dump", "late", "waits"})
      add_kind(kind, [&](const Json& f) { return hands_on(f) == handed_on; });
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
  append(idle);
  append(earlier);
  append(slow);
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
    return fmt::format("{}: no rank holds up the others{}.\n", counted(document["dumps"].size(), "dump"), none);
  Ranks culprits;
  for (const Json& r : findings[0]["ranks"]) culprits.insert(r.get<std::uint32_t>());
  out += fmt::format("culprit: {}\n{}\n", ranks_text(culprits), findings[0]["text"].get<std::string>());
  for (std::size_t i = 1; i < findings.size(); ++i)
    out += fmt::format("also, in group {}: {}\n", findings[i]["group"].get<std::string>(),
                       findings[i]["text"].get<std::string>());
  return out + fmt::format("(group {}; {}{})\n", findings[0]["group"].get<std::string>(),
                           counted(document["dumps"].size(), "dump"), none);
}

}  // namespace gccl::sim
