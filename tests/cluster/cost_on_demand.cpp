// A cost model works out what messages share of links only for the forms that are asked for: the routes asked of the
// cluster are counted.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "libgccl/cluster/changed.hpp"
#include "libgccl/cluster/cost_model.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "libgccl/cost/scaled.hpp"
#include "sim/flow/cost_check.hpp"
#include "tests/support/project.hpp"

using namespace gccl;

namespace {

class Counted final : public ChangedCluster {
 public:
  Counted(const Cluster& whole, std::uint64_t* routes) : ChangedCluster(whole), routes_(*routes) {}
  void route(Card from, Card to, std::vector<LinkId>& out) const override {
    ++routes_;
    whole_.route(from, to, out);
  }

 private:
  std::uint64_t& routes_;
};

std::shared_ptr<const Cluster> loaded(const char* name) {
  return load_cluster(test::kRoot / "topologies" / (std::string(name) + ".json"));
}

}  // namespace

TEST_CASE("a model asks for the routes of what a form needs, once for all copies") {
  constexpr std::uint64_t kRanks = 256, kNodes = 32;
  const auto whole = loaded("dgx-h100-superpod-2048");
  std::uint64_t routes = 0;
  const Counted cluster(*whole, &routes);
  const CostModel m = cost_model(cluster, sim::first_cards(kRanks), 4);
  CHECK(routes < 4 * kNodes);  // the farthest node, and a node's cards
  const CostModel copy = m;
  const auto asked = [&](auto ask) {
    const std::uint64_t before = routes;
    ask(m), ask(copy), ask(m);
    return routes - before;
  };
  CHECK(asked([](const CostModel& c) { return c.all.next->slowest.alpha_ns; }) == kRanks);
  CHECK(asked([](const CostModel& c) { return c.all.fans->in_ns; }) == 2 * (kRanks - 1));
  CHECK(asked([](const CostModel& c) { return c.all.exchange->size(); }) == kRanks * 8);  // by 1, 2, ... 128
  CHECK(asked([](const CostModel& c) { return c.rail.next->slowest.alpha_ns; }) == kRanks);
  CHECK(asked([](const CostModel& c) { return c.all.known() && c.rings && c.parts && c.doubling; }) == 0);
  // Eight orders of channels, there and, but for the message that closes the ring, back.
  CHECK(asked([](const CostModel& c) { return c.rings->size(); }) == 8 * (kRanks + kRanks - 1));
  CHECK(m.rings->back().channels == 8);
}

TEST_CASE("a scaled model is that of the machine, scaled once it is asked for") {
  const auto cluster = loaded("dgx-h100-superpod-2048");
  const CostModel m = cost_model(cluster, sim::first_cards(64), 4), half = scaled(m, {.latency = 0.5});
  CHECK(half.all.shifts->plain[3].alpha_ns == 0.5 * m.all.shifts->plain[3].alpha_ns);
  CHECK(half.all.shifts->plain[3].beta_ns_per_byte == m.all.shifts->plain[3].beta_ns_per_byte);
  CHECK(half.rail.trees->levels[0].one.alpha_ns == 0.5 * m.rail.trees->levels[0].one.alpha_ns);
  CHECK(half.doubling->alpha_ns == 0.5 * m.doubling->alpha_ns);
  CHECK(half.rings->front().next.alpha_ns == 0.5 * m.rings->front().next.alpha_ns);
  CHECK(half.parts->at(0).overhead_ns == 0.5 * m.parts->at(0).overhead_ns);
  CHECK(*half.rings_ns_per_byte == *m.rings_ns_per_byte);
}

TEST_CASE("a model holds the cluster that it was given to hold") {
  auto cluster = loaded("polaris");
  const std::weak_ptr<const Cluster> watched = cluster;
  auto m = std::make_unique<CostModel>(cost_model(cluster, sim::first_cards(32), 4));
  const CostModel own = cost_model(loaded("polaris"), sim::first_cards(32), 4);
  cluster.reset();
  REQUIRE(!watched.expired());
  CHECK(m->all.pairs->mean.alpha_ns == own.all.pairs->mean.alpha_ns);
  // Whatever has been asked for, the rest still needs it; parts on their own, too.
  CHECK(m->rings->size() == own.rings->size());
  CHECK(m->doubling->alpha_ns == own.doubling->alpha_ns);
  CHECK(*m->rings_ns_per_byte == *own.rings_ns_per_byte);
  CHECK(m->parts->size() == own.parts->size());
  for (const CostModel& part : *m->parts)
    if (part.rings) CHECK(part.rings->size() + part.doubling->alpha_ns + *part.rings_ns_per_byte >= 0);
  REQUIRE(!watched.expired());
  CHECK(m->all.next->slowest.alpha_ns == own.all.next->slowest.alpha_ns);
  CHECK(m->rail.exchange->size() == own.rail.exchange->size());
  {
    const std::vector<CostModel> parts = *m->parts;
    m.reset();
    REQUIRE(!watched.expired());
    CHECK(parts.back().all.next->slowest.beta_ns_per_byte == own.parts->back().all.next->slowest.beta_ns_per_byte);
  }
  CHECK(watched.expired());
}

TEST_CASE("threads that ask at the same time get the one value, worked out once") {
  std::atomic<int> made = 0;
  const OnDemand<std::vector<int>> value([&] {
    ++made;
    std::this_thread::yield();
    return std::vector<int>(1000, 7);
  });
  std::vector<const int*> seen(8);
  {
    std::vector<std::jthread> threads;
    for (const int*& s : seen) threads.emplace_back([&s, value] { s = value->data(); });
  }
  CHECK(made == 1);
  for (const int* s : seen) CHECK(s == value->data());
  CHECK(!OnDemand<int>());
  CHECK(OnDemand<int>().value_or(3) == 3);
}
