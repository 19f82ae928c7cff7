// Two fidelities, one answer: without contention the model engine agrees with every algorithm's closed form.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "tests/algorithms/by_model.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

void check_all(Count eager_bytes, std::initializer_list<Rank> sizes) {
  for (const Algorithm& a : algorithms()) {
    REQUIRE((a.cost != nullptr));
    double worst = 0;
    std::string where;
    for (Rank ranks : sizes)
      for (Count count : {Count(1) << 6, Count(1) << 14, Count(1) << 22}) {
        if (!a.can(call_of(a, count), Layout::flat(ranks).view(0))) continue;
        const double s = simulated_ns(a, ranks, count, eager_bytes), p = predicted_ns(a, ranks, count);
        const double off =
            std::abs(p - s) <= 2.0 * ranks ? 0 : std::abs(p - s) / s;  // each message rounds to a nanosecond
        if (off > worst) {
          worst = off;
          where = std::to_string(ranks) + " ranks, " + std::to_string(count) + " elements: predicted " +
                  std::to_string(p) + " ns, simulated " + std::to_string(s) + " ns";
        }
      }
    INFO(name(a.kind), " ", a.name, ": ", where);
    // Half-vectors from two children share the parent's port in turns, so less of the combining is hidden than the form
    // says. Long vectors into one root end together, unless they wait for their receives: then a window of them does.
    const bool tree = a.kind == Collective::allreduce && a.name == "double_binary_tree";
    const bool waits = a.kind == Collective::reduce && a.name == "direct" && eager_bytes != ~Count(0);
    // Off powers of two what folds has ranks that are late, so long messages of different steps share ports; and so do
    // the messages of a tree's different children.
    const bool power = std::all_of(sizes.begin(), sizes.end(), [](Rank n) { return std::has_single_bit(n); });
    CHECK(worst <= (!power ? kCostToleranceOdd : tree ? 0.13 : waits ? 0.25 : 0.02));
  }
}

}  // namespace

TEST_CASE("closed forms agree with the model engine within 2% on powers of two, messages eager") {
  check_all(~Count(0), {1, 2, 4, 8, 16, 64});
}

TEST_CASE("and with messages above 64 KiB waiting for their receive") { check_all(64 << 10, {1, 2, 4, 8, 16, 64}); }

TEST_CASE("off powers of two closed forms agree with the model engine within 35%") {
  check_all(~Count(0), {3, 5, 6, 7, 9, 12, 13, 23, 24, 31});
  check_all(64 << 10, {3, 5, 6, 7, 9, 12, 13, 23, 24, 31});
}

TEST_CASE("gccl verify's check accepts the forms there are and refuses a wrong one with the times") {
  for (const Algorithm& a : algorithms()) {
    INFO(name(a.kind), " ", a.name);
    CHECK(wrong_cost(a).value_or("") == "");
  }
  Algorithm ring = *find_algorithm(Collective::allreduce, "ring");
  ring.cost = [](const Call&, const View&, const CostModel&) -> Cost { return 1; };
  const auto text = wrong_cost(ring);
  REQUIRE(text);
  CHECK(text->starts_with("its closed form says 1 ns for "));
}

TEST_CASE("where memory is slower than the links, closed forms count the copies besides the messages") {
  const Star star(8, 400, 900, {.overhead_ns = 400, .receive_overhead_ns = 300, .combine_GBps = 200, .copy_GBps = 20});
  for (const Algorithm& a : algorithms()) {
    if (a.variant || a.kind == Collective::barrier) continue;
    for (const Count count : {Count(1) << 14, Count(1) << 22}) {
      const auto p = cost_point(a, star, first_cards(8), count);
      REQUIRE(p);
      CAPTURE(name(a.kind));
      CAPTURE(a.name);
      CAPTURE(count);
      CHECK(p->error(0) < kCostToleranceOdd);
    }
  }
}
