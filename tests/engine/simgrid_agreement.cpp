// The engines play the same definitions (sim/engine/network.hpp): how far their times are apart, on shipped clusters,
// and where. GCCL_WIDE=1, as scripts/long sets it, takes all shipped clusters and up to 64 ranks.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "libgccl/cluster/changed.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "sim/engine/workload.hpp"
#include "tests/support/child.hpp"
#include "tests/support/wide.hpp"

namespace simgrid_agreement {

using namespace gccl;
using namespace gccl::sim;

// The two times differ by at most this part of the shorter one.
// - Where no two ranks' messages are on one link at the same time there is nothing to share, and times are equal, to
//   the rounding of each message to a nanosecond.
// - Short messages take their latencies and overheads; waiting for one another is a small part (up to 8 %; 21 % on the
//   torus, where 64 ranks' messages meet at many cards on their way).
// - Where messages of several ranks share a link, SimGrid lets all advance together, so that all arrive late and nobody
//   goes on early; the model engine lets those of up to 128 KiB pass one after the other.
// - Where all ranks send to one at once that is all there is: a receiver that gets everything at the end has all its
//   overheads and sums still to come (64 KiB); what passes one by one is summed while the next one passes. Short
//   messages do that too where latencies are those of shared memory: 63 messages of 64 bytes take 211 ns to pass there.
//   Twice as long takes a step to a group that no switch carries out: all send to one, which then sends to all.
// - Where two cards share a way that is far narrower than the one between them (l40s-box), exchanges let both send to
//   the same card, then both to the next: SimGrid's messages that went off together arrive together, and half of the
//   ways stand idle. The model engine lets one pass first, after which the two go to different cards.
constexpr double kAlone = 0.005, kShort = 0.25, kShortManyToOne = 0.35, kShared = 0.5, kManyToOne = 0.85, kGroup = 1,
                 kTogether = 0.9;
// And nine of ten points by at most this.
constexpr double kUsual = 0.05, kUsualPart = 0.9;

bool alone(const Algorithm& a) {
  using enum Collective;
  return a.name == "ring" || a.name == "chain" || a.kind == barrier || a.kind == sendrecv ||
         (a.name == "binomial" && (a.kind == gather || a.kind == reduce));
}
bool many_to_one(const Algorithm& a) {
  using enum Collective;
  return (a.name == "direct" && (a.kind == reduce || a.kind == allreduce)) || (a.name == "linear" && a.kind == gather);
}
double tolerance(const Algorithm& a, Count bytes, const std::string& cluster) {
  if (alone(a)) return kAlone;
  if (bytes < 1024) return many_to_one(a) ? kShortManyToOne : kShort;
  if (cluster == "l40s-box" && !a.in_switch) return kTogether;
  return a.in_switch ? kGroup : many_to_one(a) ? kManyToOne : kShared;
}

// Flow and SimGrid have the same rates. Where a message's turn depends on which of two came a nanosecond sooner, each
// one's own time moves by some percent when all overheads grow by a few nanoseconds, and the times that they take then
// meet.
constexpr double kSameRates = 0.01;
constexpr Nanos kNudges[] = {8, 21};

// The same cluster, all of whose overheads are so much longer.
class Nudged final : public ChangedCluster {
 public:
  Nudged(const Cluster& c, Nanos by) : ChangedCluster(c) {
    for (Card card = 0; card < c.cards(); ++card) {
      costs_.push_back(c.costs(card));
      costs_.back().overhead_ns += by;
    }
  }
  const CardCosts& costs(Card c) const override { return costs_[c]; }

