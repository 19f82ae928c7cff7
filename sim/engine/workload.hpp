// What an engine is asked to play, and what it returns. No JSON here: sim/scenario makes workloads from scenarios.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/cluster/cluster.hpp"
#include "libgccl/elements/dtype.hpp"
#include "libgccl/elements/reduction.hpp"
#include "libgccl/select/detours.hpp"
#include "sim/fault/faults.hpp"

namespace gccl::sim {

// One collective on one communicator. Ranks of the communicator are positions in `members`.
struct SimulatedOperation {
  const Algorithm* algorithm = nullptr;
  Call call{};
  std::shared_ptr<const Layout> layout;  // of the communicator
  std::vector<Rank> members;             // members[r]: world rank of communicator rank r; empty: all, in order
  Count shares = 1;
  Count lanes = 1;
  unsigned window = 8;  // steps in flight per lane
  unsigned element_bytes = 4;
  Dtype dtype = Dtype::f32;              // of real ranks' elements; simulated ones are 64-bit sums
  Reduction reduction = Reduction::sum;  // likewise
  const Protocol* protocol = nullptr;    // null: one that adds nothing

  Rank ranks() const { return layout->ranks(); }
  Rank world(Rank r) const { return members.empty() ? r : members[r]; }
};

// Concurrent operations; a world rank takes part in at most one of them.
using Stage = std::vector<std::uint32_t>;  // indices into Workload::operations
// A rank enters its operation of stage k+1 when its own part of stage k is complete: no global barrier between stages.
using Stream = std::vector<Stage>;

struct Straggler {
  Rank rank;            // world rank
  Nanos start_ns = 0;   // enters its first operation this late
  double slowdown = 1;  // its overhead, combining and copying take this many times as long
};

struct Workload {
  const Cluster* cluster = nullptr;
  std::vector<Card> cards;  // cards[w]: the card of world rank w, each card at most once
  std::vector<SimulatedOperation> operations;
  std::vector<Stream> streams;        // streams run concurrently; every operation is in exactly one stage
  std::vector<Straggler> stragglers;  // each rank at most once
  const FaultPlan* faults = nullptr;  // what happens to the run: protocol and flow engine
  // Plans operations[index] anew for ranks on these cards, who are left, and around pairs of these ranks whose link is
  // slow: given the call as it then is, fills in algorithm, slicing and protocol. The same for equal arguments.
  // Protocol engine, which requires it.
  std::function<void(std::uint32_t index, const std::vector<Card>& cards, const std::vector<SlowPair>& slow,
                     SimulatedOperation* operation)>
      replan;
  bool payload = false;    // carry real elements and check the result
  std::uint64_t seed = 1;  // payload values; and the order in which lanes are started (no effect on times)
  Rank trace_ranks = 0;    // record spans of world ranks below this
  std::size_t trace_spans_max = 200000;
};

struct TraceSpan {  // one step of one lane of one rank
  Rank rank;        // world
  std::uint32_t operation;
  std::uint32_t lane;  // within the operation and rank
  Op op;
  Rank peer;  // world
  Count bytes;
  Nanos begin, end;
};

struct Outcome {
  Nanos time_ns = 0;                    // until the last operation has ended everywhere, or nothing more happens
  std::vector<Nanos> begin_ns, end_ns;  // per operation: first rank in, last rank out
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;                // carried by messages
  std::vector<std::uint64_t> link_bytes;  // per link of the cluster
  std::map<LinkId, double> link_shares;   // of the bandwidth that degraded links had in the mean; others: 1
  std::uint64_t wrong = 0;                // payload only: elements that are not what the collective must leave
  std::string first_wrong;                // where the first one is
  std::vector<TraceSpan> spans;
  double wall_s = 0;
  std::uint64_t spans_dropped = 0;
  std::optional<FaultOutcome> faults;  // of a run with faults
  std::optional<Rank> slowest;         // the same: whose messages take longer than others of their kind
};

// All throw std::runtime_error when the schedules cannot make progress, naming rank, operation and step.
Outcome run_model(const Workload&);
Outcome run_flow(const Workload&);
Outcome run_protocol(const Workload&);
Outcome run_simgrid(const Workload&);  // at most once per process: SimGrid's engine is a singleton

}  // namespace gccl::sim
