// Summaries of clusters: their cuts and diameters, worked out by hand.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "libgccl/cluster/read/summary.hpp"
#include "tests/cluster/described.hpp"

using namespace gccl;
using namespace gccl::test;

TEST_CASE("the summary's cuts are those of the structure") {
  const auto tree = summarize(
      *make(switched(64, 1, 1), R"({"kind": "fat_tree", "leaf_size": 8, "oversubscription": 4, "link": "trunk"})"));
  CHECK(*tree.bisection_GBps == doctest::Approx(8 * 2 * 20 / 2.0));
  CHECK(tree.tiers.back().oversubscription.value() == doctest::Approx(64 * 40 / (16 * 20.0)));
  CHECK(tree.diameter == 6);
  const auto flat = summarize(*make(switched(64, 1, 1), R"({"kind": "switch"})"));
  CHECK(*flat.bisection_GBps == doctest::Approx(32 * 40));
  CHECK(flat.paired_GBps == doctest::Approx(32 * 40));
  const auto torus = summarize(*make(R"([{"count": 128, "cards": 1}])",
                                     R"({"kind": "torus", "of": "cards", "dims": [8, 4, 4], "link": "trunk"})"));
  CHECK(*torus.bisection_GBps == doctest::Approx(2 * 16 * 20));
  CHECK(torus.diameter == 4 + 2 + 2);
  CHECK(torus.diameter_sources == 128);
}

TEST_CASE("planes of three levels have the leaves that are plugged in, as many as those of one tree by rails") {
  const auto of = [](const std::string& nodes, const std::string& fabric) { return summarize(*make(nodes, fabric)); };
  const auto links = [](const Summary& s, Tier tier) {
    for (const TierSummary& t : s.tiers)
      if (t.tier == tier) return t.links;
    return std::uint64_t(0);
  };
  // 8 planes of 2 leaves: of 64 ports each 32 lead up, and 13 where 51 lead down.
  const std::string nodes = switched(64, 8, 8);
  for (const int over : {1, 4})
    for (const std::string kind : {R"("multi_plane", "planes": 8)", R"("rail")"}) {
      CAPTURE(kind);
      CAPTURE(over);
      const int up = over == 1 ? 32 : 13;
      const Summary s = of(nodes, fmt::format(R"({{"kind": {}, "levels": 3, "radix": 64, "oversubscription": {},
                                                  "link": "trunk"}})",
                                              kind, over));
      CHECK(links(s, Tier::spine) == 2u * 8 * 2 * unsigned(up));
      CHECK(s.tiers.back().oversubscription.value() == doctest::Approx(64 * 8 * 40 / (8 * 2 * up * 20.0)));
      CHECK(*s.bisection_GBps == doctest::Approx(8 * 2 * up * 20 / 2.0));
    }
  // 2 planes of 5 leaves of 4 ports: a pod of 4, and one of what is left, with all its spines.
  const Summary pods = of(switched(18, 2, 2), R"({"kind": "multi_plane", "planes": 2, "levels": 3, "leaf_size": 4,
                                                  "pod_leaves": 4, "link": "trunk", "core_link": "trunk"})");
  CHECK(links(pods, Tier::spine) == 2 * 2 * 5 * 4);
  CHECK(links(pods, Tier::core) == 2 * 2 * 2 * 4 * 4);
}

TEST_CASE("a cut is as wide as its narrower direction") {
  constexpr std::string_view kSlowBack = R"({"bandwidth_GBps": 20, "latency_ns": 300, "reverse_bandwidth_GBps": 2})";
  constexpr std::string_view kSlowOut = R"({"bandwidth_GBps": 2, "latency_ns": 300, "reverse_bandwidth_GBps": 20})";
  const auto cut = [](const std::string& nodes, const std::string& fabric) {
    return summarize(*make(nodes, fabric)).bisection_GBps.value();
  };
  const std::string nodes = switched(16, 1, 1);
  for (const auto slow : {kSlowBack, kSlowOut}) {
    // 4 leaves with 4 cables up; 8 cards of 16; 5 groups of which 2 have 6 cables to the other 3.
    CHECK(cut(nodes, fmt::format(R"({{"kind": "fat_tree", "leaf_size": 4, "link": {}}})", slow)) == 16 / 2 * 2.0);
    CHECK(cut(fmt::format(R"([{{"count": 16, "cards": 1, "nics": {{"count": 1, "bus": "bus", "port": {}}}}}])", slow),
              R"({"kind": "switch"})") == 8 * 2.0);
    CHECK(cut(switched(10, 1, 1), fmt::format(R"({{"kind": "dragonfly", "routers": 2, "ports": 1, "groups": 5,
                  "global_links": 1, "local_link": "port", "global_link": {}}})",
                                              slow)) == 2 * 3 * 2.0);
    // Of 16 in a row one cable crosses; round a ring one half sends forwards at one end and backwards at the other.
    const auto row = [&](bool wrap) {
      return fmt::format(R"({{"kind": "torus", "of": "nodes", "dims": [16], "wrap": {}, "link": {}}})", wrap, slow);
    };
    CHECK(cut(nodes, row(false)) == 2);
    CHECK(cut(nodes, row(true)) == 20 + 2);
  }
}
