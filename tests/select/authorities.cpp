// Who decides on an algorithm: GCCL_ALGORITHM, then GCCL_ALGO, then a tuning table, then the planner's own rules.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "libgccl/schedule/layout.hpp"
#include "libgccl/select/plan.hpp"
#include "libgccl/select/reason.hpp"

using namespace gccl;

namespace {

AlgorithmLists lists_of(const std::string& text) {
  AlgorithmLists lists;
  const Status s = AlgorithmLists::parse(text, &lists);
  CHECK_MESSAGE(s.ok(), s.text());
  return lists;
}

std::string refused(const std::string& text) {
  AlgorithmLists lists;
  return AlgorithmLists::parse(text, &lists).text();
}

const Algorithm* allreduce(std::string_view name) { return find_algorithm(Collective::allreduce, name); }

struct Ranks {
  Layout layout;
  CostModel model;
  explicit Ranks(Rank n) : layout(Layout::flat(n)) {
    model.node = model.net = model.net_all = {.alpha_ns = 1000, .beta_ns_per_byte = .1};
  }
  Plan plan(Count bytes, const Authorities& a, Collective kind = Collective::allreduce) const {
    return gccl::plan({.kind = kind, .count = bytes}, layout.view(0), model, {}, a.on(layout.ranks(), 1));
  }
};

Authorities with_table(std::vector<TuningTable::Entry> entries) {
  Authorities a;
  a.table =
      std::make_shared<const TuningTable>(TuningTable{.file = "t.json",
                                                      .name = "t",
                                                      .machine = {.cluster = "c", .nodes = 1, .cards_per_node = 64},
                                                      .entries = std::move(entries)});
  return a;
}

}  // namespace

TEST_CASE("GCCL_ALGO is read as NCCL's documentation describes NCCL_ALGO") {
  // Lists for all, for one collective, exclusions; capital letters and underscores make no difference.
  CHECK(lists_of("").text() == "");
  CHECK(lists_of("allreduce:ring").text() == "allreduce:ring");
  CHECK(lists_of("AllReduce:Ring").text() == "allreduce:ring");
  CHECK(lists_of("allreduce:NVLSTree").text() == "allreduce:nvls_tree");
  CHECK(lists_of("reducescatter:ring;").text() == "reduce_scatter:ring");
  CHECK(lists_of(" allreduce : ring , swing ").text() == lists_of("allreduce:swing,ring").text());
  CHECK(lists_of("broadcast:ring").text() == "broadcast:chain");  // NCCL's word for it
  CHECK(lists_of("allreduce:hierarchical(ring,swing),ring").text() ==
        lists_of("allreduce:ring,hierarchical(ring,swing)").text());
  CHECK(lists_of("allreduce:0-64KiB:tree;allreduce:64KiB-:^tree").text() ==
        "allreduce:0-65536:tree;allreduce:65536-:^tree");
  // A collective's own list goes before that for all, wherever they stand.
  for (const char* const text : {"ring;allreduce:swing", "allreduce:swing;ring"}) {
    const AlgorithmLists lists = lists_of(text);
    CHECK(lists.of(Collective::allreduce, 0)->rows[0] == allreduce("swing"));
    CHECK(lists.of(Collective::allgather, 0)->rows[0]->name == "ring");
    CHECK(lists.of(Collective::reduce, 0)->rows[0]->name == "chain");
    CHECK(lists.of(Collective::barrier, 0) == nullptr);  // has none of them
  }
  const AlgorithmLists sized = lists_of("allreduce:1KiB-2KiB:ring;^bruck");
  CHECK(sized.of(Collective::allreduce, 1023) == nullptr);
  CHECK(sized.of(Collective::allreduce, 1024) != nullptr);
  CHECK(sized.of(Collective::allreduce, 2048) == nullptr);
  CHECK(sized.of(Collective::alltoall, 5)->forbids(*find_algorithm(Collective::alltoall, "bruck")));
  CHECK(!sized.of(Collective::alltoall, 5)->forbids(*find_algorithm(Collective::alltoall, "pairwise")));
}

TEST_CASE("what cannot be right in GCCL_ALGO says what, where and the nearest name") {
  const std::pair<const char*, const char*> kCases[] = {
      {"rink\n\x1b[2J", "GCCL_ALGO \"rink??[2J\": there is no algorithm \"rink??[2J\""},
      {"rink", "GCCL_ALGO \"rink\": there is no algorithm \"rink\"; did you mean \"ring\"?"},
      {"allreduce:rink", "there is no algorithm \"rink\" for allreduce; did you mean \"ring\"?"},
      {"alreduce:ring", "there is no collective \"alreduce\"; did you mean \"allreduce\"?"},
      {"allreduce:ring;allreduce:tree", "two lists are about allreduce of the same sizes"},
      {"ring;tree;^direct", "two lists are about"},
      {"allreduce:0-8:ring;allreduce:7-:tree", "two lists are about allreduce of the same sizes"},
      {"allreduce:8-8:ring", "\"8-8\" ends before it begins"},
      {"allreduce:1x-8:ring", "\"1x\" is no size; write 8, 64KiB, 1.5GB ..."},
      {"allreduce:8:ring", "\"8\" is no range of sizes, expected FROM-TO such as 0-64KiB"},
      {"allreduce:a-b:0-8:ring", "has more than COLLECTIVE:SIZES:NAMES"},
      {"allreduce:ring,", "\"allreduce:ring,\" lacks the name of an algorithm"},
      {"allreduce:", "lacks the name of an algorithm"},
      {"allreduce:ring,^tree", "^ belongs before the first name, and excludes them all"},
      {"sendrecv:^direct", "\"sendrecv:^direct\" leaves no algorithm"},
  };
  for (const auto& refusal : kCases) {
    CAPTURE(refusal.first);
    const std::string found = refused(refusal.first);
    CAPTURE(found);
    CHECK(found.find(refusal.second) != std::string::npos);
  }
}

