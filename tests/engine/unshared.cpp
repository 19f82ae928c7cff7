// Rings and chains without a common clock, against the executor that has one.
#include "sim/engine/unshared.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/cluster/fabrics/star.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "sim/engine/executor.hpp"
#include "sim/engine/shared_network.hpp"
#include "sim/flow/cost_check.hpp"
#include "sim/flow/fair_flows.hpp"
#include "sim/flow/fair_way.hpp"
#include "sim/model/booked_way.hpp"
#include "sim/model/network.hpp"

namespace unshared_test {

using namespace gccl;
using namespace gccl::sim;

// Nodes of four cards and four NICs below two levels of switches.
constexpr const char* kNodes = R"({"schema": "gccl/cluster/1", "name": "nodes",
  "parameters": {"card": {"overhead_ns": 400, "receive_overhead_ns": 300, "combine_GBps": 200, "copy_GBps": 400},
                 "eager_bytes": 16384,
                 "links": {"fast": {"bandwidth_GBps": 200, "latency_ns": 300}, "port": {"bandwidth_GBps": 50, "latency_ns": 600}}},
  "nodes": [{"count": 6, "cards": 4, "inside": {"kind": "switch", "link": "fast"},
             "nics": {"count": 4, "bus": "fast", "port": "port"}}],
  "fabric": {"kind": "fat_tree", "leaf_size": 8, "oversubscription": 1, "link": "port"}})";

Outcome with_a_clock(const Workload& w) {
  ModelNetwork network(*w.cluster);
  return Executor<ModelNetwork>(w, network).run();
}

// Each rank sends to the one half of all ranks further on.
Schedule swap_halves(Call c, View v, Share) {
  const Rank other = (v.all.rank + v.all.size / 2) % v.all.size;
  co_yield send(other, {Buffer::input, 0, c.count});
  co_yield recv(other, {Buffer::output, 0, c.count});
}

// The same with two messages, of which the second does not wait for anything.
Schedule swap_halves_twice(Call c, View v, Share) {
  const Rank other = (v.all.rank + v.all.size / 2) % v.all.size;
  for (int i = 0; i < 2; ++i) co_yield send(other, {Buffer::input, 0, c.count});
  for (int i = 0; i < 2; ++i) co_yield recv(other, {Buffer::output, 0, c.count});
}

// Knows which ways there are, and whether a message passed one that is not.
struct CountedWay : BookedWay {
  static inline std::set<const CountedWay*> all;
  static inline int nowhere = 0;
  CountedWay(const Cluster& cluster, const std::vector<LinkId>& route) : BookedWay(cluster, route) { all.insert(this); }
  CountedWay(const CountedWay&) = delete;
  ~CountedWay() { all.erase(this); }
  bool measure(Count bytes, Nanos least_ns) { return known() && BookedWay::measure(bytes, least_ns); }
  Nanos pass(Nanos at) { return known() ? BookedWay::pass(at) : at; }
  bool known() const { return all.count(this) || (++nowhere, false); }
};

struct Play {
  Workload w;
  Protocol protocol{};
  Play(const Cluster& cluster, const Algorithm& a, std::vector<Card> cards, Count bytes) {
    w.cluster = &cluster;
    w.cards = std::move(cards);
    SimulatedOperation o;
    o.algorithm = &a;
    o.call = {.kind = a.kind, .count = bytes};
    o.layout = std::make_shared<Layout>(layout_of(cluster, w.cards));
    o.element_bytes = 1;
    w.operations.push_back(o);
    w.streams = {{{0}}};
  }
};

