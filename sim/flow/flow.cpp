#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

#include "sim/engine/executor.hpp"
#include "sim/engine/shared_network.hpp"
#include "sim/engine/unshared.hpp"
#include "sim/fault/throughput.hpp"
#include "sim/flow/fair_flows.hpp"
#include "sim/flow/fair_way.hpp"

namespace gccl::sim {

static_assert(Network<SharedNetwork<FairFlows>>);

namespace {

// Without a common clock the times of so many ranks come several times sooner. With one, which fewer can afford, they
// are SimGrid's to the nanosecond: a flow begins where the last one in its nanosecond has ended, on any links.
constexpr std::size_t kManyRanks = 256;

// How fast operations are after all faults. Each is timed from the end of the operation before it on the same ranks,
// since ranks that were held up enter the next one late.
double throughput_after(const Workload& w, const Outcome& out, Nanos first, Nanos last) {
  // Alike are the same calls of the same ranks in one stream.
  using Kind = std::tuple<std::size_t, std::vector<Rank>, const Algorithm*, Count, Rank, unsigned>;
  Throughput<Kind> all;
  for (std::size_t s = 0; s < w.streams.size(); ++s)
    for (std::size_t i = 0; i < w.streams[s].size(); ++i)
      for (std::size_t place = 0; place < w.streams[s][i].size(); ++place) {
        const std::uint32_t number = w.streams[s][i][place];
        const SimulatedOperation& o = w.operations[number];
        Nanos since = out.begin_ns[number];
        if (i > 0) {
          const Stage& previous = w.streams[s][i - 1];
          const bool same = place < previous.size() && w.operations[previous[place]].members == o.members;
          since = same ? out.end_ns[previous[place]] : 0;
          if (!same)
            for (const std::uint32_t p : previous) since = std::max(since, out.end_ns[p]);
        }
        const Kind kind{s, o.members, o.algorithm, o.call.count, o.call.root, o.element_bytes};
        const Nanos took = out.end_ns[number] - since;
        if (out.end_ns[number] <= first) all.before(kind, took);
        if (since >= last) all.after(kind, took);
      }
  return all.relative([](const std::vector<Nanos>& of) {
    return double(std::accumulate(of.begin(), of.end(), Nanos{0})) / double(of.size());
  });
}

std::uint64_t trace_of(const Outcome& out) {
  std::uint64_t trace = out.messages;
  const auto mix = [&](std::uint64_t x) { trace = splitmix::mix(trace ^ (x + splitmix::kGolden)); };
  for (std::size_t i = 0; i < out.begin_ns.size(); ++i)
    mix(std::uint64_t(out.begin_ns[i])), mix(std::uint64_t(out.end_ns[i]));
  for (const std::uint64_t bytes : out.link_bytes) mix(bytes);
  return trace;
}

}  // namespace

Outcome run_flow(const Workload& workload) {
  if (workload.cards.size() >= kManyRanks)
    if (auto outcome = run_unshared<FairWay>(workload)) return *std::move(outcome);
  if (!workload.faults) {
    SharedNetwork<FairFlows> network(*workload.cluster);
    return Executor<SharedNetwork<FairFlows>>(workload, network).run();
  }
  const LinkChanges changes(workload);
  SharedNetwork<FairFlows> network(*workload.cluster, &changes);
  Outcome out = Executor<SharedNetwork<FairFlows>>(workload, network).run();
  out.link_shares = changes.mean_shares(out.time_ns);
  FaultOutcome& f = out.faults.emplace();
  f.completed = !network.stalled();
  f.survivors = Rank(workload.cards.size());
  f.epochs = 1;
  f.rerouted = network.detours().made();
  if (f.completed && changes.first() >= 0)
    f.throughput_after = throughput_after(workload, out, changes.first(), changes.last());
  f.slowest = out.slowest;
  f.trace = trace_of(out);
  for (std::size_t i = 0; i < workload.faults->faults.size(); ++i) {
    const Fault& fault = workload.faults->faults[i];
    const auto happened = [&](FaultEvent::What what, Nanos at) {
      if (at < out.time_ns) f.events.push_back({.at = at, .what = what, .fault = i});
    };
    happened(FaultEvent::What::begins, fault.at);
    if (fault.lasts > 0) happened(FaultEvent::What::ends, fault.at + fault.lasts);
  }
  std::stable_sort(f.events.begin(), f.events.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  return out;
}

}  // namespace gccl::sim