TEST_CASE("GCCL_ALGORITHM goes before GCCL_ALGO, that before a table, and a table before the model") {
  const Ranks eight(8);
  const Plan free = eight.plan(1 << 20, {});
  CHECK(free.by == Authority::model);
  REQUIRE(free.second);
  CHECK(free.second != free.algorithm);
  CHECK(free.second_ns >= free.predicted_ns);

  // Something that the model would not take.
  const Algorithm* const other = allreduce("binomial_tree");
  REQUIRE(free.algorithm != other);
  REQUIRE(free.second != other);
  Authorities a = with_table({{.ranks_max = 8, .algorithm = other, .chunks = 4, .channels = 2, .window = 5},
                              {.ranks_min = 9, .from_bytes = 64, .algorithm = other}});
  Plan p = eight.plan(1 << 20, a);
  CHECK(p.algorithm == other);
  CHECK(p.slicing == Slicing{.shares = 4, .lanes = 2, .window = 5});
  CHECK(p.by == Authority::table);
  CHECK(reason_of(p, a) == "by GCCL_TUNING_FILE (t.json: /entries/0)");
  // Where no entry is about the call the model decides.
  CHECK(Ranks(9).plan(63, a).by == Authority::model);
  CHECK(Ranks(9).plan(64, a).by == Authority::table);
  CHECK(eight.plan(1 << 20, a, Collective::broadcast).by == Authority::model);

  a.lists = lists_of("allreduce:ring");
  p = eight.plan(1 << 20, a);
  CHECK(p.algorithm == allreduce("ring"));
  CHECK(p.by == Authority::lists);
  CHECK(reason_of(p, a) == "by GCCL_ALGO");
  a.lists = lists_of("^binomial_tree");
  p = eight.plan(1 << 20, a);
  CHECK(p.algorithm == free.algorithm);
  CHECK(p.by == Authority::model);
  CHECK(reason_of(p, a).ends_with(", among what GCCL_ALGO allows"));
  a.lists = lists_of("ring,binomial_tree");  // allows what the table says
  p = eight.plan(1 << 20, a);
  CHECK(p.algorithm == other);
  CHECK(p.by == Authority::table);
  CHECK(p.limited);

  REQUIRE(Overrides::parse("allreduce=swing", &a.named).ok());
  p = eight.plan(1 << 20, a);
  CHECK(p.algorithm == allreduce("swing"));
  CHECK(p.by == Authority::named);
}

TEST_CASE("a list leaves out what it excludes, and offers a variant that it names") {
  const Ranks eight(8);
  const Plan free = eight.plan(1 << 20, {});
  Authorities a;
  a.lists = lists_of("allreduce:^" + std::string(free.algorithm->name));
  const Plan p = eight.plan(1 << 20, a);
  CHECK(p.algorithm == free.second);
  CHECK(!p.algorithm->variant);
  for (const Algorithm& row : algorithms()) {
    if (row.kind != Collective::allreduce || !row.can({.kind = row.kind, .count = 1 << 20}, eight.layout.view(0)))
      continue;
    a.lists = lists_of("allreduce:" + std::string(row.name));
    CHECK(eight.plan(1 << 20, a).algorithm == &row);
    a.lists = lists_of("allreduce:^" + std::string(row.name));
    CHECK(eight.plan(1 << 20, a).algorithm != &row);
  }
}

TEST_CASE("what is asked for and cannot serve a call is reported, and the next authority decides") {
  const Ranks many(1000);
  const Algorithm* unable = nullptr;
  for (const Algorithm& row : algorithms())
    if (row.kind == Collective::allreduce && !row.can({.kind = row.kind, .count = 64}, many.layout.view(0)))
      unable = &row;
  REQUIRE(unable);
  const Plan free = many.plan(64, {});
  Authorities a;
  REQUIRE(Overrides::parse("allreduce=" + std::string(unable->name), &a.named).ok());
  Plan p = many.plan(64, a);
  CHECK(p.algorithm == free.algorithm);
  CHECK(p.refused == unable);
  CHECK(p.refused_by == Authority::named);
  a = with_table({{.algorithm = unable}});
  p = many.plan(64, a);
  CHECK(p.algorithm == free.algorithm);
  CHECK(p.by == Authority::model);
  CHECK(p.refused == unable);
  CHECK(p.refused_by == Authority::table);
  a = {};
  a.lists = lists_of("allreduce:" + std::string(unable->name));
  p = many.plan(64, a);
  CHECK(p.algorithm == free.algorithm);
  CHECK(p.refused_by == Authority::lists);
}

TEST_CASE("a table's protocol is taken where the machine has it, else the entry does not count") {
  const Ranks eight(8);
  std::vector<CostModel> models(2, eight.model);
  models[0].protocol.name = "LL";
  models[1].protocol.name = "Simple";
  models[1].protocol.operation_ns = 1e6;  // never chosen
  const auto planned = [&](TuningTable::Entry e) {
    return plan({.kind = Collective::allreduce, .count = 64}, eight.layout.view(0), models, {},
                with_table({std::move(e)}).on(8, 1));
  };
  CHECK(planned({.algorithm = allreduce("ring")}).protocol == 0);
  CHECK(planned({.algorithm = allreduce("ring"), .protocol = "Simple"}).protocol == 1);
  CHECK(planned({.algorithm = allreduce("ring"), .protocol = "Simple", .chunks = 2, .channels = 1}).protocol == 1);
  CHECK(planned({.algorithm = allreduce("ring"), .protocol = "LL128"}).by == Authority::model);
}
