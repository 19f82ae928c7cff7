// Layout: the views of every rank against their definition, computed the slow way.
#include "libgccl/schedule/layout.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

#include "libgccl/algorithms/parts/turns.hpp"
#include "libgccl/schedule/region.hpp"

using namespace gccl;

namespace {

// The definition in group.hpp, rank lists written out.
struct Expected {
  std::vector<std::vector<Rank>> nodes;  // nodes ordered by their lowest rank
  std::size_t rails = 0, fullest = 0;

  explicit Expected(const std::vector<Rank>& node_of) {
    std::vector<Rank> names;
    for (Rank r = 0; r < node_of.size(); ++r) {
      std::size_t k = std::size_t(std::find(names.begin(), names.end(), node_of[r]) - names.begin());
      if (k == names.size()) {
        names.push_back(node_of[r]);
        nodes.emplace_back();
      }
      nodes[k].push_back(r);
    }
    rails = node_of.size();
    for (const auto& members : nodes) {
      rails = std::min(rails, members.size());
      fullest = std::max(fullest, members.size());
    }
  }
};

std::vector<Rank> members(const Group& g) {
  std::vector<Rank> all;
  for (Rank i = 0; i < g.size; ++i) all.push_back(g[i]);
  return all;
}

void check_layout(const Layout& layout, const std::vector<Rank>& node_of) {
  const Expected e(node_of);
  const Rank n = Rank(node_of.size());
  REQUIRE(layout.ranks() == n);
  for (Rank k = 0; k < e.nodes.size(); ++k) {
    for (Rank place = 0; place < e.nodes[k].size(); ++place) {
      const Rank r = e.nodes[k][place];
      const View v = layout.view(r);
      CAPTURE(n);
      CAPTURE(r);
      CHECK(v.nodes == e.nodes.size());
      CHECK(v.rails == e.rails);
      CHECK(v.fullest == e.fullest);
      CHECK(v.uniform() ==
            std::all_of(e.nodes.begin(), e.nodes.end(), [&](const auto& m) { return m.size() == e.nodes[0].size(); }));
      CHECK(v.all.size == n);
      CHECK(v.all.rank == r);
      for (Rank i = 0; i < n; ++i) CHECK(v.all[i] == i);
      CHECK(v.node.rank == place);
      CHECK(members(v.node) == e.nodes[k]);
      if (place >= e.rails) {
        CHECK(v.rail.size == 0);
        continue;
      }
      std::vector<Rank> rail;
      for (const auto& node : e.nodes) rail.push_back(node[place]);
      CHECK(v.rail.rank == k);
      CHECK(members(v.rail) == rail);
    }
  }
}

}  // namespace

TEST_CASE("regular layouts give the views of their definition, the last node may be smaller") {
  for (Rank n = 1; n <= 24; ++n) {
    for (Rank per_node = 1; per_node <= n + 2; ++per_node) {
      std::vector<Rank> node_of(n);
      for (Rank r = 0; r < n; ++r) node_of[r] = r / per_node;
      check_layout(Layout::regular(n, per_node), node_of);
      check_layout(Layout::of(node_of), node_of);
    }
    check_layout(Layout::flat(n), std::vector<Rank>(n, 0));
  }
}

TEST_CASE("any placement gives the views of its definition") {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const Rank n = 1 + random() % 40, nodes = 1 + random() % 9;
    std::vector<Rank> node_of(n);
    for (Rank& node : node_of) node = 4000000000u - random() % nodes;
    check_layout(Layout::of(node_of), node_of);
  }
  // Round robin, as some launchers place ranks.
  std::vector<Rank> node_of(12);
  for (Rank r = 0; r < 12; ++r) node_of[r] = r % 4;
  check_layout(Layout::of(node_of), node_of);
}

TEST_CASE("an empty communicator has a layout") {
  CHECK(Layout::flat(0).ranks() == 0);
  CHECK(Layout::of({}).ranks() == 0);
}

