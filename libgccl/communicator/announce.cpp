// What the log says of a communicator: who is where and reaches whom (GCCL_LOG=2), and how calls are carried out, once
// for each shape of call. Rank 0 speaks for all where all say the same.
#include <fmt/core.h>
#include <unistd.h>

#include <cstring>

#include "libgccl/base/environment.hpp"
#include "libgccl/base/log.hpp"
#include "libgccl/bootstrap/missing.hpp"
#include "libgccl/bootstrap/variables.hpp"
#include "libgccl/communicator/record/recorder.hpp"
#include "libgccl/select/reason.hpp"

namespace gccl {
namespace {

std::string many(Count n, const char* one, const char* several) {
  return fmt::format("{} {}", n, n == 1 ? one : several);
}

std::string limit_text(std::int64_t ms) { return ms < 0 ? "none" : fmt::format("{} ms", ms); }

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

// "node 0: ranks 0-3 of 8; node 1: ..."
std::string nodes_text(const std::vector<Rank>& nodes) {
  constexpr Rank kNodesMax = 16;
  std::vector<std::vector<Rank>> ranks;
  for (Rank r = 0; r < nodes.size(); ++r) {
    if (nodes[r] >= ranks.size()) ranks.resize(nodes[r] + 1);
    ranks[nodes[r]].push_back(r);
  }
  std::string text = fmt::format("{} {}", ranks.size(), ranks.size() == 1 ? "node" : "nodes");
  for (Rank n = 0; n < ranks.size() && n < kNodesMax; ++n)
    text += fmt::format("{} node {} has {}", n == 0 ? ":" : ";", n, ranks_text(ranks[n], Rank(nodes.size())));
  if (ranks.size() > kNodesMax) text += fmt::format(" and {} nodes more", ranks.size() - kNodesMax);
  return text;
}

// What the environment sets, secrets and what launchers set for each rank apart.
std::string set_variables() {
  const Environment environment = process_environment();
  std::string text;
  for (const Variable& v : variables()) {
    if (v.fallback == "a launcher's" || v.name.starts_with("GCCL_SECRET")) continue;
    const char* const value = environment(std::string(v.name).c_str());
    if (value) text += fmt::format(" {}={}", v.name, value);
  }
  return text.empty() ? " nothing" : text;
}

}  // namespace

void announce(const Team& team) {
  if (log_level() < kLogInfo) return;
  std::string line = fmt::format("rank {} of {}: GCCL {}.{}.{}, process {} on {} (node {})", team.rank(), team.size(),
                                 GCCL_VERSION_MAJOR, GCCL_VERSION_MINOR, GCCL_VERSION_PATCH, ::getpid(), host_name(),
                                 team.members.node[team.rank()]);
  for (const Ports::Port& port : team.ports->all()) {
    std::vector<Rank> peers;
    for (Rank r = 0; r < team.size(); ++r)
      if (r != team.rank() && &team.ports->to(r) == &port) peers.push_back(r);
    if (!peers.empty()) line += fmt::format(", {} to {}", port.backend->name, ranks_text(peers, team.size()));
  }
  log_line(kLogInfo, line);
  if (team.rank() != 0) return;
  log_line(kLogInfo, fmt::format("topology: {}", nodes_text(team.members.node)));
  const Bootstrap& bootstrap = team.world->bootstrap;
  const auto yes_no = [](bool yes) { return yes ? "yes" : "no"; };
  log_line(kLogInfo, fmt::format("settings: backends {}, timeout {}, start timeout {}, progress thread {}, check {}, "
                                 "more ranks than processors {}; the environment sets{}",
                                 bootstrap.backends, limit_text(bootstrap.timeout_ms),
                                 limit_text(bootstrap.start_timeout_ms), yes_no(bootstrap.progress_thread),
                                 team.world->check, yes_no(team.world->oversubscribed), set_variables()));
}

void Recorder::announce(const Work& work, const PreparedPlan& plan) {
  if (team_.rank() != 0) return;
  const Call& call = work.call;
  const bool lengths = work.lengths != nullptr;
  const bool warns =
      plan.refused && log_level() >= kLogWarnings && refused_.insert({call.kind, plan.refused_by, plan.refused}).second;
  const bool informs = log_level() >= kLogInfo &&
                       announced_
                           .insert({std::uint64_t(call.kind), std::uint64_t(work.elements.bytes),
                                    lengths ? ~Count(0) : call.count, reinterpret_cast<std::uintptr_t>(plan.algorithm)})
                           .second;
  if (!warns && !informs) return;
  std::string what(name(call.kind));
  if (!lengths && call.kind != Collective::barrier)
    what += fmt::format(" of {} of {}", many(call.count, "element", "elements"),
                        many(work.elements.bytes, "byte", "bytes"));
  what += fmt::format(" on {}", many(team_.size(), "rank", "ranks"));
  if (work.what.purpose != Purpose::itself) what += ", for GCCL's own use";
  if (warns) {
    const std::string_view why = plan.refused->limit;
    const bool listed = plan.refused_by == Authority::lists;
    log_line(kLogWarnings, fmt::format("{}: {} cannot serve {}{}: {} is used", name(plan.refused_by),
                                       listed ? "what it allows" : plan.refused->name, what,
                                       listed || why.empty() ? "" : fmt::format(" ({})", why), plan.algorithm->name));
  }
  if (!informs) return;
  std::string over;
  for (const Ports::Port& port : team_.ports->all())
    if (port.peers > 0) over.append(over.empty() ? "" : " and ").append(port.backend->name);
  log_line(
      kLogInfo,
      fmt::format("plan: {}: {}, {}, {}, {}{}; {}", what, plan.algorithm->name,
                  many(plan.slicing.shares, "chunk", "chunks"), many(plan.slicing.lanes, "channel", "channels"),
                  plan.program ? "compiled" : fmt::format("window {}", plan.slicing.window),
                  over.empty() ? "" : fmt::format(", over {}", over), reason_of(plan, team_.plans->authorities())));
}

}  // namespace gccl
