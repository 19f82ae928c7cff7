// What the log tells of a communicator: who is where and reaches whom (GCCL_LOG=2), and how calls are carried out, once
// for each shape of call. Rank 0 speaks for all where all say the same.
#include <unistd.h>

#include <cstring>

#include "libgccl/base/log.hpp"
#include "libgccl/bootstrap/missing.hpp"
#include "libgccl/bootstrap/variables.hpp"
#include "libgccl/communicator/communicator.hpp"

namespace gccl {
namespace {

std::string many(Count n, const char* one, const char* several, const char* same_as) {
  return std::to_string(n) + " " + (n == 1 ? one : several) + " (" + same_as + (n == 1 ? ")" : "s)");
}

std::string limit_text(std::int64_t ms) { return ms < 0 ? "none" : std::to_string(ms) + " ms"; }

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
  std::string text = std::to_string(ranks.size()) + (ranks.size() == 1 ? " node" : " nodes");
  for (Rank n = 0; n < ranks.size() && n < kNodesMax; ++n)
    text.append(n == 0 ? ": node " : "; node ")
        .append(std::to_string(n))
        .append(" has ")
        .append(ranks_text(ranks[n], Rank(nodes.size())));
  if (ranks.size() > kNodesMax) text += " and " + std::to_string(ranks.size() - kNodesMax) + " nodes more";
  return text;
}

// What the environment sets, secrets and what launchers set for each rank apart.
std::string set_variables() {
  std::string text;
  for (const Variable& v : variables()) {
    if (v.fallback == "a launcher's" || v.name.starts_with("GCCL_SECRET")) continue;
    const char* const value = std::getenv(std::string(v.name).c_str());
    if (value) text.append(" ").append(v.name).append("=").append(value);
  }
  return text.empty() ? " nothing" : text;
}

}  // namespace

void Communicator::announce() {
  if (log_level() < kLogInfo) return;
  std::string line = "rank " + std::to_string(rank()) + " of " + std::to_string(size()) + ": GCCL " +
                     GCCL_Version_string() + ", process " + std::to_string(::getpid()) + " on " + host_name() +
                     " (node " + std::to_string(members_.node[rank()]) + ")";
  for (const Ports::Port& port : ports_->all()) {
    std::vector<Rank> peers;
    for (Rank r = 0; r < size(); ++r)
      if (r != rank() && &ports_->to(r) == &port) peers.push_back(r);
    if (!peers.empty()) line += std::string(", ") + port.backend->name + " to " + ranks_text(peers, size());
  }
  log_line(kLogInfo, line);
  if (rank() != 0) return;
  log_line(kLogInfo, "topology: " + nodes_text(members_.node));
  const Start& start = world_->start;
  log_line(kLogInfo, "settings: backends " + start.backends + ", timeout " + limit_text(start.timeout_ms) +
                         ", start timeout " + limit_text(start.start_timeout_ms) + ", progress thread " +
                         (start.progress_thread ? "yes" : "no") + ", check " + (world_->check ? "yes" : "no") +
                         ", more ranks than processors " + (world_->oversubscribed ? "yes" : "no") +
                         "; the environment sets" + set_variables());
}

void Communicator::announce(const Work& work, const PreparedPlan& plan) {
  const bool tells = log_level() >= kLogInfo;
  if (rank() != 0 || !(tells || (plan.refused && log_level() >= kLogWarnings))) return;
  const Call& call = work.call;
  const bool lengths = work.lengths != nullptr;
  if (!announced_
           .insert({std::uint64_t(call.kind), std::uint64_t(work.elements.bytes), lengths ? ~Count(0) : call.count,
                    reinterpret_cast<std::uintptr_t>(plan.algorithm)})
           .second)
    return;
  std::string what(name(call.kind));
  if (!lengths && call.kind != Collective::barrier)
    what += " of " + std::to_string(call.count) + " elements of " + std::to_string(work.elements.bytes) +
            (work.elements.bytes == 1 ? " byte" : " bytes");
  what += " on " + std::to_string(size()) + (size() == 1 ? " rank" : " ranks");
  if (work.what.purpose != Purpose::itself) what += ", for GCCL's own use";
  if (plan.refused) {
    std::string line("GCCL_ALGORITHM: ");
    line.append(plan.refused->name).append(" cannot serve ").append(what);
    if (const std::string_view why = plan.refused->limit; !why.empty()) line.append(" (").append(why).append(")");
    log_line(kLogWarnings, line.append(": ").append(plan.algorithm->name).append(" is used"));
  }
  if (!tells) return;
  std::string over;
  for (const Ports::Port& port : ports_->all())
    if (port.peers > 0) over.append(over.empty() ? "" : " and ").append(port.backend->name);
  log_line(kLogInfo, "plan: " + what + ": " + std::string(plan.algorithm->name) + ", " +
                         many(plan.slicing.shares, "chunk", "chunks", "share") + ", " +
                         many(plan.slicing.lanes, "channel", "channels", "lane") +
                         (plan.program ? ", compiled" : ", window " + std::to_string(plan.slicing.window)) +
                         (over.empty() ? "" : ", over " + over));
}

}  // namespace gccl