TEST_CASE("in each step of an all-to-all a rank gets one message at most, and all stay on their node or all leave it") {
  // `by_node`: whether nodes turn.
  const auto check = [](const Layout& layout, bool by_node, Rank steps) {
    const Rank n = layout.ranks();
    CAPTURE(n);
    std::vector<std::set<Rank>> met(n);
    for (Rank s = 0; s < steps; ++s) {
      std::set<Rank> targets;
      for (Rank r = 0; r < n; ++r) {
        const Turns turns(layout.view(r));
        CHECK(turns.steps() == steps);
        const auto [to, from] = turns[s];
        if (s == 0) CHECK((to == r && from == r));
        if (to == r) continue;  // nobody
        CHECK(targets.insert(to).second);
        CHECK(met[r].insert(to).second);
        CHECK(Turns(layout.view(to))[s].from == r);
        const View mine = layout.view(r), theirs = layout.view(to);
        if (by_node) CHECK((mine.rail.rank == theirs.rail.rank) == (s % mine.nodes == 0));
      }
      std::size_t sources = 0;
      for (Rank r = 0; r < n; ++r) sources += Turns(layout.view(r))[s].from != r;
      CHECK(sources == targets.size());
    }
    for (const auto& m : met) CHECK(m.size() == n - 1);
  };
  const auto nodes = [](std::initializer_list<Rank> sizes) {
    std::vector<Rank> node_of;
    Rank node = 0;
    for (const Rank size : sizes) node_of.insert(node_of.end(), size, node++);
    return Layout::of(node_of);
  };
  for (const Rank n : {1, 2, 7, 12}) check(Layout::flat(n), true, n);
  for (const Rank g : {1, 2, 3, 4, 6}) check(Layout::regular(12, g), true, 12);
  check(Layout::of(std::vector<Rank>{0, 1, 2, 0, 1, 2, 0, 1, 2}), false, 9);  // one after the other
  // Of different sizes, the last one alone and others.
  check(Layout::regular(11, 4), true, 12);
  check(Layout::regular(12, 8), true, 16);
  check(nodes({8, 6, 8, 7, 1}), true, 40);
  check(nodes({1, 3, 2}), true, 9);
  check(nodes({2, 4}), true, 8);
  // One of eight and many of one: seven of eight steps would have few messages.
  check(nodes({8, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}), false, 18);
}

TEST_CASE("groups are cyclic in both directions") {
  const Rank table[] = {9, 4, 7};
  const Group affine{.size = 5, .rank = 0, .first = 10, .stride = 3}, backed{.size = 3, .rank = 0, .table = table};
  for (std::int64_t i = -30; i <= 30; ++i) {
    CHECK(affine[i] == 10 + 3 * Rank(((i % 5) + 5) % 5));
    CHECK(backed[i] == table[((i % 3) + 3) % 3]);
  }
  CHECK(affine[std::int64_t(1) << 62] == 10 + 3 * Rank((std::int64_t(1) << 62) % 5));
  CHECK(affine[-(std::int64_t(1) << 62)] == 10 + 3 * Rank((5 - (std::int64_t(1) << 62) % 5) % 5));
}

TEST_CASE("the grid is the most square one, unless stated") {
  for (Rank n = 1; n <= 200; ++n) {
    const Rank columns = Layout::flat(n).view(0).columns;
    CHECK(n % columns == 0);
    CHECK(columns >= n / columns);
    for (Rank d = n / columns + 1; d < columns; ++d) CHECK(n % d != 0);
  }
  CHECK(Layout::flat(12).columns(6).view(3).columns == 6);
}

TEST_CASE("the parts of a region lie side by side, cover it, and differ by at most one element") {
  for (const Count base : {Count(0), Count(1) << 33}) {
    for (Count count = 0; count <= 40; ++count) {
      const Region whole{Buffer::output, 5, base + count};
      for (Count n = 1; n <= 20; ++n) {
        Count at = 5;
        for (Count i = 0; i < n; ++i) {
          const Region p = whole.part(i, n);
          CHECK(p.offset() == at);
          CHECK((p.count == whole.count / n || p.count == whole.count / n + 1));
          CHECK(whole.parts(0, i + 1, n) == Region{Buffer::output, 5, at + p.count - 5});
          at += p.count;
        }
        CHECK(at == 5 + whole.count);
        CHECK(whole.parts(n, 0, n).count == 0);
      }
    }
  }
}
