// Closed forms of channels that begin a chunk each at once, against the flow engine, on shipped clusters.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "libgccl/cluster/fabrics/star.hpp"
#include "tests/algorithms/machine.hpp"
#include "tests/support/wide.hpp"

using namespace gccl;
using gccl::test::Machine;
using gccl::test::Off;

namespace {

// Predicted by simulated, in the first protocol where none is named.
double predicted_by_simulated(Machine& machine, const Algorithm& a, Count count, Count channels, Count chunks_each = 1,
                              const std::string& name = "") {
  const auto& protocols = machine.cluster->protocols();
  const auto p = std::find_if(protocols.begin(), protocols.end(), [&](const Protocol& q) { return q.name == name; });
  REQUIRE((name.empty() || p != protocols.end()));
  const Call call{.kind = a.kind, .count = count};
  const PlannedBy& by = machine.by(call);
  const Plan plan{.algorithm = &a,
                  .slicing = {channels * chunks_each, channels, by.tuning.window},
                  .protocol = name.empty() ? 0 : std::size_t(p - protocols.begin())};
  return predicted(a, call, machine.view(), by.models[plan.protocol], plan.slicing, by.tuning) /
         machine.simulated_ns(call, plan);
}

}  // namespace

TEST_CASE("binomial trees and PAT of channels with a chunk each are predicted as the flow engine has them") {
  for (const auto& [name, ranks] : {std::pair("ethernet-cpu", 16u),
                                    {"polaris", 12u},
                                    {"polaris", 16u},
                                    {"dgx-h100-superpod-2048", 16u},
                                    {"alps-gh200-2048", 24u}}) {
    Machine machine(name, ranks);
    const auto hold = [&, of = std::string(name), n = ranks](Collective kind, const std::string& algorithm, Count count,
                                                             double limit) {
      for (const Count channels : {2u, 4u, 8u, 16u}) {
        const double ratio = predicted_by_simulated(machine, *find_algorithm(kind, algorithm), count, channels);
        INFO(gccl::name(kind), " ", algorithm, " on ", n, " ranks of ", of, ", ", count, " elements in ", channels,
             " channels: predicted ", ratio, " of what was simulated");
        CHECK(std::abs(ratio - 1) <= limit);
      }
    };
    for (const Count count : {Count(1) << 16, Count(1) << 18, Count(1) << 20}) {
      hold(Collective::broadcast, "binomial", count, 0.08);
      hold(Collective::reduce, "binomial", count, 0.08);
    }
    hold(Collective::allgather, "pat", (Count(1) << 18) / ranks, 0.13);
    // Blocks that go one by one keep the ports busy from the first to the last.
    hold(Collective::allgather, "pat", (Count(1) << 26) / ranks, 0.025);
  }
}

// All channels wait for the network at the same time, and few of them hide that.
TEST_CASE("the hierarchical all-gather of channels of one chunk is predicted as the flow engine has it") {
  const Algorithm& a = *find_algorithm(Collective::allgather, "hierarchical");
  struct Place {
    const char* cluster;
    Rank ranks;
    Count bytes;
    const char* protocol;
  };
  for (const Place& p : {Place{"aws-p4de", 48, Count(16) << 20, "Simple"},
                         {"aws-p5", 48, Count(256) << 20, "Simple"},
                         {"aws-p5", 24, Count(16) << 20, "LL128"},
                         {"alps-gh200-2048", 48, Count(16) << 20, "Simple"},
                         {"leonardo", 32, Count(16) << 20, "LL128"}}) {
    Machine machine(p.cluster, p.ranks);
    for (const Count channels : {2u, 4u, 8u, 16u}) {
      const double ratio = predicted_by_simulated(machine, a, p.bytes / p.ranks / 4, channels, 1, p.protocol);
      INFO(p.ranks, " ranks of ", std::string(p.cluster), " in ", channels, " channels: predicted ", ratio);
      CHECK(ratio == doctest::Approx(1).epsilon(0.09));
    }
  }
}

