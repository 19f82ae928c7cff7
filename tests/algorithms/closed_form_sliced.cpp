// Predictions of calls that are cut up, into chunks on one channel and on several, against the model engine.
#include <doctest/doctest.h>

#include <cmath>

#include "libgccl/algorithms/parts/root_order.hpp"
#include "libgccl/cluster/cost_model.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "tests/algorithms/by_model.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

// Of a call that is cut up recursive halving first copies a rank's slices of all blocks side by side.
TEST_CASE("where memory is slower than the links, predictions count the copies of slices") {
  const Algorithm& a = *find_algorithm(Collective::reduce_scatter, "recursive_halving");
  for (const Rank ranks : {8u, 12u, 16u}) {
    const Star star(ranks, 8, 900, {.overhead_ns = 400, .receive_overhead_ns = 300, .combine_GBps = 4, .copy_GBps = 4});
    const CostModel model = cost_model(star, first_cards(ranks), 4);
    for (const Slicing& slicing : {Slicing{1, 1, 8}, {4, 1, 8}, {2, 2, 8}, {4, 4, 8}, {8, 8, 8}, {64, 8, 8}}) {
      const Count count = 1 << 18;
      const double s = simulated_ns(a, star, ranks, count, slicing),
                   p = predicted(a, call_of(a, count), Layout::flat(ranks).view(0), model, slicing);
      INFO(ranks, " ranks, ", slicing.shares, " chunks, ", slicing.lanes, " channels: predicted ", p, " ns, simulated ",
           s, " ns");
      CHECK(std::abs(p - s) <= 0.1 * s);
    }
  }
}

// An algorithm that has no interval is predicted as though its chunks took turns; what overlaps all the same is not
// held to this.
TEST_CASE("a prediction with chunks follows the engine, where ranks pass on a chunk while the next arrives") {
  for (const Algorithm& a : algorithms()) {
    if (!a.interval || a.in_switch) continue;
    const bool tree = a.name.ends_with("tree");
    for (const Rank ranks : {2u, 4u, 8u, 16u, 32u, 64u})
      for (const Count shares : {Count(4), Count(16), Count(64)})
        for (const Count count : {Count(1) << 16, Count(1) << 20, Count(1) << 24}) {
          const Slicing slicing{shares, 1, 8};
          const double s = simulated_ns(a, ranks, count, ~Count(0), slicing),
                       p = predicted_ns(a, ranks, count, slicing);
          INFO(name(a.kind), " ", a.name, " on ", ranks, " ranks, ", count, " elements in ", shares,
               " chunks: predicted ", p, " ns, simulated ", s, " ns");
          CHECK(std::abs(p - s) <= (tree ? 0.4 : 0.25) * s);
        }
  }
}

// Short chunks of many channels, where starting messages takes a rank longer than all else.
TEST_CASE("a prediction with chunks counts what a rank takes to start their messages") {
  const Star star(8, kGBps, kLatency, {.overhead_ns = 1000});
  for (const auto& [kind, algorithm] : {std::pair(Collective::gather, "linear"),
                                        {Collective::reduce, "binomial"},
                                        {Collective::allreduce, "binomial_tree"},
                                        {Collective::allreduce, "double_binary_tree"}}) {
    const Algorithm& a = *find_algorithm(kind, algorithm);
    for (const Rank ranks : {5u, 8u}) {
      const CostModel m = cost_model(star, first_cards(ranks), 4);
      for (const Slicing slicing : {Slicing{16, 16, 8}, {64, 32, 8}}) {
        // A chunk in each channel is predicted as rounds, which is too slow for messages that only go up.
        if (kind == Collective::reduce && slicing.shares == slicing.lanes) continue;
        const Count count = 1 << 14;
        const double s = simulated_ns(a, star, ranks, count, slicing),
                     p = predicted(a, call_of(a, count), layout_of(star, first_cards(ranks)).view(0), m, slicing);
        INFO(name(a.kind), " ", a.name, " on ", ranks, " ranks in ", slicing.shares, " chunks: predicted ", p,
             " ns, simulated ", s, " ns");
        CHECK(std::abs(p - s) <= 0.3 * s);
      }
    }
  }
}

