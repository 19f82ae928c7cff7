// The planner: overrides, preferences of a transport, and the lowest prediction among the rows that fit.
#include <doctest/doctest.h>

#include <cmath>

#include "libgccl/schedule/layout.hpp"
#include "libgccl/select/plan.hpp"

using namespace gccl;

namespace {

Schedule nothing(Call, View, Share) { co_return; }
bool even_ranks(const Call&, const View& v) { return v.all.size % 2 == 0; }
Cost flat(const Call&, const View&, const CostModel&) { return 100; }
Cost by_bytes(const Call& c, const View&, const CostModel& m) { return 10 + m.bytes(double(c.count)); }
Cost free_of_charge(const Call&, const View&, const CostModel&) { return 0; }

constexpr Algorithm kTable[] = {
    {"flat", Collective::allreduce, nothing, nullptr, nullptr, flat},
    {"by_bytes", Collective::allreduce, nothing, nullptr, nullptr, by_bytes},
    {"same_as_flat", Collective::allreduce, nothing, nullptr, nullptr, flat},
    {"even_only", Collective::allreduce, nothing, nullptr, even_ranks, free_of_charge},
    {"unpriced", Collective::allreduce, nothing, nullptr, nullptr, nullptr},
    {"variant", Collective::allreduce, nothing, nullptr, nullptr, free_of_charge, true},
    {"elsewhere", Collective::barrier, nothing, nullptr, nullptr, free_of_charge},
};

std::string_view chosen(Count count, Rank ranks) {
  const Layout layout = Layout::flat(ranks);
  CostModel model;
  model.element_bytes = 4;
  const Call call{.kind = Collective::allreduce, .count = count};
  const Algorithm* a = plan(call, layout.view(0), model, {}, {}, kTable).algorithm;
  return a ? a->name : "none";
}

}  // namespace

TEST_CASE("the cheapest closed form wins, and changes with the size") {
  CHECK(chosen(1, 3) == "by_bytes");
  CHECK(chosen(22, 3) == "by_bytes");  // 98 < 100
  CHECK(chosen(1000, 3) == "flat");
}

TEST_CASE("on a tie the earlier row of the table wins") {
  CHECK(chosen(1000, 3) == "flat");  // and not same_as_flat
}

TEST_CASE("what cannot serve the call, has no closed form or is a variant is never chosen") {
  CHECK(chosen(1000, 4) == "even_only");
  CHECK(chosen(1000, 3) != "even_only");
}

TEST_CASE("without any row there is no choice") {
  const Layout layout = Layout::flat(2);
  CHECK(plan({.kind = Collective::scatter, .count = 1}, layout.view(0), {}, {}, {}, kTable).algorithm == nullptr);
}

TEST_CASE("from the real table the choice is the minimum over all rows, for every collective") {
  CostModel model;
  model.node = {1000, 0.01}, model.net = {5000, 0.02}, model.net_all = {5000, 0.1}, model.element_bytes = 4;
  static constexpr auto kCounts = [](const void*, Rank from, Rank to) { return Count(from + to); };
  for (std::size_t k = 0; k < collective_names().size(); ++k)
    for (const Rank ranks : {1u, 2u, 7u, 64u})
      for (const Count count : {Count(0), Count(1), Count(1000), Count(1) << 26}) {
        CAPTURE(collective_names()[k]);
        CAPTURE(ranks);
        CAPTURE(count);
        const Layout layout = Layout::regular(ranks, 8);
        const Call call{.kind = Collective(k), .count = count, .counts = kCounts};
        double least = INFINITY;
        for (const Algorithm& a : algorithms())
          if (a.kind == call.kind && !a.variant && a.cost && a.can(call, layout.view(0)))
            least = std::min(least, a.cost(call, layout.view(0), model));
        const Algorithm* a = plan(call, layout.view(0), model).algorithm;
        REQUIRE(a != nullptr);
        CHECK(a->cost(call, layout.view(0), model) == least);
      }
}
