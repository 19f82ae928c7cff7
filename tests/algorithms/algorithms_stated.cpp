// The table's rows: each names its source and states steps and bytes, and its schedule takes and sends just that many,
// counted here step by step. And the algorithms that README and docs/algorithms.md show.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "examples/algorithm/exchange.cpp"
#include "libgccl/verify/verify.hpp"
#include "sim/flow/cost_check.hpp"
#include "tests/algorithms/formula.hpp"
#include "tests/support/project.hpp"

using namespace gccl;
using namespace gccl::test;
using enum Collective;

namespace algorithms_stated {

struct Counted {
  Count steps = 0, elements = 0;
};

// What a schedule takes where every rank sends one message and receives one at a time, each in the order of its steps,
// and a message takes one step: the longest way through messages and the conflicts between steps, by going through all
// ranks again until nothing moves. And what the busiest rank sends.
Counted count(const Algorithm& a, const Call& c, const Layout& layout) {
  struct Known {
    Step step;
    std::size_t mate = 0;              // of a message: its other end's place in that rank's list
    std::vector<std::size_t> waits{};  // for earlier steps
    Count there = 0, done = 0;         // after how many steps the message has arrived, the step is complete
  };
  const Rank n = layout.ranks();
  std::vector<std::vector<Known>> ranks(n);
  std::map<std::pair<Rank, Rank>, std::vector<std::size_t>> sends, receives;
  Counted counted;
  for (Rank r = 0; r < n; ++r) {
    Schedule s = a.make(c, layout.view(r), {});
    Count sent = 0;
    while (const Step* step = s.next()) {
      const bool signal = !step->local() && step->from.buffer() == Buffer::none && step->to.buffer() == Buffer::none;
      if ((step->count() == 0 && !signal) || (step->local() && step->from == step->to)) continue;
      Known known{*step};
      for (std::size_t i = 0; i < ranks[r].size(); ++i)
        if (conflicts(*step, ranks[r][i].step)) known.waits.push_back(i);
      if (step->op == Op::send) sends[{r, step->peer}].push_back(ranks[r].size());
      if (step->receives()) receives[{step->peer, r}].push_back(ranks[r].size());
      if (step->op == Op::send) sent += step->from.count;
      ranks[r].push_back(std::move(known));
    }
    counted.elements = std::max(counted.elements, sent);
  }
  for (const auto& [way, list] : sends) {
    REQUIRE(receives[way].size() == list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      ranks[way.first][list[i]].mate = receives[way][i];
      ranks[way.second][receives[way][i]].mate = list[i];
    }
  }
  for (bool moves = true; moves;) {
    moves = false;
    for (std::vector<Known>& rank : ranks) {
      Count out = 0, in = 0;
      for (Known& k : rank) {
        Count ready = 0;
        for (const std::size_t i : k.waits) ready = std::max(ready, rank[i].done);
        Count there = 0;
        if (!k.step.local()) {
          Count& port = k.step.op == Op::send ? out : in;
          // A recv_reduce's message may come early: only the combining waits.
          there = std::max(port, k.step.op == Op::recv_reduce ? 0 : ready) + 1;
          there = std::max(there, ranks[k.step.peer][k.mate].there);
          port = there;
        }
        const Count done = std::max(there, ready);
        moves = moves || there != k.there || done != k.done;
        k.there = there;
        k.done = done;
        counted.steps = std::max(counted.steps, there);
      }
    }
  }
  return counted;
}

// Blocks of the kinds with counts are all alike here: the table is their length itself.
Count alike(const void* count, Rank, Rank) { return Count(reinterpret_cast<std::uintptr_t>(count)); }

// Holds a row to what is counted on machines of one node and of several. A bound must come close somewhere.
void check_stated(const Algorithm& a) {
  CAPTURE(name(a.kind));
  CAPTURE(a.name);
  REQUIRE(a.source.size() > 10);
  REQUIRE(!a.steps.empty());
  REQUIRE(!a.bytes.empty());
  struct Machine {
    Rank ranks, per_node;
  };
  std::vector<Machine> machines = {{4, 1},  {4, 2},  {8, 4},  {8, 2},  {12, 2}, {16, 4}, {32, 4},
                                   {32, 8}, {15, 3}, {15, 5}, {18, 6}, {28, 4}, {28, 7}, {49, 7}};
  for (const Rank n : {2u, 3u, 4u, 5u, 6u, 7u, 8u, 12u, 13u, 16u, 21u, 31u, 32u, 33u, 64u, 100u})
    machines.push_back({n, n});
  double closest_steps = 0, closest_bytes = 0;
  for (const Machine& machine : machines) {
    const Layout layout = Layout::regular(machine.ranks, machine.per_node);
    const Rank n = machine.ranks;
    // Every part of a part has a whole number of elements.
    const Count block = 2 * std::bit_floor(n) * (machine.per_node == n ? 1 : machine.per_node);
    const Count length = a.kind == barrier ? 0 : counts_blocks(a.kind) ? block : n * block;
    for (const Rank root : {0u, (n + 1) / 3}) {
      const Call c{.kind = a.kind,
                   .count = length,
                   .root = root,
                   .counts = alike,
                   .table = reinterpret_cast<const void*>(std::uintptr_t(length))};
      const View v = layout.view(0);
      if (!a.can(c, v) || (root > 0 && !has_root(a.kind))) continue;
      const std::map<char, double> variables = {{'n', n},
                                                {'g', machine.per_node},
                                                {'k', n / machine.per_node},
                                                {'x', v.columns},
                                                {'y', n / v.columns},
                                                {'p', std::bit_floor(n)},
                                                {'b', double(block)},
                                                {'V', double(n * block)}};
      const Counted counted = count(a, c, layout);
      CAPTURE(n);
      CAPTURE(machine.per_node);
      CAPTURE(root);
      const auto hold = [](double found, const Stated& due, double& closest) {
        if (due.bound) {
          CHECK(found <= due.value * 1.000001);
          if (due.value > 0) closest = std::max(closest, found / due.value);
        } else {
          CHECK(found == doctest::Approx(due.value));
          closest = 1;
        }
      };
      hold(double(counted.steps), stated(a.steps, variables), closest_steps);
      hold(double(counted.elements), stated(a.bytes, variables), closest_bytes);
    }
  }
  CHECK(closest_steps > 0.8);
  CHECK(closest_bytes > 0.8);
}

TEST_CASE("every row names its source, and its schedule takes the steps and sends the bytes that it states") {
  for (const Algorithm& a : algorithms()) check_stated(a);
}

TEST_CASE("what formulas mean") {
  const std::map<char, double> six = {{'n', 6}, {'V', 100}}, eight = {{'n', 8}, {'V', 100}};
  CHECK(Formula("2 (n-1)/n V", eight).value() == 175);
  CHECK(Formula("(floor(log2 n) + 1) V - 3/2", six).value() == 300 - 1.5);
  CHECK(stated("log2 n; other n: at most ceil(log2 n) + 2", eight).value == 3);
  CHECK(stated("log2 n; other n: at most ceil(log2 n) + 2", six).value == 5);
  CHECK(stated("log2 n; other n: at most ceil(log2 n) + 2", six).bound);
  CHECK(stated("n/2; odd n: n-1", six).value == 3);
  for (const char* wrong : {"", "2 (n", "n + ", "2 q", "n) 2"}) CHECK_THROWS(Formula(wrong, six).value());
}

TEST_CASE("the algorithm that README shows is the library's") {
  const std::string page = read_text(kRoot / "README.md");
  const std::size_t begin = page.find("```cpp\nSchedule") + 7, end = page.find("```\n", begin);
  REQUIRE(begin < end);
  CHECK(read_text(kRoot / "libgccl/algorithms/parts/ring.cpp").find(page.substr(begin, end - begin)) !=
        std::string::npos);
}

TEST_CASE("the worked example of docs/algorithms.md is an algorithm like any other") {
  const Algorithm& example = allgather_exchange;
  check_stated(example);
  const std::vector<Tally> tallies = sweep({.quick = true}, {&example, 1});
  REQUIRE(tallies.size() == 1);
  INFO((tallies[0].failure ? tallies[0].failure->text : std::string()));
  CHECK(tallies[0].proved());
  CHECK(tallies[0].unfit > 0);
  CHECK(sim::wrong_cost(example).value_or("") == "");
  CHECK(read_text(kRoot / "docs/algorithms.md")
            .find("```cpp\n" + read_text(kRoot / "examples/algorithm/exchange.cpp") + "```\n") != std::string::npos);
}

}  // namespace algorithms_stated