// Two switches with two nodes each, of whose cable the way back is the narrowest link. Chains around it from some roots
// have it where only the ring would close.
TEST_CASE("a chain's prediction leaves out the message that would close the ring") {
  const auto c = parse_cluster(
      R"({"schema": "gccl/cluster/1", "name": "pair", "parameters": {"card": {"overhead_ns": 400, "combine_GBps": 0,
      "copy_GBps": 0}, "eager_bytes": "1GiB", "links": {"port": {"bandwidth_GBps": 25, "latency_ns": 600},
      "pair": {"bandwidth_GBps": 40, "latency_ns": 600, "reverse_bandwidth_GBps": 5}}}, "nodes": [{"count": 4,
      "cards": 1, "nics": {"count": 1, "bus": "port", "port": "port"}}], "fabric": {"kind": "custom",
      "switches": ["a", "b"], "links": [{"between": ["a", "b"], "link": "pair"}],
      "ports": [{"switch": "a", "nodes": [0, 1]}, {"switch": "b", "nodes": [2, 3]}]}})",
      "pair");
  const Layout layout = layout_of(*c, first_cards(4));
  for (const Collective kind : {Collective::broadcast, Collective::reduce})
    for (const Rank root : {0u, 1u, 2u, 3u})
      for (const Slicing slicing : {Slicing{1, 1, 8}, {64, 1, 8}}) {
        const Algorithm& chain = *find_algorithm(kind, "chain");
        const Call call{.kind = kind, .count = 1 << 22, .root = root};
        const CostModel m = cost_model(*c, first_cards(4), 4, {}, order_from_root(call, layout.view(0)));
        const double s = simulated_ns(chain, *c, 4, call, slicing),
                     p = predicted(chain, call, layout.view(0), m, slicing);
        INFO(name(kind), " from rank ", root, " in ", slicing.shares, " chunks: predicted ", p, " ns, simulated ", s,
             " ns");
        CHECK(std::abs(p - s) <= (kind == Collective::broadcast ? 0.1 : 0.35) * s);
      }
}

TEST_CASE("a prediction with one channel follows the engine where chunks take turns") {
  for (const char* const algorithm : {"ring", "rabenseifner", "recursive_doubling"}) {
    const Algorithm& a = *find_algorithm(Collective::allreduce, algorithm);
    for (const Rank ranks : {2u, 8u, 32u}) {
      const Slicing slicing{4, 1, 8};
      const double s = simulated_ns(a, ranks, 1 << 22, ~Count(0), slicing),
                   p = predicted_ns(a, ranks, 1 << 22, slicing);
      INFO(a.name, " on ", ranks, " ranks: predicted ", p, " ns, simulated ", s, " ns");
      CHECK(std::abs(p - s) <= 0.2 * s);
    }
  }
}

// Nodes of eight cards, whose way out is a quarter as wide as the ways inside.
TEST_CASE("a prediction with chunks on channels follows the engine on one switch and over nodes") {
  const Star star(32, kGBps, kLatency, kCosts);
  const auto nodes = parse_cluster(
      R"({"schema": "gccl/cluster/1", "name": "nodes", "parameters": {"card": {"overhead_ns": 400,
      "receive_overhead_ns": 300, "combine_GBps": 200, "copy_GBps": 400}, "eager_bytes": "1GiB",
      "links": {"fast": {"bandwidth_GBps": 200, "latency_ns": 300}, "port": {"bandwidth_GBps": 50, "latency_ns": 600}}},
      "nodes": [{"count": 4, "cards": 8, "inside": {"kind": "switch", "link": "fast"},
      "nics": {"count": 8, "bus": "fast", "port": "port"}}], "fabric": {"kind": "switch"}})",
      "nodes");
  const auto hold = [](const Algorithm& a, const Cluster& c, Rank ranks, Count count, Slicing slicing, double limit) {
    const double s = simulated_ns(a, c, ranks, count, slicing);
    const Layout layout = layout_of(c, first_cards(ranks));
    for (const CostModel& m : {cost_model(c, first_cards(ranks), 4), cost_without_loads(c, first_cards(ranks), 4)}) {
      const double p = predicted(a, call_of(a, count), layout.view(0), m, slicing);
      INFO(name(a.kind), " ", a.name, " on ", ranks, " ranks of ", c.name(), ", ", count, " elements in ",
           slicing.shares, " chunks on ", slicing.lanes, " channels: predicted ", p, " ns, simulated ", s, " ns");
      CHECK(std::abs(p - s) <= limit * s);
    }
  };
  for (const Cluster* c : {static_cast<const Cluster*>(&star), nodes.get()})
    for (const Rank ranks : {12u, 16u, 32u}) {
      for (const Algorithm& a : algorithms())
        for (const Slicing s : {Slicing{4, 1, 8}, {4, 2, 8}, {4, 4, 8}, {16, 1, 8}, {16, 2, 8}, {16, 4, 8}})
          for (const Count count : {Count(1) << 8, Count(1) << 14, Count(1) << 18}) {
            // Longer chunks of several channels pass ports in turns.
            if (!a.interval || a.in_switch || (s.lanes > 1 && 4 * count / s.shares > Count(128 << 10))) continue;
            hold(a, *c, ranks, count, s, a.name.ends_with("tree") ? 0.7 : 0.4);
          }
      // Channels of a short call wait at the same time.
      for (const char* const algorithm : {"ring", "rabenseifner", "recursive_doubling"})
        for (const Slicing s : {Slicing{2, 2, 8}, {4, 4, 8}, {16, 4, 8}})
          for (const Count count : {Count(1) << 8, Count(1) << 12})
            hold(*find_algorithm(Collective::allreduce, algorithm), *c, ranks, count, s, 0.35);
    }
}