// The mean of how far off predictions are, and the most. Cards are wired in pairs (polaris, marenostrum5-acc), by a
// switch (dgx), share one NIC a node (ethernet-cpu) or are a torus (tpu).
TEST_CASE("rounds of several channels are predicted as the flow engine has them, on one chunk each and on more") {
  struct Limit {
    double mean, worst;
  };
  struct Rounds {
    Collective kind;
    const char* algorithm;
    Limit one, more;
  };
  for (const Rounds& r : {Rounds{Collective::allreduce, "rabenseifner", {0.05, 0.17}, {0.085, 0.3}},
                          {Collective::reduce, "rabenseifner", {0.035, 0.4}, {0.08, 0.28}},
                          {Collective::allreduce, "swing", {0.08, 0.18}, {0.07, 0.22}},
                          {Collective::reduce_scatter, "recursive_halving", {0.035, 0.12}, {0.065, 0.32}},
                          {Collective::gather, "binomial", {0.02, 0.1}, {0.05, 0.1}},
                          {Collective::gather, "linear", {0.05, 0.25}, {0.05, 0.25}}}) {
    const Algorithm& a = *find_algorithm(r.kind, r.algorithm);
    for (const Count chunks_each : {1u, 2u, 8u}) {
      Off off;
      for (const auto& [name, ranks] : {std::pair("ethernet-cpu", 32u),
                                        {"polaris", 8u},
                                        {"polaris", 12u},
                                        {"dgx-h100-superpod-2048", 64u},
                                        {"marenostrum5-acc", 24u},
                                        {"tpu-v4-4096", 64u}}) {
        Machine machine(name, ranks);
        for (const Count count : {Count(1) << 18, Count(1) << 21})
          for (const Count channels : {2u, 4u, 16u}) {
            if (!test::wide() && (count > 1 << 18) != (channels == 4)) continue;
            const Count share = counts_blocks(r.kind) ? count / ranks : count;
            off.add(predicted_by_simulated(machine, a, share, channels, chunks_each),
                    fmt::format("{} ranks of {}, {} elements in {} channels", ranks, name, count, channels));
          }
      }
      INFO(gccl::name(r.kind), " ", a.name, ", ", chunks_each, " chunks a channel: most for ", off.where);
      const Limit& limit = chunks_each == 1 ? r.one : r.more;
      CHECK(off.mean() <= limit.mean);
      CHECK(off.worst <= limit.worst);
    }
  }
}

// Cards that are joined pairwise and NICs that two cards share (polaris, atlas), and NICs that a whole node shares.
TEST_CASE("trees of many chunks are predicted as the flow engine has them, on few nodes and with few channels, too") {
  const Algorithm& tree = *find_algorithm(Collective::allreduce, "tree");
  for (const auto& [name, per_node] : {std::pair("ethernet-cpu", 4u),
                                       {"polaris", 4u},
                                       {"marenostrum5-acc", 4u},
                                       {"atlas-900-a2", 8u},
                                       {"dgx-a100-superpod", 8u}}) {
    const std::string of = name;
    const bool cards = std::string_view(name) != "ethernet-cpu" && std::string_view(name) != "atlas-900-a2";
    Off off;
    for (const unsigned nodes : {2u, 4u, 7u}) {
      Machine machine(name, nodes * per_node);
      for (const Count channels : {1u, 2u, 8u, 16u}) {
        const Count count = Count(1) << (cards ? 27 : 22);
        off.add(predicted_by_simulated(machine, tree, count, channels, 512 / channels, cards ? "Simple" : ""),
                fmt::format("{} nodes in {} channels", nodes, channels));
      }
    }
    INFO(of, ": most for ", off.where, " ", off.mean(), " ", off.worst);
    CHECK(off.mean() <= 0.12);
    CHECK(off.worst <= 0.27);
  }
}

TEST_CASE("neighbours on a torus exchange on both sides at once in several channels, and in turns in one") {
  Machine machine("tpu-v4-4096", 64);
  const Algorithm& a = *find_algorithm(Collective::allgather, "neighbor_exchange");
  const auto near = [&](Count count, Count channels, Count chunks_each, double limit) {
    const double ratio = predicted_by_simulated(machine, a, count / 64, channels, chunks_each);
    INFO(count, " elements in ", channels, " channels of ", chunks_each, " chunks: ", ratio);
    CHECK(std::abs(ratio - 1) <= limit);
  };
  near(1 << 24, 1, 1, 0.02);
  for (const Count channels : {2u, 4u, 8u, 16u}) near(1 << 24, channels, 1, 0.08);
  // Slices of blocks are messages: they are most of what short calls take.
  for (const Count channels : {4u, 8u, 16u}) near(1 << 17, channels, 2, 0.05);
}

