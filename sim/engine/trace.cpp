#include "sim/engine/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "sim/engine/chrome_events.hpp"

namespace gccl::sim {
namespace {

std::string_view name(Op op) {
  switch (op) {
    case Op::send: return "send";
    case Op::recv: return "recv";
    case Op::recv_reduce: return "recv_reduce";
    case Op::copy: return "copy";
    case Op::reduce: return "reduce";
    case Op::send_all: return "send_all";
    case Op::recv_reduce_all: return "recv_reduce_all";
  }
  return "step";
}

std::string label(const Workload& w, std::uint32_t operation) {
  const SimulatedOperation& o = w.operations.at(operation);
  return fmt::format("{} {} #{}", gccl::name(o.call.kind), o.algorithm ? o.algorithm->name : "?", operation);
}

void write_operations(ChromeEvents& out, const Workload& w, const Outcome& outcome, std::uint64_t pid) {
  out.process(pid, fmt::format("operations on {}", w.cluster->name()), -1);
  out.metadata(
      "gccl_trace", pid, 0,
      fmt::format(R"("spans":{},"spans_dropped":{},"time_ns":{},"ranks_traced":{})", outcome.spans.size(),
                  outcome.spans_dropped, outcome.time_ns, std::min<std::size_t>(w.trace_ranks, w.cards.size())));
  if (outcome.spans_dropped) {
    out.metadata("process_labels", pid, 0, fmt::format(R"("labels":"{} spans dropped")", outcome.spans_dropped));
  }
  const std::size_t timed = std::min({w.operations.size(), outcome.begin_ns.size(), outcome.end_ns.size()});
  std::vector<std::uint32_t> order(timed);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return outcome.begin_ns[a] < outcome.begin_ns[b]; });
  ThreadRows rows;
  std::size_t named = 0;
  for (const std::uint32_t i : order) {
    const std::size_t tid = rows.place(outcome.begin_ns[i], outcome.end_ns[i]) + 1;
    if (tid > named) out.thread(pid, named = tid, fmt::format("operations, row {}", tid));
    const SimulatedOperation& o = w.operations[i];
    out.complete(pid, tid, label(w, i), outcome.begin_ns[i], outcome.end_ns[i],
                 fmt::format(R"("ranks":{},"count":{},"chunks":{},"channels":{})", o.layout ? o.ranks() : 0,
                             o.call.count, o.shares, o.lanes));
  }
}

// One lane of one rank; its threads are numbered from `tid`. Returns the next free number.
std::size_t write_lane(ChromeEvents& out, const Workload& w, std::span<const TraceSpan* const> lane, std::uint64_t pid,
                       std::size_t tid) {
  ThreadRows rows;
  std::size_t named = 0;
  for (const TraceSpan* s : lane) {
    const std::size_t row = rows.place(s->begin, s->end);
    if (row == named) {
      const std::string more = row ? fmt::format(" (row {})", row + 1) : "";
      out.thread(pid, tid + named++, fmt::format("{} channel {}{}", label(w, s->operation), s->lane, more));
    }
    const bool local = s->op != Op::send && s->op != Op::recv && s->op != Op::recv_reduce;  // or to a group
    const std::string step = local ? std::string(name(s->op))
                                   : fmt::format("{} {} {}", name(s->op), s->op == Op::send ? "to" : "from", s->peer);
    const std::string peer = local ? "" : fmt::format(R"("peer":{},)", s->peer);
    out.complete(pid, tid + row, step, s->begin, s->end,
                 fmt::format(R"({}"bytes":{},"op":"{}")", peer, s->bytes, name(s->op)));
  }
  return tid + named;
}

}  // namespace

std::string chrome_trace(const Workload& w, const Outcome& outcome) {
  std::vector<const TraceSpan*> spans;
  spans.reserve(outcome.spans.size());
  for (const TraceSpan& s : outcome.spans) spans.push_back(&s);
  const auto lane_of = [](const TraceSpan* s) { return std::tuple(s->rank, s->operation, s->lane); };
  std::stable_sort(spans.begin(), spans.end(), [&](const TraceSpan* a, const TraceSpan* b) {
    return std::tuple(lane_of(a), a->begin, a->end) < std::tuple(lane_of(b), b->begin, b->end);
  });

  ChromeEvents out;
  write_operations(out, w, outcome, w.cards.size() + 1);
  std::size_t tid = 1;
  for (std::size_t i = 0; i < spans.size();) {
    const Rank rank = spans[i]->rank;
    const std::uint64_t pid = std::uint64_t(rank) + 1;
    if (i == 0 || spans[i - 1]->rank != rank) {
      tid = 1;
      out.process(pid, fmt::format("rank {} (node {})", rank, w.cluster->node_of(w.cards.at(rank))), rank);
    }
    std::size_t end = i;
    while (end < spans.size() && lane_of(spans[end]) == lane_of(spans[i])) ++end;
    tid = write_lane(out, w, std::span(spans).subspan(i, end - i), pid, tid);
    i = end;
  }
  return out.finish();
}

}  // namespace gccl::sim
