// Tuning tables: which entry a call finds, which entries overlap, which machines a table is for.
#include "libgccl/select/tuning_table.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "libgccl/base/splitmix.hpp"

using namespace gccl;

namespace {

const Algorithm* row(Collective kind) {
  for (const Algorithm& a : algorithms())
    if (a.kind == kind) return &a;
  return nullptr;
}

// By the definition, entry by entry.
const TuningTable::Entry* scanned(const TuningTable& t, Collective kind, Rank ranks, Rank nodes, Count bytes) {
  for (const TuningTable::Entry& e : t.entries)
    if (e.algorithm->kind == kind && ranks >= e.ranks_min && ranks <= e.ranks_max && nodes >= e.nodes_min &&
        nodes <= e.nodes_max && bytes >= e.from_bytes &&
        (bytes < e.to_bytes || e.to_bytes == TuningTable::Entry::kNoEnd))
      return &e;
  return nullptr;
}

TuningTable of(std::vector<TuningTable::Entry> entries) {
  return {.file = "t.json",
          .name = "t",
          .machine = {.cluster = "c", .nodes = 8, .cards_per_node = 8},
          .entries = std::move(entries)};
}

}  // namespace

TEST_CASE("a prepared table finds what a scan of all entries finds, and overlaps are found as by all pairs") {
  constexpr std::uint64_t kSeed = 12;
  CAPTURE(kSeed);
  std::uint64_t state = kSeed;
  const auto below = [&](std::uint64_t n) { return splitmix::hash(state++) % n; };
  std::size_t found = 0, disjoint = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<TuningTable::Entry> entries;
    const std::size_t wanted = 1 + below(12);
    std::size_t overlaps = 0;
    while (entries.size() < wanted) {
      TuningTable::Entry e{.algorithm = row(below(2) ? Collective::allreduce : Collective::barrier)};
      e.ranks_min = Rank(1 + below(6));
      e.ranks_max = Rank(e.ranks_min + below(3));
      e.nodes_min = Rank(1 + below(3));
      e.nodes_max = Rank(e.nodes_min + below(2));
      e.from_bytes = below(16);
      e.to_bytes = below(5) ? e.from_bytes + 1 + below(6) : TuningTable::Entry::kNoEnd;
      entries.push_back(e);
    }
    for (std::size_t i = 0; i < wanted; ++i)
      for (std::size_t j = 0; j < i; ++j) {
        const auto meets = [&](const auto& a, const auto& b) {  // some call is about both
          for (Rank ranks = 1; ranks < 10; ++ranks)
            for (Rank nodes = 1; nodes < 6; ++nodes)
              for (Count bytes : {a.from_bytes, b.from_bytes})
                if (scanned(of({a}), a.algorithm->kind, ranks, nodes, bytes) &&
                    scanned(of({b}), a.algorithm->kind, ranks, nodes, bytes))
                  return true;
          return false;
        };
        overlaps += meets(entries[i], entries[j]);
      }
    const auto [later, earlier] = overlapping(entries);
    REQUIRE((later != nullptr) == (overlaps > 0));
    if (later) {
      REQUIRE(later > earlier);
      continue;
    }
    ++disjoint;
    const TuningTable table = of(entries);
    for (Rank ranks = 1; ranks < 10; ++ranks)
      for (Rank nodes = 1; nodes < 6; ++nodes) {
        const PreparedTable prepared(table, ranks, nodes);
        for (const Collective kind : {Collective::allreduce, Collective::barrier, Collective::reduce})
          for (const Count bytes : {0ull, 1ull, 5ull, 15ull, 16ull, 21ull, 1ull << 40, ~0ull}) {
            const auto* const due = scanned(table, kind, ranks, nodes, bytes);
            REQUIRE(prepared.find(kind, bytes) == due);
            found += due != nullptr;
          }
      }
  }
  CHECK(disjoint > 50);
  CHECK(found > 500);
  CHECK(PreparedTable().find(Collective::allreduce, 1) == nullptr);
}

TEST_CASE("a table of another machine is refused, and a job may be a part of its machine") {
  TuningTable t = of({{.algorithm = row(Collective::allreduce), .protocol = "LL"}});
  t.machine.backends = "shm,tcp";
  const TunedMachine fits{.nodes = 8, .ranks_per_node = 8, .backends = "shm,tcp", .protocols = {"LL", "Simple"}};
  const auto refused = [&](const auto& change) {
    TunedMachine here = fits;
    change(here);
    return check_machine(t, here).text();
  };
  CHECK(refused([](auto&) {}) == "");
  CHECK(refused([](auto& m) { m.nodes = 2, m.ranks_per_node = 1; }) == "");
  CHECK(refused([](auto& m) { m.cluster = "c"; }) == "");
  CHECK(refused([](auto& m) { m.cluster = "d"; }) == "t.json: /machine/cluster: the table is for \"c\", this is \"d\"");
  CHECK(refused([](auto& m) { m.nodes = 9; }) ==
        "t.json: /machine/nodes: found 8, but this job has 9: the table is for another machine");
  CHECK(
      refused([](auto& m) { m.ranks_per_node = 9; }) ==
      "t.json: /machine/cards_per_node: found 8, but a node of this job has 9 ranks: the table is for another machine");
  CHECK(refused([](auto& m) { m.backends = "tcp"; }) ==
        "t.json: /machine/backends: the table is for \"shm,tcp\", this machine has \"tcp\"");
  CHECK(refused([](auto& m) { m.protocols = {"LX"}; }) ==
        "t.json: /entries/0/protocol: found \"LL\"; did you mean \"LX\"?");
  CHECK(refused([](auto& m) { m.protocols = {}; }) ==
        "t.json: /entries/0/protocol: found \"LL\", but here calls have no protocols to choose from: leave it out");
}
