// Whole collectives on the SimGrid engine: right answers, and the model engine's times where nothing contends.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "libgccl/cluster/fabrics/star.hpp"
#include "sim/engine/workload.hpp"
#include "tests/support/child.hpp"

namespace simgrid_collectives {

using namespace gccl;
using namespace gccl::sim;

struct Played {
  Nanos time_ns;
  std::uint64_t messages, bytes, wrong, link_bytes;
  friend bool operator==(const Played&, const Played&) = default;
};

struct Play {
  Workload w;
  Play(const Cluster& cluster, const Algorithm& a, Rank ranks, Count count, unsigned window) {
    w.cluster = &cluster;
    w.cards.resize(ranks);
    std::iota(w.cards.begin(), w.cards.end(), 0);
    SimulatedOperation o;
    o.algorithm = &a;
    o.call = {.kind = a.kind, .count = count};
    if (has_counts(a.kind))
      o.call.counts = [](const void*, Rank from, Rank to) { return Count(100 + 7 * from + 3 * to); };
    o.layout = std::make_shared<Layout>(Layout::flat(ranks));
    o.window = window;
    o.element_bytes = 1;
    w.operations = {o};
    w.streams = {{{0}}};
  }
  static Played summary(const Outcome& out) {
    return {out.time_ns, out.messages, out.bytes, out.wrong,
            std::accumulate(out.link_bytes.begin(), out.link_bytes.end(), std::uint64_t(0))};
  }
  Played model() const { return summary(run_model(w)); }
  Played simgrid() const {
    return test::in_child([&] { return std::vector<Played>{summary(run_simgrid(w))}; })[0];
  }
};

bool fits(const Algorithm& a, Rank ranks, Count count) {
  const Layout layout = Layout::flat(ranks);
  return a.can({.kind = a.kind, .count = count}, layout.view(0));
}

TEST_CASE("a ring all-reduce takes 2(n-1) times overhead, latencies and one part's bytes") {
  const Star star(16, 50, 1000, {.overhead_ns = 250});
  const Play play(star, *find_algorithm(Collective::allreduce, "ring"), 16, 16 * 50000, 8);
  const Played out = play.simgrid();
  CHECK(out.time_ns == 2 * 15 * (250 + 2000 + 1000));
  CHECK(out.messages == 2 * 15 * 16);
  CHECK(out.link_bytes == 2 * out.bytes);
}

// One step in flight at a time and powers of two: no port ever carries two messages at once. (Recursive doubling over 7
// ranks folds one in first, whose message meets an early one on its way; there the engines are 6% apart.)
TEST_CASE("without contention both engines agree within 2% on every algorithm") {
  for (const Algorithm& a : algorithms()) {
    for (const auto& row : {std::pair<Rank, Count>{2, 100000}, {8, 20000}, {16, 1 << 20}, {16, 64}}) {
      const auto ranks = row.first;
      const auto count = row.second;
      if (!fits(a, ranks, count)) continue;
      CAPTURE(name(a.kind));
      CAPTURE(a.name);
      CAPTURE(ranks);
      CAPTURE(count);
      // Whole vectors meet at a port: one by one they are combined while the next arrives, side by side only
      // afterwards.
      const bool meets = a.name == "direct" && reduces(a.kind);
      const Star star(ranks, 25, 1000, {.overhead_ns = 300, .combine_GBps = meets ? 1e9 : 100});
      const Play play(star, a, ranks, count, 1);
      const Played simgrid = play.simgrid(), model = play.model();
      CHECK(simgrid.messages == model.messages);
      CHECK(simgrid.bytes == model.bytes);
      CHECK(simgrid.link_bytes == model.link_bytes);
      CHECK(double(simgrid.time_ns) / double(model.time_ns) == doctest::Approx(1).epsilon(0.02));
    }
  }
}

// Several children of one rank must not share its link: the first would get its part as late as the last.
TEST_CASE("without contention both engines agree within 2% under a protocol") {
  const Protocol protocols[] = {{.operation_ns = 6600, .inside = {.latency_ns = 600, .efficiency = 0.4}},
                                {.operation_ns = 9000, .inside = {.latency_ns = 3000}, .channel_GBps = 20}};
  for (const char* const algorithm : {"ring", "recursive_doubling", "rabenseifner"})
    for (const Protocol& protocol : protocols)
      for (const Count count : {Count(64), Count(1) << 14, Count(1) << 22}) {
        const Star star(8, 100, 500, {.overhead_ns = 250, .receive_overhead_ns = 100});
        Play play(star, *find_algorithm(Collective::allreduce, algorithm), 8, count, 2);
        play.w.operations[0].protocol = &protocol;
        const Played model = play.model(), simgrid = play.simgrid();
        CAPTURE(algorithm);
        CAPTURE(count);
        CHECK(std::abs(double(model.time_ns - simgrid.time_ns)) <= 0.02 * double(model.time_ns));
        CHECK(model.link_bytes == simgrid.link_bytes);
      }
}

TEST_CASE("a larger window makes no broadcast or scatter notably slower, on either engine") {
  const Star star(16, 25, 1000,
                  {.overhead_ns = 500, .receive_overhead_ns = 500, .combine_GBps = 100, .copy_GBps = 200});
  for (const auto& [kind, count] : {std::pair(Collective::broadcast, Count(1) << 26), {Collective::scatter, 1 << 22}})
    for (const Algorithm& a : algorithms()) {
      if (a.kind != kind) continue;
      CAPTURE(name(a.kind));
      CAPTURE(a.name);
      const Play narrow(star, a, 16, count, 1);
      for (unsigned window : {2u, 8u, 32u}) {
        CAPTURE(window);
        const Play wide(star, a, 16, count, window);
        CHECK(double(wide.simgrid().time_ns) <= 1.05 * double(narrow.simgrid().time_ns));
        CHECK(double(wide.model().time_ns) <= 1.05 * double(narrow.model().time_ns));
      }
    }
}

TEST_CASE("every algorithm leaves the right elements behind") {
  for (const Algorithm& a : algorithms()) {
    for (Rank ranks : {1, 3, 7}) {
      for (Count count : {0, 2, 1000}) {
        if (!fits(a, ranks, count)) continue;
        CAPTURE(name(a.kind));
        CAPTURE(a.name);
        CAPTURE(ranks);
        CAPTURE(count);
        const Star star(ranks, 25, 1000, {.overhead_ns = 300, .combine_GBps = 100}, 512);
        Play play(star, a, ranks, count, 8);
        play.w.payload = true;
        play.w.operations[0].element_bytes = 8;
        play.w.operations[0].shares = play.w.operations[0].lanes = 2;
        const Played first = play.simgrid();
        CHECK(first.wrong == 0);
        CHECK(first.messages == play.model().messages);
        if (count == 1000) {  // another order of starting the lanes, the same nanoseconds
          play.w.seed = 99;
          CHECK(play.simgrid() == first);
        }
      }
    }
  }
}

}  // namespace simgrid_collectives
