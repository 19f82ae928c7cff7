// The algorithms that reduce, and broadcast: steps and bytes as their headers state them, uneven machines, closed forms
// on machines of two levels, and the table that names them.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "libgccl/algorithms/parts/binary_tree.hpp"
#include "libgccl/algorithms/parts/halving.hpp"
#include "libgccl/verify/verify.hpp"

using namespace gccl;
using enum Collective;

namespace algorithms_reduce {

bool mine(const Algorithm& a) { return reduces(a.kind) || a.kind == broadcast; }

const Algorithm& algorithm(Collective kind, std::string_view name) {
  const Algorithm* a = find_algorithm(kind, name);
  REQUIRE(a);
  return *a;
}

// What one rank sends; far: to other nodes.
struct Sent {
  Count messages = 0, elements = 0, far_elements = 0;
};

Sent walk(const Algorithm& a, const Call& c, const Layout& layout, Rank rank, Rank per_node = ~0u) {
  Sent sent;
  Schedule s = a.make(c, layout.view(rank), {});
  while (const Step* step = s.next()) {
    if (step->op != Op::send || step->from.count == 0) continue;
    ++sent.messages;
    sent.elements += step->from.count;
    if (step->peer / per_node != rank / per_node) sent.far_elements += step->from.count;
  }
  return sent;
}

// Blocks of a reduce-scatter-v are all alike here: the table is their length itself.
Count alike(const void* count, Rank, Rank) { return Count(reinterpret_cast<std::uintptr_t>(count)); }

Call call_of(Collective kind, Count count, Rank root = 0) {
  return {.kind = kind,
          .count = count,
          .root = root,
          .counts = alike,
          .table = reinterpret_cast<const void*>(std::uintptr_t(count))};
}

Count ceil_log2(Count n) { return Count(std::bit_width(n - 1)); }

// Calls check(rank's position from the root, what it sends) for every rank.
template <class Check>
void for_each_rank(Collective kind, std::string_view name, Rank n, Count count, Rank root, Check check) {
  const Layout flat = Layout::flat(n);
  for (Rank r = 0; r < n; ++r) {
    CAPTURE(name);
    CAPTURE(n);
    CAPTURE(r);
    check((r + n - root) % n, walk(algorithm(kind, name), call_of(kind, count, root), flat, r));
  }
}

constexpr Rank kSizes[] = {2, 3, 4, 5, 6, 7, 8, 12, 16, 21, 31, 32, 33, 64, 100};

TEST_CASE("bandwidth-optimal all-reduces send 2 (n-1)/n of the vector from every rank, for every n") {
  for (const Rank n : kSizes) {
    const Count part = 6, whole = part * n;
    const bool power = std::has_single_bit(n);
    for_each_rank(allreduce, "ring", n, whole, 0, [&](Rank, Sent s) {
      CHECK(s.messages == 2 * (n - 1));
      CHECK(s.elements == 2 * (n - 1) * part);
    });
    for_each_rank(allreduce, "rabenseifner", n, whole, 0, [&](Rank, Sent s) {
      CHECK(s.messages <= (power ? 2 : 4) * ceil_log2(n));
      CHECK(s.messages >= 2 * ceil_log2(n));
      CHECK(s.elements == 2 * (n - 1) * part);
    });
    for_each_rank(allreduce, "torus2d", n, whole, 0, [&](Rank, Sent s) {
      const Rank x = Layout::flat(n).view(0).columns, y = n / x;
      CHECK(s.messages == 2 * (x - 1) + 2 * (y - 1));
      CHECK(s.elements == 2 * (n - 1) * part);
    });
    if (power)
      for_each_rank(allreduce, "swing", n, whole, 0, [&](Rank, Sent s) {
        CHECK(s.messages == 2 * ceil_log2(n));
        CHECK(s.elements == 2 * (n - 1) * part);
      });
  }
}

TEST_CASE("latency-optimal all-reduces take the fewest messages") {
  for (const Rank n : kSizes) {
    const Count whole = 10;
    const Rank folded = n - std::bit_floor(n), steps = Rank(std::bit_width(n)) - 1;
    for_each_rank(allreduce, "recursive_doubling", n, whole, 0, [&](Rank r, Sent s) {
      const Count due = r < 2 * folded ? (r % 2 == 0 ? 1 : steps + 1) : steps;
      CHECK(s.messages == due);
      CHECK(s.elements == due * whole);
    });
    Count messages = 0;
    for_each_rank(allreduce, "binomial_tree", n, whole, 0, [&](Rank u, Sent s) {
      messages += s.messages;
      if (u == 0) CHECK(s.messages == ceil_log2(n));
    });
    CHECK(messages == 2 * (n - 1));
  }
}

TEST_CASE("double binary trees send one vector up and half a vector to each child") {
  for (const Rank n : kSizes) {
    const Count half = 10;
    Count total = 0;
    for_each_rank(allreduce, "double_binary_tree", n, 2 * half, 0, [&](Rank, Sent s) {
      CHECK(s.elements <= 4 * half);
      total += s.elements;
    });
    CHECK(total == 4 * (n - 1) * half);
    total = 0;
    for_each_rank(broadcast, "double_binary_tree", n, 2 * half, n / 2, [&](Rank u, Sent s) {
      CHECK(s.elements <= 2 * half);
      if (u == 0) CHECK(s.elements == 2 * half);
      total += s.elements;
    });
    CHECK(total == 2 * (n - 1) * half);
  }
}

TEST_CASE("reduce-scatters send n-1 blocks from every rank") {
  for (const Rank n : kSizes) {
    const Count block = 5;
    for (const std::string_view name : {"ring", "pairwise"})
      for_each_rank(reduce_scatter, name, n, block, 0, [&](Rank, Sent s) {
        CHECK(s.messages == n - 1);
        CHECK(s.elements == (n - 1) * block);
      });
    for_each_rank(reduce_scatter, "recursive_halving", n, block, 0, [&](Rank, Sent s) {
      CHECK(s.messages <= (std::has_single_bit(n) ? 1 : 2) * ceil_log2(n));
      CHECK(s.messages >= ceil_log2(n));
      CHECK(s.elements == (n - 1) * block);
    });
    const View v = Layout::flat(n).view(0);
    const Call c = call_of(reduce_scatter, block);
    CHECK(algorithm(reduce_scatter, "ring").scratch_count(c, v, {}) <= 8 * block);
    CHECK(algorithm(reduce_scatter, "pairwise").scratch_count(c, v, {}) == 0);
    CHECK(algorithm(reduce_scatter, "recursive_halving").scratch_count(c, v, {}) == n * block);
  }
}

TEST_CASE("reduces send at most one vector, Rabenseifner's at most 2 (n-1)/n of it") {
  for (const Rank n : kSizes) {
    const Count part = 4, whole = part * n;
    const Rank root = n / 3;
    for (const std::string_view name : {"binomial", "chain"})
      for_each_rank(Collective::reduce, name, n, whole, root, [&](Rank u, Sent s) {
        CHECK(s.messages == (u > 0));
        CHECK(s.elements == (u > 0 ? whole : 0));
      });
    for_each_rank(Collective::reduce, "rabenseifner", n, whole, root, [&](Rank u, Sent s) {
      CHECK(s.messages <= (std::has_single_bit(n) ? 1 : 2) * ceil_log2(n) + 1);
      CHECK(s.elements >= (n - 1) * part);
      CHECK(s.elements <= 2 * (n - 1) * part);
      if (u == 0) CHECK(s.elements == (n - 1) * part);
    });
  }
}

TEST_CASE(
    "broadcasts send n-1 vectors by a tree, one from rank to rank by a chain, and two from the root by "
    "scatter_allgather") {
  for (const Rank n : kSizes) {
    const Count part = 4, whole = part * n;
    const Rank root = n - 1;
    Count messages = 0;
    for_each_rank(broadcast, "binomial", n, whole, root, [&](Rank u, Sent s) {
      messages += s.messages;
      CHECK(s.elements == s.messages * whole);
      if (u == 0) CHECK(s.messages == ceil_log2(n));
    });
    CHECK(messages == n - 1);
    for_each_rank(broadcast, "chain", n, whole, root, [&](Rank u, Sent s) { CHECK(s.messages == (u + 1 < n)); });
    for_each_rank(broadcast, "scatter_allgather", n, whole, root, [&](Rank u, Sent s) {
      if (u == 0) CHECK(s.messages == ceil_log2(n) + n - 1);
      if (u == 0) CHECK(s.elements == 2 * (n - 1) * part);
      if (u > 0) CHECK(2 * s.elements <= 3 * whole);
    });
  }
}

TEST_CASE("the hierarchical all-reduce sends as much across nodes as the nodes alone would, whatever its parts") {
  const Rank p = 4, k = 8;
  const Layout layout = Layout::regular(p * k, p);
  const Count whole = 96 * p * k;
  for (const Algorithm& a : algorithms()) {
    if (a.kind != allreduce || !a.name.starts_with("hierarchical")) continue;
    CAPTURE(a.name);
    const bool optimal = a.name.find("doubling)") == a.name.npos && a.name.find("tree)") == a.name.npos;
    Count across = 0;
    for (Rank r = 0; r < p * k; ++r) {
      const Sent s = walk(a, call_of(allreduce, whole), layout, r, p);
      if (optimal) CHECK(s.elements == 2 * whole * (p * k - 1) / (p * k));
      if (optimal) CHECK(s.far_elements == 2 * (k - 1) * whole / (p * k));
      if (a.name == "hierarchical") CHECK(s.messages == 2 * (p - 1) + 2 * ceil_log2(k));
      across += s.far_elements;
    }
    const Count vectors = a.name.find("recursive_doubling)") != a.name.npos ? k * ceil_log2(k) : 2 * (k - 1);
    CHECK(across == vectors * whole);
  }
}

TEST_CASE("Rabenseifner's largest exchanges stay between neighbours when the ranks are a power of two") {
  const Rank n = 64;
  const Layout layout = Layout::regular(n, 8);
  const Count whole = n * 10;
  for (Rank r = 0; r < n; ++r)  // of the 63/64 sent each way, 7/8 stay inside nodes of 8
    CHECK(walk(algorithm(allreduce, "rabenseifner"), call_of(allreduce, whole), layout, r, 8).far_elements ==
          2 * (whole / 8 - whole / 64));
}

TEST_CASE("every algorithm is right on nodes of different sizes in any order") {
  const std::vector<std::vector<Rank>> machines = {{1},          {1, 1},    {3, 1},      {1, 5, 3},
                                                   {2, 7, 4, 3}, {8, 8, 5}, {5, 5, 5, 5}};
  for (std::size_t i = 0; i < machines.size(); ++i) {
    std::vector<Rank> node_of;
    for (Rank k = 0; k < machines[i].size(); ++k) node_of.insert(node_of.end(), machines[i][k], k);
    std::shuffle(node_of.begin(), node_of.end(), std::mt19937(unsigned(i)));
    const auto layout = std::make_shared<Layout>(Layout::of(node_of));
    const Count n = node_of.size();
    std::uint64_t seed = 0;
    for (const Algorithm& a : algorithms()) {
      if (!mine(a)) continue;
      for (const Count count : {Count(0), Count(1), n - 1, Count(97)})
        for (const auto& [window, delivery] : {std::pair{1u, Delivery::buffered}, {2u, Delivery::rendezvous}}) {
          Case c;
          c.algorithm = &a;
          c.call = call_of(a.kind, count, Rank(seed % n));
          c.call.in_place = seed % 3 == 0;
          c.layout = layout;
          c.layout_name = "uneven " + std::to_string(i);
          c.shares = 1 + seed % 3;
          c.lanes = 1 + seed % 2;
          c.window = window;
          c.delivery = delivery;
          c.seed = ++seed;
          if (!a.can(c.call, layout->view(0))) continue;
          const std::optional<Counterexample> failure = verify(c);
          INFO((failure ? failure->text : std::string()));
          CHECK(!failure);
        }
    }
  }
}

TEST_CASE("both binary trees span all places, are shallow, and no place has children in both") {
  for (Rank n = 1; n <= 300; ++n) {
    CAPTURE(n);
    std::vector<int> trees_with_children(n + 1, 0);
    for (const auto tree : {first_tree, second_tree}) {
      Rank roots = 0, deepest = 0, children = 0;
      for (Rank x = 1; x <= n; ++x) {
        const TreePlace t = tree(x, n);
        roots += t.parent == 0;
        trees_with_children[x] += !t.leaf();
        for (const Rank child : {t.left, t.right}) {
          if (!child) continue;
          REQUIRE(child <= n);
          CHECK(tree(child, n).parent == x);
          ++children;
        }
        Rank depth = 0;
        for (Rank up = t.parent; up && depth <= n; up = tree(up, n).parent) ++depth;
        deepest = std::max(deepest, depth);
      }
      CHECK(roots == 1);
      CHECK(children == n - 1);
      CHECK(deepest <= Rank(std::bit_width(n)) - 1);
    }
    CHECK(*std::max_element(trees_with_children.begin(), trees_with_children.end()) <= 1);
  }
}

TEST_CASE("closed forms are the sums of what their steps cost inside nodes and across") {
  const Layout layout = Layout::regular(32, 4);
  const View v = layout.view(0);
  CostModel m;
  m.node = {1000, 0.004};
  m.net = {5000, 0.02};
  m.net_all = {5000, 0.08};
  m.combine_ns_per_byte = 0.001;
  m.element_bytes = 4;
  const Count count = 1 << 20;
  const double bytes = 4.0 * double(count);
  const auto cost = [&](std::string_view name) {
    return algorithm(allreduce, name).cost(call_of(allreduce, count), v, m);
  };
  const double inside = 6 * 1000 + 2 * (0.75 * bytes * 0.004) + 0.75 * bytes * 0.001;
  const double across = 6 * 5000 + 2 * (0.875 * bytes / 4 * 0.08) + 0.875 * bytes / 4 * 0.001;
  CHECK(cost("hierarchical") == doctest::Approx(inside + across));
  // A quarter of the ring's hops lead to another node.
  const double hop = (5000 + bytes / 32 * 0.02) / 4 + (1000 + bytes / 32 * 0.004) * 3 / 4;
  CHECK(cost("ring") == doctest::Approx(62 * hop + 31 * bytes / 32 * 0.001));
  CHECK(cost("recursive_doubling") ==
        doctest::Approx(2 * (1000 + bytes * 0.004) + 3 * (5000 + bytes * 0.08) + 5 * bytes * 0.001));
  CHECK(cost("binomial_tree") ==
        doctest::Approx(4 * (1000 + bytes * 0.004) + 6 * (5000 + bytes * 0.02) + 5 * bytes * 0.001));
  const double near = bytes / 2 * 0.004 + bytes / 4 * 0.004, far = bytes * (0.125 + 0.0625 + 0.03125) * 0.08;
  CHECK(cost("rabenseifner") == doctest::Approx(2 * (2 * 1000 + 3 * 5000 + near + far) + bytes * 31 / 32 * 0.001));
}

TEST_CASE("closed forms are finite and positive on any machine, and free where nothing moves") {
  CostModel m;
  m.node = {1000, 0.004};
  m.net = m.net_all = {5000, 0.02};
  m.copy_ns_per_byte = 0.001;
  m.element_bytes = 4;
  for (const Algorithm& a : algorithms()) {
    if (!mine(a)) continue;
    CAPTURE(a.name);
    for (const Rank n : {1u, 2u, 3u, 7u, 30u, 257u})
      for (const Rank per_node : {1u, 4u, 8u}) {
        const Layout layout = Layout::regular(n, per_node);
        for (const Rank r : {Rank(0), n - 1}) {
          CHECK(a.cost(call_of(a.kind, 0), layout.view(r), m) == 0);
          const Cost t = a.cost(call_of(a.kind, 1000), layout.view(r), m);
          CHECK(std::isfinite(t));
          CHECK(t > 0);
        }
      }
    Call in_place = call_of(a.kind, 1000);
    in_place.in_place = true;
    CHECK(a.cost(in_place, Layout::flat(1).view(0), m) == 0);
  }
}

TEST_CASE("the table names each algorithm once and finds it") {
  std::set<std::pair<Collective, std::string_view>> names;
  Count variants = 0;
  for (const Algorithm& a : algorithms()) {
    CAPTURE(a.name);
    CHECK(names.emplace(a.kind, a.name).second);
    CHECK(find_algorithm(a.kind, a.name) == &a);
    variants += a.kind == allreduce && a.variant;
  }
  CHECK(variants == 18);
  CHECK(find_algorithm(allreduce, "hierarchical(pairwise,rabenseifner)")->variant);
  CHECK(!find_algorithm(allreduce, "hierarchical")->variant);
  CHECK(find_algorithm(allreduce, "bruck") == nullptr);
  CHECK(find_algorithm(Collective::reduce, "ring") == nullptr);
  CHECK(find_algorithm(allreduce, "") == nullptr);
}

TEST_CASE("direct algorithms send the whole vector to each peer, pairwise all-reduces a part of it twice") {
  for (const Rank n : kSizes) {
    const Count whole = 6 * n;
    if (n <= 32)
      for_each_rank(allreduce, "direct", n, whole, 0, [&](Rank r, Sent s) {
        CHECK(s.messages == n - 1);
        CHECK(s.elements == (n - 1) * whole);
        Call c = call_of(allreduce, whole);
        const View v = Layout::flat(n).view(r);
        const Count early = r > 0 ? n - 1 - r : 0;
        CHECK(algorithm(allreduce, "direct").scratch_count(c, v, {}) == early * whole);
        c.in_place = true;
        CHECK(algorithm(allreduce, "direct").scratch_count(c, v, {}) == (n > 2) * (early + (r != 1)) * whole);
      });
    for_each_rank(allreduce, "pairwise", n, whole, 0, [&](Rank, Sent s) {
      CHECK(s.messages == 2 * (n - 1));
      CHECK(s.elements == 2 * (n - 1) * 6);
    });
    for (const Rank root : {Rank(0), Rank(1), n - 1}) {
      for_each_rank(broadcast, "direct", n, whole, root,
                    [&](Rank u, Sent s) { CHECK(s.elements == (u == 0 ? (n - 1) * whole : 0)); });
      for_each_rank(Collective::reduce, "direct", n, whole, root,
                    [&](Rank u, Sent s) { CHECK(s.elements == (u == 0 ? 0 : whole)); });
    }
  }
}

TEST_CASE("reduce-scatter-v sends every rank its block, whatever its length") {
  const CountOf counts = [](const void*, Rank, Rank to) -> Count { return to % 3 == 1 ? 0 : to * to % 11; };
  for (const Rank n : kSizes) {
    const Call c{.kind = reduce_scatterv, .counts = counts};
    Count total = 0;
    for (Rank r = 0; r < n; ++r) total += counts(nullptr, 0, r);
    for (Rank r = 0; r < n; ++r) {
      const Count own = counts(nullptr, 0, r);
      CHECK(input_count(c, n, r) == total);
      CHECK(output_count(c, n, r) == own);
      CHECK(walk(algorithm(reduce_scatterv, "pairwise"), c, Layout::flat(n), r).elements == total - own);
      CHECK(walk(algorithm(reduce_scatterv, "ring"), c, Layout::flat(n), r).elements == total - own);
      CHECK(algorithm(reduce_scatterv, "ring").scratch_count(c, Layout::flat(n).view(r), {}) <= 80);
    }
  }
}

namespace {

// What one element holds, in words: (a+b) and (b+a) are the same, ((a+b)+c) and (a+(b+c)) are not.
std::string plus(const std::string& a, const std::string& b) {
  return a < b ? "(" + a + "+" + b + ")" : "(" + b + "+" + a + ")";
}

// Rank r's single element of output after a schedule in which every message is its sender's untouched input.
std::string summed(const Algorithm& a, const Call& c, Rank n, Rank r) {
  const View v = Layout::flat(n).view(r);
  std::vector<std::string> buffers[4];
  buffers[int(Buffer::input)].resize(1);
  buffers[int(Buffer::output)].resize(1);
  buffers[int(Buffer::scratch)].resize(a.scratch_count(c, v, {}));
  const auto at = [&](const Region& x) -> std::string& { return buffers[int(x.buffer())].at(x.offset()); };
  at(input_of(c, n, r)) = std::to_string(r);
  Schedule s = a.make(c, v, {});
  while (const Step* step = s.next()) {
    const std::string message = std::to_string(step->peer);
    switch (step->op) {
      case Op::send: CHECK(at(step->from) == std::to_string(r)); break;
      case Op::recv: at(step->to) = message; break;
      case Op::recv_reduce: at(step->to) = plus(at(step->from), message); break;
      case Op::copy: at(step->to) = at(step->from); break;
      case Op::reduce: at(step->to) = plus(at(step->to), at(step->from)); break;
      case Op::send_all:
      case Op::recv_reduce_all: FAIL("a step to a group in a schedule without a switch"); break;
    }
  }
  return at(output_of(c, n, r));
}

}  // namespace

TEST_CASE("direct sums are formed in the order of the ranks, so every rank has the same bits") {
  for (Rank n = 1; n <= 17; ++n) {
    std::string due = "0";
    for (Rank p = 1; p < n; ++p) due = plus(due, std::to_string(p));
    for (const bool in_place : {false, true})
      for (Rank r = 0; r < n; ++r) {
        CAPTURE(n);
        CAPTURE(r);
        Call c = call_of(allreduce, 1);
        c.in_place = in_place;
        CHECK(summed(algorithm(allreduce, "direct"), c, n, r) == due);
        c = call_of(Collective::reduce, 1, r);
        c.in_place = in_place;
        CHECK(summed(algorithm(Collective::reduce, "direct"), c, n, r) == due);
      }
  }
}

TEST_CASE("algorithms for few ranks fit their largest number of ranks and not one more") {
  for (const auto& [kind, name, most] :
       {std::tuple{allreduce, "direct", 32u}, {allreduce, "pairwise", 256u}, {barrier, "direct", 32u}}) {
    CHECK(algorithm(kind, name).can(call_of(kind, 1), Layout::flat(most).view(0)));
    CHECK(!algorithm(kind, name).can(call_of(kind, 1), Layout::flat(most + 1).view(0)));
  }
}

TEST_CASE("the torus wants a full grid") {
  View v = Layout::flat(12).view(5);
  const Algorithm& a = algorithm(allreduce, "torus2d");
  for (const Rank columns : {1u, 2u, 3u, 4u, 6u, 12u}) {
    v.columns = columns;
    CHECK(a.can(call_of(allreduce, 10), v));
  }
  for (const Rank columns : {0u, 5u, 7u, 24u}) {
    v.columns = columns;
    CHECK(!a.can(call_of(allreduce, 10), v));
  }
}

}  // namespace algorithms_reduce