TEST_CASE("channels on a torus whose links back are narrow take what these carry") {
  Machine machine(parse_cluster(R"({"schema": "gccl/cluster/1", "name": "narrow back", "parameters": {
      "card": {"overhead_ns": 100, "combine_GBps": 0, "copy_GBps": 0}, "eager_bytes": 65536},
      "nodes": [{"count": 8, "cards": 1}], "fabric": {"kind": "torus", "of": "cards", "dims": [8],
      "link": {"bandwidth_GBps": 25, "latency_ns": 500, "reverse_bandwidth_GBps": 1}}})",
                                "narrow back"),
                  sim::first_cards(8));
  const Algorithm& a = *find_algorithm(Collective::allgather, "neighbor_exchange");
  for (const Count channels : {1u, 4u, 32u}) {
    const double ratio = predicted_by_simulated(machine, a, 1 << 21, channels, channels == 1 ? 1 : 64);
    INFO(channels, " channels: ", ratio);
    CHECK(std::abs(ratio - 1) <= 0.15);
  }
}

// Cards of leonardo's nodes have a link for each pair, so that both of a rank's messages go at once there.
TEST_CASE("double binary trees of several channels are predicted as the flow engine has them") {
  const Algorithm& a = *find_algorithm(Collective::broadcast, "double_binary_tree");
  for (const Count chunks_each : {1u, 4u}) {
    Off off;
    for (const auto& [name, ranks] : {std::pair("ethernet-cpu", 12u),
                                      {"ethernet-cpu", 32u},
                                      {"leonardo", 4u},
                                      {"leonardo", 12u},
                                      {"dgx-h100-superpod-2048", 32u},
                                      {"alps-gh200-2048", 24u}}) {
      Machine machine(name, ranks);
      for (const Count count : {Count(1) << 17, Count(1) << 20})
        for (const Count channels : {2u, 4u, 8u}) {
          off.add(predicted_by_simulated(machine, a, count, channels, chunks_each),
                  fmt::format("{} ranks of {}, {} elements in {} channels", ranks, name, count, channels));
        }
    }
    INFO(chunks_each, " chunks a channel: ", off.mean(), " in the mean, ", off.worst, " for ", off.where);
    CHECK(off.mean() <= 0.08);
    CHECK(off.worst <= 0.25);
  }
}

// Of 144 ranks on two nodes of 72, rank 64 sends more messages to the other node than the root. On lumi-g messages of
// more than 16 KiB wait for their receives, of which a rank that passes chunks on has one posted.
TEST_CASE("trees' chunks follow each other as the busiest link and posted receives let them") {
  for (const auto& [name, protocol, algorithm, kind, ranks, count, most] :
       {std::tuple("gb200-nvl72-576", "LL", "binomial", Collective::broadcast, 144u, Count(750000), 0.2),
        {"gb200-nvl72-576", "LL", "binomial", Collective::reduce, 144u, Count(750000), 0.2},
        {"lumi-g", "memory", "binomial", Collective::broadcast, 8u, Count(1) << 18, 0.02},
        {"lumi-g", "memory", "double_binary_tree", Collective::broadcast, 9u, Count(3) << 20, 0.25},
        {"lumi-g", "memory", "double_binary_tree", Collective::broadcast, 7u, Count(1) << 24, 0.15}}) {
    Machine machine(name, ranks);
    for (const Count chunks : {4u, 8u, 16u, 128u}) {
      const double ratio =
          predicted_by_simulated(machine, *find_algorithm(kind, algorithm), count, 1, chunks, protocol);
      const std::string where =
          fmt::format("{} on {} ranks of {}, {} elements in {} chunks", algorithm, ranks, name, count, chunks);
      CAPTURE(where);
      CAPTURE(ratio);
      CHECK(std::abs(ratio - 1) <= most);
    }
  }
}