TEST_CASE("predictions follow the engine where switches multicast and reduce, whole and in chunks") {
  const auto cluster = parse_cluster(
      R"({"schema": "gccl/cluster/1", "name": "nvls", "parameters": {"card": {"overhead_ns": 200,
      "receive_overhead_ns": 200, "combine_GBps": 1000, "copy_GBps": 1500}, "eager_bytes": "4MiB", "in_switch_efficiency": 0.8,
      "links": {"fast": {"bandwidth_GBps": 400, "latency_ns": 100}, "port": {"bandwidth_GBps": 50, "latency_ns": 900}}},
      "nodes": [{"count": 16, "cards": 8, "inside": {"kind": "switch", "link": "fast", "in_switch": true},
      "nics": {"count": 8, "bus": "port", "port": "port"}}], "fabric": {"kind": "switch"}})",
      "nvls");
  std::size_t held = 0;
  for (const Algorithm& a : algorithms()) {
    if (!a.in_switch) continue;
    const bool tree = a.name.ends_with("tree");
    for (const Rank ranks : {2u, 8u, 16u, 64u, 128u})
      for (const Slicing s : {Slicing{}, {16, 2, 8}, {64, 4, 8}, {64, 16, 8}})
        for (const Count count : {Count(1) << 10, Count(1) << 18, Count(1) << 24}) {
          const Layout layout = layout_of(*cluster, first_cards(ranks));
          const Call call = call_of(a, count);
          if (!a.can(call, layout.view(0))) continue;
          const double simulated = simulated_ns(a, *cluster, ranks, count, s);
          const CostModel m = cost_model(*cluster, first_cards(ranks), 4);
          const double p = predicted(a, call, layout.view(0), m, s);
          INFO(name(a.kind), " ", a.name, " on ", ranks, " ranks, ", count, " elements in ", s.shares, " chunks on ",
               s.lanes, " channels: predicted ", p, " ns, simulated ", simulated, " ns");
          const bool whole = s.shares == 1;
          CHECK(std::abs(p - simulated) <= (whole ? tree ? 0.15 : 0.02 : tree ? 0.7 : 0.45) * simulated);
          ++held;
        }
  }
  CHECK(held > 100);
}

TEST_CASE("a prediction under a protocol follows the engine, with one channel and with several") {
  const auto nodes = parse_cluster(
      R"({"schema": "gccl/cluster/1", "name": "nodes", "parameters": {"card": {"overhead_ns": 200,
      "receive_overhead_ns": 200, "combine_GBps": 1000, "copy_GBps": 1500}, "eager_bytes": "4MiB",
      "links": {"fast": {"bandwidth_GBps": 350, "latency_ns": 100}, "port": {"bandwidth_GBps": 50, "latency_ns": 800}},
      "protocols": {"LL": {"operation_ns": 6600, "inside": {"efficiency": 0.4}, "network": {"efficiency": 0.1}},
        "LL128": {"operation_ns": 9000, "inside": {"latency_ns": 1300, "efficiency": 0.9},
          "network": {"latency_ns": 1300, "efficiency": 0.9}, "channel_GBps": 37},
        "Simple": {"operation_ns": 8400, "inside": {"latency_ns": 2800}, "network": {"latency_ns": 11300},
          "channel_GBps": 20}}},
      "nodes": [{"count": 4, "cards": 4, "inside": {"kind": "switch", "link": "fast"},
      "nics": {"count": 4, "bus": "fast", "port": "port"}}], "fabric": {"kind": "switch"}})",
      "nodes");
  for (const Protocol& protocol : nodes->protocols())
    for (const Rank ranks : {4u, 16u}) {
      const CostModel m = cost_model(*nodes, first_cards(ranks), 4, protocol);
      const Layout layout = layout_of(*nodes, first_cards(ranks));
      for (const char* const name : {"ring", "recursive_doubling", "rabenseifner", "tree", "hierarchical"})
        for (const Slicing s : {Slicing{1, 1, 8}, {4, 4, 8}, {16, 4, 8}})
          for (const Count count : {Count(1) << 8, Count(1) << 14, Count(1) << 18, Count(1) << 22}) {
            const Algorithm& a = *find_algorithm(Collective::allreduce, name);
            if (!a.can(call_of(a, count), layout.view(0))) continue;
            const double p = predicted(a, call_of(a, count), layout.view(0), m, s),
                         t = simulated_ns(a, *nodes, ranks, count, s, &protocol);
            INFO(protocol.name, ": ", a.name, " on ", ranks, " ranks, ", count, " elements in ", s.shares,
                 " chunks on ", s.lanes, " channels: predicted ", p, " ns, simulated ", t, " ns");
            CHECK(std::abs(p - t) <= (s.shares == 1 ? 0.1 : a.name == "tree" ? 0.85 : 0.4) * t);
          }
    }
}