 private:
  std::vector<CardCosts> costs_;
};

double apart(Nanos a, Nanos b) { return double(std::max(a, b)) / double(std::min(a, b)) - 1; }

Nanos simgrid_ns(const Workload& w) {
  return test::in_child([&] { return std::vector<Nanos>{run_simgrid(w).time_ns}; })[0];
}

Count all_equal(const void* count, Rank, Rank) { return *static_cast<const Count*>(count); }

// Bytes: of the vector, or of all blocks of a rank.
Count count_of(Collective kind, Rank ranks, Count bytes) {
  using enum Collective;
  if (kind == barrier) return 0;
  const bool vector = !counts_blocks(kind);
  return std::max<Count>(1, bytes / 4 / (vector ? 1 : ranks));
}

std::vector<std::string> clusters(bool wide) {
  if (!wide) return {"pcie-box", "ethernet-cpu", "mixed", "custom-fabric", "dgx-h100-superpod-2048"};
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator(GCCL_SOURCE_DIR "/topologies"))
    all.push_back(entry.path().stem().string());
  std::sort(all.begin(), all.end());
  return all;
}

TEST_CASE("the engines agree on shipped clusters, within what sharing a link means to each") {
  const bool wide = gccl::test::wide();
  std::vector<Rank> sizes{8, 16};
  if (wide) sizes.push_back(64);
  std::size_t points = 0, usual = 0, different = 0;
  for (const std::string& name : clusters(wide)) {
    const auto cluster = load_cluster(GCCL_SOURCE_DIR "/topologies/" + name + ".json");
    for (const Rank ranks : sizes) {
      if (ranks > cluster->cards()) continue;
      std::vector<Card> cards(ranks);
      std::iota(cards.begin(), cards.end(), 0);
      const auto layout = std::make_shared<Layout>(layout_of(*cluster, cards));
      for (const Algorithm& a : algorithms())
        for (const Count bytes : {Count(64), Count(64) << 10, Count(64) << 20}) {
          const Count count = count_of(a.kind, ranks, bytes);
          const Call call{.kind = a.kind, .count = count, .counts = all_equal, .table = &count};
          if (a.variant || !a.can(call, layout->view(0))) continue;
          Workload w;
          w.cluster = cluster.get();
          w.cards = cards;
          w.operations.push_back({.algorithm = &a, .call = call, .layout = layout, .members = {}});
          w.streams = {{{0}}};
          const Nanos model = run_model(w).time_ns;
          const Nanos simgrid = simgrid_ns(w), flow = run_flow(w).time_ns;
          REQUIRE(std::min(model, simgrid) > 0);
          if (apart(flow, simgrid) > kSameRates) {
            ++different;
            std::vector<Nanos> flows{flow}, simgrids{simgrid};
            for (const Nanos by : kNudges) {
              const Nudged nudged(*cluster, by);
              w.cluster = &nudged;
              flows.push_back(run_flow(w).time_ns);
              simgrids.push_back(simgrid_ns(w));
            }
            double nearest = apart(flow, simgrid);
            for (const Nanos f : flows)
              for (const Nanos s : simgrids) nearest = std::min(nearest, simgrid_agreement::apart(f, s));
            INFO(gccl::name(a.kind), " ", a.name, ", ", bytes, " bytes, ", ranks, " ranks of ", name, ": flow ", flow,
                 " ns, SimGrid ", simgrid, " ns");
            CHECK(nearest <= kSameRates);
          }
          const double apart = simgrid_agreement::apart(model, simgrid);
          ++points;
          usual += apart <= kUsual;
          if (apart <= tolerance(a, bytes, name)) continue;
          FAIL_CHECK(gccl::name(a.kind), " ", a.name, ", ", bytes, " bytes, ", ranks, " ranks of ", name, ": model ",
                     model, " ns, SimGrid ", simgrid, " ns, more than ", 100 * tolerance(a, bytes, name), " % apart");
        }
    }
  }
  MESSAGE(points, " points, ", usual, " of them within ", 100 * kUsual, " %; flow and SimGrid differ by more than ",
          100 * kSameRates, " % at ", different);
  CHECK(double(usual) >= kUsualPart * double(points));
}

}  // namespace simgrid_agreement