TEST_CASE("rings and chains take the same times without a common clock as with one") {
  const Star star(24, 50, 900, {.overhead_ns = 200, .receive_overhead_ns = 200, .combine_GBps = 100, .copy_GBps = 0});
  const auto nodes = parse_cluster(kNodes, "nodes");
  struct Kind {
    Collective collective;
    const char* name;
    int played = 0;
  };
  Kind kinds[] = {{Collective::allreduce, "ring"},
                  {Collective::allgather, "ring"},
                  {Collective::reduce_scatter, "ring"},
                  {Collective::broadcast, "chain"},
                  {Collective::reduce, "chain"}};
  int same_fair_times = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    std::mt19937 rng(seed);
    const auto up_to = [&](unsigned n) { return unsigned(rng() % n); };
    Kind& kind = kinds[seed % std::size(kinds)];
    const Rank ranks = 2 + up_to(23);
    const Cluster& cluster = up_to(2) ? static_cast<const Cluster&>(star) : *nodes;
    Play play(cluster, *find_algorithm(kind.collective, kind.name), sim::first_cards(ranks),
              (Count(1) << up_to(26)) + up_to(3) * up_to(1000));
    Workload& w = play.w;
    w.operations[0].window = 1 + up_to(32);
    w.operations[0].shares = kind.name[0] == 'c' ? 1 + up_to(40) : 1;
    if (up_to(2)) w.stragglers.push_back({up_to(ranks), Nanos(up_to(50'000)), 1 + up_to(30) / 10.0});
    if (up_to(2)) {
      play.protocol = {.operation_ns = double(up_to(2) * up_to(9000)),
                       .inside = {.latency_ns = double(up_to(900)), .efficiency = 1 - up_to(60) / 100.0},
                       .network = {.latency_ns = double(up_to(2000)), .efficiency = 1 - up_to(60) / 100.0},
                       .channel_GBps = double(up_to(2) * (1 + up_to(60)))};
      w.operations[0].protocol = &play.protocol;
    }
    const auto alone = run_unshared<BookedWay>(w);
    if (!alone) continue;
    ++kind.played;
    const Outcome together = with_a_clock(w);
    CHECK(alone->time_ns == together.time_ns);
    CHECK(alone->begin_ns == together.begin_ns);
    CHECK(alone->end_ns == together.end_ns);
    CHECK(alone->messages == together.messages);
    CHECK(alone->bytes == together.bytes);
    CHECK(alone->link_bytes == together.link_bytes);

    // With a common clock a flow begins where the last one in its nanosecond has ended, even if that is another rank's.
    SharedNetwork<FairFlows> shared(cluster);
    const Outcome fair = Executor<SharedNetwork<FairFlows>>(w, shared).run();
    const auto fair_alone = run_unshared<FairWay>(w);
    REQUIRE(fair_alone);
    same_fair_times += fair_alone->time_ns == fair.time_ns;
    CHECK(std::abs(fair_alone->time_ns - fair.time_ns) <= 1 + fair.time_ns / 2000);
    CHECK(fair_alone->messages == fair.messages);
    CHECK(fair_alone->link_bytes == fair.link_bytes);
  }
  CHECK(same_fair_times > 350);
  for (const Kind& k : kinds) {
    CAPTURE(std::string(k.name));
    CHECK(k.played > 40);
  }
}

TEST_CASE("ranks that share links, and whatever is not a ring or a chain, need a common clock") {
  const auto nodes = parse_cluster(kNodes, "nodes");
  const Algorithm& ring = *find_algorithm(Collective::allreduce, "ring");
  CHECK(run_unshared<BookedWay>(Play(*nodes, ring, sim::first_cards(24), 1 << 20).w));

  // Two cards of each node send to two of the other: over NICs of their own, or over one.
  const Algorithm swap{.name = "swap", .kind = Collective::alltoall, .make = swap_halves};
  CHECK(run_unshared<BookedWay>(Play(*nodes, swap, {0, 1, 4, 5}, 1 << 20).w));
  std::string one_nic = kNodes;
  one_nic.replace(one_nic.find("\"nics\": {\"count\": 4"), 19, "\"nics\": {\"count\": 1");
  const auto narrow = parse_cluster(one_nic, "one NIC");
  CHECK_FALSE(run_unshared<BookedWay>(Play(*narrow, swap, {0, 1, 4, 5}, 1 << 20).w));

  for (const auto& [collective, name] : {std::pair{Collective::allreduce, "recursive_doubling"},
                                         {Collective::gather, "linear"},
                                         {Collective::broadcast, "binomial"}})
    CHECK_FALSE(
        run_unshared<BookedWay>(Play(*nodes, *find_algorithm(collective, name), sim::first_cards(8), 1 << 10).w));

  // The first rank is a leaf of a tree with another root, which tells before any rank is played.
  Play tree(*nodes, *find_algorithm(Collective::broadcast, "binomial"), sim::first_cards(8), 1 << 10);
  tree.w.operations[0].call.root = 5;
  CHECK(one_peer_each_way(tree.w.operations[0], 0));
  CHECK_FALSE(one_peer_each_way(tree.w.operations[0], 5));
  CHECK_FALSE(run_unshared<BookedWay>(tree.w));

  Play channels(*nodes, ring, sim::first_cards(8), 1 << 20);
  channels.w.operations[0].lanes = channels.w.operations[0].shares = 2;
  CHECK_FALSE(run_unshared<BookedWay>(channels.w));
  Play traced(*nodes, ring, sim::first_cards(8), 1 << 20);
  traced.w.trace_ranks = 1;
  CHECK_FALSE(run_unshared<BookedWay>(traced.w));
}

TEST_CASE("a rank whose way turns out to be shared sends nothing more") {
  std::string one_nic = kNodes;
  one_nic.replace(one_nic.find("\"nics\": {\"count\": 4"), 19, "\"nics\": {\"count\": 1");
  const auto narrow = parse_cluster(one_nic, "one NIC");
  const Algorithm swap{.name = "swap", .kind = Collective::alltoall, .make = swap_halves_twice};
  CHECK_FALSE(run_unshared<CountedWay>(Play(*narrow, swap, {0, 1, 4, 5}, 1 << 10).w));
  CHECK(CountedWay::nowhere == 0);

  const auto nodes = parse_cluster(kNodes, "nodes");
  CHECK(run_unshared<CountedWay>(Play(*nodes, swap, {0, 1, 4, 5}, 1 << 10).w));
  CHECK(CountedWay::nowhere == 0);
  CHECK(CountedWay::all.empty());
}

}  // namespace unshared_test
