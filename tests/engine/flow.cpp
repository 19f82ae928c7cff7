// The flow engine's network and its solver.
#include <doctest/doctest.h>

#include "sim/engine/shared_network.hpp"
#include "sim/flow/fair_flows.hpp"

using namespace gccl;
using namespace gccl::sim;

namespace {
using SharedNet = SharedNetwork<FairFlows>;
}  // namespace

#include "tests/engine/sharing_cases.hpp"

TEST_CASE("time that does not fit is an error") {
  const Star slow(2, 1e-6, 0);  // 1 KB/s
  CHECK_THROWS_WITH_AS(play(slow, {{0, 1, Count(1) << 50}}), doctest::Contains("2^60 ns"), std::runtime_error);
}

// Many more flows on a link than above, most of which a change must not reach.
TEST_CASE("hundreds of flows over shared links get the shares that progressive filling gives") {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    std::mt19937 rng(seed);
    Links links;
    for (int l = 0; l < 60; ++l) links.push_back(link(double(1 + rng() % 40), 0));
    Wires wires(40, links);
    std::vector<Sent> messages;
    for (Card a = 0; a < 40; ++a)
      for (Card b = 0; b < 40; ++b) {
        if (a == b || rng() % 4) continue;
        std::vector<LinkId> way(60);
        std::iota(way.begin(), way.end(), 0);
        std::shuffle(way.begin(), way.end(), rng);
        way.resize(2 + rng() % 3);
        wires.path(a, b, way);
        messages.push_back({a, b, 1000 + rng() % 100000, Nanos(rng() % 50 * 100)});
        if (rng() % 5 == 0) messages.back().least_ns = Nanos(10000 + rng() % 100000);
      }
    const auto out = play(wires, messages);
    const auto expected = fill(wires, messages);
    for (std::size_t i = 0; i < messages.size(); ++i) CHECK(std::abs(double(out[i]) - expected[i]) <= 2);
  }
}

TEST_CASE("an agenda hands out entries by time, those of one batch in order") {
  std::mt19937 rng(7);
  Agenda<int> agenda;
  std::multimap<Nanos, int> oracle;
  Nanos now = 0;
  int added = 0;
  std::vector<int> batch;
  for (int i = 0; i < 20000; ++i) {
    if (agenda.empty() || rng() % 5 > 1) {
      const Nanos at = now + Nanos(rng() % 3 ? rng() % 200 : rng() % 4 * 64);
      agenda.add(at, added);
      oracle.emplace(at, added++);
    } else {
      REQUIRE(agenda.next() == oracle.begin()->first);
      now = agenda.next();
      agenda.take(batch);
      CHECK(!batch.empty());
      CHECK(std::is_sorted(batch.begin(), batch.end()));
      for (int e : batch) {
        auto [a, b] = oracle.equal_range(now);
        const auto found = std::find_if(a, b, [&](const auto& o) { return o.second == e; });
        REQUIRE(found != b);
        oracle.erase(found);
      }
    }
  }
  std::size_t left = 0;
  for (; !agenda.empty(); left += batch.size()) agenda.take(batch);
  CHECK(left == oracle.size());
}