// One rank's blocks to all others: near ones and far ones, whose links are not busy at the same time where all channels
// are with the same rank.
TEST_CASE("linear scatters in several channels are predicted as the flow engine has them") {
  const Algorithm& a = *find_algorithm(Collective::scatter, "linear");
  Off off;
  for (const auto& [name, ranks] : {std::pair("dgx-h100-superpod-2048", 32u),
                                    {"gb200-nvl72-576", 8u},
                                    {"gb200-nvl72-576", 144u},
                                    {"alps-gh200-2048", 64u},
                                    {"leonardo", 40u}}) {
    Machine machine(name, ranks);
    for (const Count count : {Count(1) << 11, Count(1) << 15, Count(1) << 19})
      for (const Count channels : {1u, 2u, 8u})
        for (const Count chunks : {1u, 4u}) {
          off.add(predicted_by_simulated(machine, a, count, channels, chunks),
                  fmt::format("{} ranks of {}, {} elements, {} chunks in each of {} channels", ranks, name, count,
                              chunks, channels));
        }
  }
  INFO("off by ", off.mean(), " in the mean, ", off.worst, " for ", off.where);
  CHECK(off.mean() <= 0.035);
  CHECK(off.worst <= 0.25);
}

// Off powers of two a round's message need not wait for the one before, and is taken after it all the same.
TEST_CASE("rounds whose messages come at once are predicted with what taking each of them costs") {
  for (const Rank ranks : {3u, 5u, 13u})
    for (const Nanos overhead_ns : {0, 200}) {
      const CardCosts costs{
          .overhead_ns = overhead_ns, .receive_overhead_ns = 1000, .combine_GBps = 100, .copy_GBps = 100};
      Machine machine(std::make_shared<Star>(ranks, 12, 300, costs), sim::first_cards(ranks));
      for (const auto& [kind, name, most] : {std::tuple(Collective::allgather, "pat", 0.01),
                                             {Collective::allgather, "bruck", 0.01},
                                             {Collective::reduce_scatter, "recursive_halving", 0.22},
                                             {Collective::allreduce, "rabenseifner", 0.22}}) {
        const double ratio = predicted_by_simulated(machine, *find_algorithm(kind, name), 16, 1);
        const std::string algorithm = name;
        INFO(algorithm, " on ", ranks, " ranks: ", ratio);
        CHECK(std::abs(ratio - 1) <= most);
      }
    }
}

// 16 MiB of its own at 10 GB/s take 1.7 ms, all that the links carry 0.5 ms.
TEST_CASE("what a card copies of all channels is predicted one after the other") {
  const CardCosts costs{.overhead_ns = 100, .receive_overhead_ns = 100, .combine_GBps = 0, .copy_GBps = 10};
  Machine machine(std::make_shared<Star>(4, 100, 300, costs), sim::first_cards(4));
  for (const auto& [kind, name] : {std::pair(Collective::allgather, "ring"),
                                   {Collective::allgather, "direct"},
                                   {Collective::allgather, "neighbor_exchange"},
                                   {Collective::alltoall, "pairwise"},
                                   {Collective::scatter, "linear"},
                                   {Collective::broadcast, "double_binary_tree"}}) {
    const double ratio = predicted_by_simulated(machine, *find_algorithm(kind, name), Count(4) << 20, 16);
    const std::string algorithm = name;
    INFO(algorithm, ": ", ratio);
    CHECK(std::abs(ratio - 1) <= 0.05);
  }
}

// On a ring of five ranks messages of different length of way meet at the same links in every channel. Where each pair
// has a link of its own, a channel of one chunk waits for its last exchange, and chunks behind it do not.
TEST_CASE("exchanges of few ranks are predicted as the flow engine has them, in channels and in chunks") {
  const Algorithm& pairwise = *find_algorithm(Collective::alltoall, "pairwise");
  constexpr Count kBlock = Count(2) << 20;
  const auto hold = [](const char* cluster, Rank ranks, const Algorithm& a, Count channels, Count each, double limit) {
    Machine machine(cluster, ranks);
    const double ratio = predicted_by_simulated(machine, a, kBlock, channels, each);
    INFO(a.name, " on ", ranks, " ranks of ", cluster, ", ", channels, " channels of ", each, ": predicted ", ratio);
    CHECK(std::abs(ratio - 1) <= limit);
  };
  for (const Rank ranks : {5u, 6u})
    for (const Count channels : {2u, 4u, 8u}) hold("tpu-v4-4096", ranks, pairwise, channels, 1, 0.04);
  for (const Rank ranks : {6u, 7u, 8u})
    for (const Algorithm* a : {&pairwise, find_algorithm(Collective::alltoall, "hierarchical")}) {
      hold("atlas-900-a2", ranks, *a, 2, 1, 0.02);
      hold("atlas-900-a2", ranks, *a, 4, 8, 0.04);
    }
}
