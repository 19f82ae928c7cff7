// The algorithms that move data without reducing it: steps and bytes as their headers state them, uneven machines,
// skewed counts, and closed forms against the model engine.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <random>

#include "libgccl/cluster/fabrics/star.hpp"
#include "libgccl/cost/pipelined.hpp"
#include "libgccl/verify/verify.hpp"
#include "sim/engine/workload.hpp"

using namespace gccl;
using enum Collective;

namespace algorithms_move {

constexpr Count kPatElements = 65536;  // of one message of pat

constexpr Collective kMoving[] = {allgather, allgatherv, gather, scatter, alltoall, alltoallv, barrier, sendrecv};

bool moves(const Algorithm& a) {
  return std::find(std::begin(kMoving), std::end(kMoving), a.kind) != std::end(kMoving);
}

Count equal_counts(const void* table, Rank, Rank) { return *static_cast<const Count*>(table); }

// What one rank sends: messages and elements, in all and to other nodes.
struct Sent {
  Count messages = 0, elements = 0, far_messages = 0, far_elements = 0;
};

// node_of: empty for a machine of one node.
Sent walk(const Algorithm& a, const Call& c, const Layout& layout, Rank rank, const std::vector<Rank>& node_of = {},
          Share share = {}) {
  Sent sent;
  Schedule s = a.make(c, layout.view(rank), share);
  while (const Step* step = s.next()) {
    if (step->op != Op::send || (step->from.buffer() != Buffer::none && step->from.count == 0)) continue;
    const bool far = !node_of.empty() && node_of[rank] != node_of[step->peer];
    sent.messages += 1;
    sent.elements += step->from.count;
    sent.far_messages += far;
    sent.far_elements += far ? step->from.count : 0;
  }
  return sent;
}

const Algorithm& algorithm(Collective kind, std::string_view name) {
  const Algorithm* a = find_algorithm(kind, name);
  REQUIRE(a != nullptr);
  return *a;
}

Count ceil_log2(Count n) { return Count(std::bit_width(n - 1)); }

// Places with holes and nodes of different sizes: 5, 3, 7, 4 ranks, in an order of their own.
std::vector<Rank> uneven_nodes(std::uint32_t seed) {
  std::vector<Rank> node_of;
  for (const auto& [node, size] : {std::pair{7u, 5u}, {2u, 3u}, {9u, 7u}, {4u, 4u}})
    node_of.insert(node_of.end(), size, node);
  std::mt19937 random(seed);
  for (std::size_t i = node_of.size(); i > 1; --i) std::swap(node_of[i - 1], node_of[random() % i]);
  return node_of;
}

void check_proved(const Algorithm& a, Call call, std::shared_ptr<const Layout> layout,
                  std::shared_ptr<const void> table = {}) {
  struct Slicing {
    Count shares, lanes;
  };
  for (const Slicing slicing : {Slicing{1, 1}, {3, 2}})
    for (const unsigned window : {1u, 2u, 8u}) {
      const Case c{.algorithm = &a,
                   .call = call,
                   .layout = layout,
                   .layout_name = "test",
                   .shares = slicing.shares,
                   .lanes = slicing.lanes,
                   .window = window,
                   .delivery = window == 1 ? Delivery::buffered : Delivery::rendezvous,
                   .seed = 5,
                   .table = table};
      const auto failure = verify(c);
      const std::string text = failure ? failure->text : "";
      CHECK_MESSAGE(!failure, text);
    }
}

TEST_CASE("all-gathers take the steps and bytes that their headers state") {
  for (const Rank n : {1u, 2u, 3u, 5u, 6u, 8u, 12u, 16u, 17u, 31u, 32u}) {
    const Call c{.kind = allgather, .count = 10};
    const Layout flat = Layout::flat(n);
    for (Rank r = 0; r < n; ++r) {
      CAPTURE(n);
      CAPTURE(r);
      CHECK(walk(algorithm(allgather, "ring"), c, flat, r).messages == n - 1);
      CHECK(walk(algorithm(allgather, "bruck"), c, flat, r).messages == ceil_log2(n));
      CHECK(walk(algorithm(allgather, "pat"), c, flat, r).messages == ceil_log2(n));
      CHECK(walk(algorithm(allgather, "hierarchical"), c, flat, r).messages == n - 1);
      CHECK(walk(algorithm(allgather, "neighbor_exchange"), c, flat, r).messages == (n % 2 ? n - 1 : n / 2));
      CHECK(walk(algorithm(allgather, "direct"), c, flat, r).messages == n - 1);
      for (const char* name : {"ring", "bruck", "pat", "hierarchical", "neighbor_exchange", "direct"})
        CHECK(walk(algorithm(allgather, name), c, flat, r).elements == 10 * (n - 1));
      const Sent doubling = walk(algorithm(allgather, "recursive_doubling"), c, flat, r);
      if (std::has_single_bit(n)) CHECK(doubling.messages == ceil_log2(n));
      if (std::has_single_bit(n)) CHECK(doubling.elements == 10 * (n - 1));
      CHECK(doubling.elements <= 30 * (n - 1));
    }
  }
}

TEST_CASE("PAT sends large blocks one by one, small ones aggregated within its buffer, and is right in between") {
  const Algorithm& pat = algorithm(allgather, "pat");
  for (const Rank n : {3u, 8u, 11u})
    for (const Count count : {kPatElements / 3, kPatElements / 2, kPatElements / 2 + 1}) {
      const Call c{.kind = allgather, .count = count};
      const auto layout = std::make_shared<Layout>(Layout::flat(n));
      const auto failure = verify(
          {.algorithm = &pat, .call = c, .layout = layout, .window = 8, .delivery = Delivery::rendezvous, .table = {}});
      const std::string text = failure ? failure->text : "";
      CHECK_MESSAGE(!failure, text);
      const bool direct = count > kPatElements / 2;
      if (direct) CHECK(walk(pat, c, *layout, 0).messages == n - 1);
      CHECK(walk(pat, c, *layout, n - 1).elements == count * (n - 1));
      CHECK(pat.scratch_count(c, layout->view(0), {}) <= (direct ? 0 : std::max(2 * kPatElements, (n + 1) * count)));
    }
}

TEST_CASE("the hierarchical all-gather brings every block to a node once") {
  std::vector<Rank> node_of(16);
  for (Rank r = 0; r < 16; ++r) node_of[r] = r / 4;
  const Algorithm& a = algorithm(allgather, "hierarchical");
  const Call c{.kind = allgather, .count = 3};
  for (Rank r = 0; r < 16; ++r) {
    const Sent sent = walk(a, c, Layout::regular(16, 4), r, node_of);
    CHECK(sent.far_messages == 3);
    CHECK(sent.far_elements == 3 * 3);
    CHECK(sent.elements == 3 * (3 + 4 * 3));
  }
  node_of = uneven_nodes(1);
  const Rank n = Rank(node_of.size());
  const Layout layout = Layout::of(node_of);
  Count far = 0, all = 0;
  for (Rank r = 0; r < n; ++r) {
    const Sent sent = walk(a, c, layout, r, node_of);
    far += sent.far_elements;
    all += sent.elements;
  }
  CHECK(far == 3 * n * (4 - 1));  // every block enters every other node once
  CHECK(all == 3 * n * (n - 1));  // and every rank gets every block once, folded ones too
}

TEST_CASE("gathers and scatters send what their trees say, for every root") {
  for (const Rank n : {1u, 2u, 3u, 7u, 8u, 13u, 16u})
    for (Rank root = 0; root < n; ++root) {
      const Layout flat = Layout::flat(n);
      for (Rank r = 0; r < n; ++r) {
        CAPTURE(n);
        CAPTURE(root);
        CAPTURE(r);
        const Count u = (r + n - root) % n;
        const Count subtree = u == 0 ? n : std::min<Count>(u & (~u + 1), n - u);
        const Call g{.kind = gather, .count = 5, .root = root}, s{.kind = scatter, .count = 5, .root = root};
        CHECK(walk(algorithm(gather, "linear"), g, flat, r).elements == (u == 0 ? 0 : 5));
        CHECK(walk(algorithm(gather, "binomial"), g, flat, r).elements == (u == 0 ? 0 : 5 * subtree));
        CHECK(walk(algorithm(scatter, "linear"), s, flat, r).elements == (u == 0 ? 5 * (n - 1) : 0));
        CHECK(walk(algorithm(scatter, "binomial"), s, flat, r).elements == 5 * (subtree - 1));
        if (root == 0) CHECK(walk(algorithm(gather, "binomial"), g, flat, r).messages == (u == 0 ? 0 : 1));
        if (root == 0) CHECK(walk(algorithm(scatter, "binomial"), s, flat, 0).messages == ceil_log2(n));
      }
    }
}

TEST_CASE("all-to-alls take the steps and bytes that their headers state") {
  for (const Rank n : {1u, 2u, 3u, 6u, 8u, 13u, 16u}) {
    const Call c{.kind = alltoall, .count = 4};
    Count moved = 0;  // by Bruck's: a block to the rank j on moves once for each bit of j
    for (Count j = 0; j < n; ++j) moved += Count(std::popcount(j));
    for (Rank r = 0; r < n; ++r) {
      const Sent pairwise = walk(algorithm(alltoall, "pairwise"), c, Layout::flat(n), r);
      CHECK(pairwise.messages == n - 1);
      CHECK(pairwise.elements == 4 * (n - 1));
      const Sent bruck = walk(algorithm(alltoall, "bruck"), c, Layout::flat(n), r);
      CHECK(bruck.messages == ceil_log2(n));
      CHECK(bruck.elements == 4 * moved);
    }
  }
  std::vector<Rank> node_of(24);
  for (Rank r = 0; r < 24; ++r) node_of[r] = r / 4;
  const Call c{.kind = alltoall, .count = 4};
  for (Rank r = 0; r < 24; ++r) {
    const Sent sent = walk(algorithm(alltoall, "hierarchical"), c, Layout::regular(24, 4), r, node_of);
    CHECK(sent.far_messages == 5);
    CHECK(sent.far_elements == 5 * 4 * 4);
    CHECK(sent.messages - sent.far_messages == 3);
    CHECK(sent.elements - sent.far_elements == 3 * 6 * 4);
  }
}

TEST_CASE("the hierarchical algorithms serve nodes of different sizes, in any placement") {
  for (const std::uint32_t seed : {1u, 2u, 3u}) {
    const auto layout = std::make_shared<Layout>(Layout::of(uneven_nodes(seed)));
    for (const Algorithm& a : algorithms()) {
      if (!moves(a) || has_counts(a.kind) || a.kind == barrier) continue;
      for (const Count count : {0, 1, 2, 19, 40})
        for (const bool in_place : {false, true}) {
          const Call c{.kind = a.kind, .count = count, .root = has_root(a.kind) ? 11u : 0u, .in_place = in_place};
          if (a.can(c, layout->view(0))) check_proved(a, c, layout);
        }
    }
  }
}

TEST_CASE("all-to-all-v serves skewed and zero counts") {
  struct Table {
    bool symmetric;
    Rank busy;
  };
  const CountOf counts = [](const void* t, Rank from, Rank to) -> Count {
    const auto& [symmetric, busy] = *static_cast<const Table*>(t);
    if (from == busy || (symmetric && to == busy)) return symmetric ? 30 + from + to : 97 + to;
    const Count mixed = symmetric ? Count(from) * to + from + to : 7 * Count(from) + 3 * to;
    return mixed % 5 < 2 ? 0 : mixed % 11;
  };
  std::vector<std::shared_ptr<const Layout>> layouts;
  for (const Rank n : {1u, 2u, 5u, 12u}) layouts.push_back(std::make_shared<Layout>(Layout::flat(n)));
  for (const Rank n : {8u, 12u, 14u}) layouts.push_back(std::make_shared<Layout>(Layout::regular(n, 4)));
  layouts.push_back(std::make_shared<Layout>(Layout::of(uneven_nodes(4))));
  for (const auto& layout : layouts)
    for (const bool in_place : {false, true}) {
      const auto table = std::make_shared<Table>(Table{in_place, layout->ranks() / 2});
      const Call c{.kind = alltoallv, .in_place = in_place, .counts = counts, .table = table.get()};
      for (const char* name : {"pairwise", "hierarchical"}) check_proved(algorithm(alltoallv, name), c, layout, table);
      for (Rank r = 0; r < layout->ranks(); ++r) {
        Count due = 0, peers = 0;
        for (Rank p = 0; p < layout->ranks(); ++p) {
          due += p == r ? 0 : counts(table.get(), r, p);
          peers += p != r && counts(table.get(), r, p) > 0;
        }
        const Sent sent = walk(algorithm(alltoallv, "pairwise"), c, *layout, r);
        CHECK(sent.elements == due);
        CHECK(sent.messages == peers);
      }
    }
}

TEST_CASE("all-gather-v serves skewed and zero counts") {
  const CountOf counts = [](const void*, Rank from, Rank to) -> Count {
    CHECK(to == 0);
    return from % 4 == 1 ? 0 : from == 2 ? 97 : 3 * from;
  };
  for (const Rank n : {1u, 2u, 3u, 8u, 13u}) {
    const auto layout = std::make_shared<Layout>(Layout::regular(n, 4));
    Count total = 0;
    for (Rank r = 0; r < n; ++r) total += counts(nullptr, r, 0);
    for (const char* name : {"ring", "direct"})
      for (const bool in_place : {false, true}) {
        const Call c{.kind = allgatherv, .in_place = in_place, .counts = counts};
        check_proved(algorithm(allgatherv, name), c, layout);
        for (Rank r = 0; r < n; ++r) {
          const Count own = counts(nullptr, r, 0), next = counts(nullptr, (r + 1) % n, 0);
          CHECK(input_count(c, n, r) == (in_place ? 0 : own));
          CHECK(output_count(c, n, r) == total);
          CHECK(walk(algorithm(allgatherv, name), c, Layout::flat(n), r).elements ==
                (name[0] == 'r' ? total - next : (n - 1) * own));
        }
      }
  }
}

// What a caller of all-to-all-v on one rank knows: his own counts and displacements. Others are not to be asked for.
struct OwnRow {
  Rank rank;
  static Count sent(Rank from, Rank to) { return (from * 7 + to * 3) % 5; }
  static Count count(const void* t, Rank from, Rank to) {
    const Rank rank = static_cast<const OwnRow*>(t)->rank;
    CHECK((from == rank || to == rank));
    return sent(from, to);
  }
  static Count place(const void* t, Rank rank, Rank peer, bool outgoing) {
    CHECK(rank == static_cast<const OwnRow*>(t)->rank);
    return outgoing ? 10 * peer : 1000 - 10 * peer;
  }
};

TEST_CASE("an all-to-all-v with places asks for the calling rank's counts and places only") {
  const Rank n = 13;
  const Layout layout = Layout::regular(n, 4);
  for (Rank r = 0; r < n; ++r) {
    const OwnRow own{r};
    const Call c{.kind = alltoallv, .counts = OwnRow::count, .table = &own, .places = OwnRow::place};
    const View v = layout.view(r);
    CHECK(!algorithm(alltoallv, "hierarchical").can(c, v));
    const Algorithm& pairwise = algorithm(alltoallv, "pairwise");
    REQUIRE(pairwise.can(c, v));
    CHECK(input_count(c, n, r) == [&] {
      Count end = 0;
      for (Rank p = 0; p < n; ++p)
        if (OwnRow::sent(r, p)) end = std::max<Count>(end, 10 * p + OwnRow::sent(r, p));
      return end;
    }());
    CHECK(output_count(c, n, r) <= 1000 + 4);
    pairwise.cost(c, v, {});
    pairwise.scratch_count(c, v, {});
    for (const Share share : {Share{}, Share{1, 3}}) {
      Schedule s = pairwise.make(c, v, share);
      while (const Step* step = s.next()) {
        if (step->op == Op::copy) continue;
        const bool sends = step->op == Op::send;
        const Count block = sends ? OwnRow::sent(r, step->peer) : OwnRow::sent(step->peer, r);
        const Count begin = sends ? 10 * step->peer : 1000 - 10 * step->peer;
        CHECK((sends ? step->from : step->to) ==
              Region{sends ? Buffer::input : Buffer::output, begin, block}.part(share.index, share.of));
      }
    }
  }
}

TEST_CASE("a skewed all-to-all-v asks for each rank's counts O(n) times") {
  struct Table {
    mutable Count asked = 0;
  } table;
  const CountOf counts = [](const void* t, Rank, Rank) -> Count { return static_cast<const Table*>(t)->asked++, 1; };
  const Call c{.kind = alltoallv, .counts = counts, .table = &table};
  const Rank n = 500;
  for (const Rank r : {0u, 1u, 250u, 499u}) {
    table.asked = 0;
    walk(algorithm(alltoallv, "pairwise"), c, Layout::flat(n), r);
    CHECK(table.asked < 12 * n);
    table.asked = 0;
    walk(algorithm(alltoallv, "hierarchical"), c, Layout::regular(n, 4), r);
    CHECK(table.asked < 40 * n);
  }
}

TEST_CASE("barriers signal once per round or twice per edge, and only share 0 does") {
  for (const Rank n : {1u, 2u, 3u, 8u, 21u}) {
    const Call c{.kind = barrier};
    Count tree = 0;
    for (Rank r = 0; r < n; ++r) {
      CHECK(walk(algorithm(barrier, "dissemination"), c, Layout::flat(n), r).messages == ceil_log2(n));
      tree += walk(algorithm(barrier, "tree"), c, Layout::flat(n), r).messages;
      CHECK(walk(algorithm(barrier, "direct"), c, Layout::flat(n), r).messages == n - 1);
      for (const char* name : {"dissemination", "tree", "direct"})
        CHECK(walk(algorithm(barrier, name), c, Layout::flat(n), r, {}, {1, 2}).messages == 0);
    }
    CHECK(tree == 2 * (n - 1));
  }
}

TEST_CASE("send-receive sends the vector once") {
  for (const Rank n : {1u, 2u, 5u}) {
    const Sent sent = walk(algorithm(sendrecv, "direct"), {.kind = sendrecv, .count = 9}, Layout::flat(n), n - 1);
    CHECK(sent.messages == (n > 1));
    CHECK(sent.elements == (n > 1 ? 9 : 0));
  }
}

TEST_CASE("closed forms agree with the model engine on one node") {
  for (const Algorithm& a : algorithms()) {
    if (!moves(a)) continue;
    for (const Rank n : {1u, 2u, 4u, 8u, 32u})
      for (const Count count : {1u, 100u, 1000u, 30000u, 1000000u})
        for (const bool in_place : {false, true}) {
          const Star star(n, 20, 800, {.overhead_ns = 400, .combine_GBps = 500, .copy_GBps = 1000});
          CostModel m;
          m.node = {400 + 2 * 800, 1.0 / 20};
          m.overhead_ns = 400;
          m.copy_ns_per_byte = 1.0 / 1000;
          m.element_bytes = 4;
          sim::SimulatedOperation o;
          o.algorithm = &a;
          o.call = {.kind = a.kind, .count = count, .in_place = in_place, .counts = equal_counts, .table = &count};
          o.layout = std::make_shared<Layout>(Layout::flat(n));
          sim::Workload w;
          w.cluster = &star;
          w.cards.resize(n);
          std::iota(w.cards.begin(), w.cards.end(), 0);
          w.operations = {o};
          w.streams = {{{0}}};
          const double played = double(sim::run_model(w).time_ns), formed = a.cost(o.call, o.layout->view(0), m);
          CAPTURE(name(a.kind));
          CAPTURE(a.name);
          CAPTURE(n);
          CAPTURE(count);
          CAPTURE(in_place);
          CHECK(std::abs(formed - played) <= 0.02 * played + 2);
        }
  }
}

TEST_CASE("a train of messages takes what a port and a window of eight steps allow") {
  const Hop hop{2000, 0.05};
  for (const double steps_each : {1.0, 2.0})
    for (const double bytes : {0.0, 400.0, 7000.0, 12000.0, 4e6})
      for (std::size_t messages = 1; messages < 40; ++messages) {
        std::vector<double> start{0};
        const std::size_t in_flight = std::size_t(8 / steps_each);
        while (start.size() < messages) {
          double at = start.back() + std::max(400.0, bytes * hop.beta_ns_per_byte);
          if (start.size() >= in_flight) at = std::max(at, start[start.size() - in_flight] + hop(bytes));
          start.push_back(at);
        }
        CHECK(pipelined(double(messages), hop, bytes, 400, steps_each) == doctest::Approx(start.back() + hop(bytes)));
      }
}

TEST_CASE("closed forms are the same on every rank, or ranks would choose differently") {
  const auto layout = std::make_shared<Layout>(Layout::of(uneven_nodes(6)));
  CostModel m;
  m.node = {2000, 0.01};
  m.net = {5000, 0.02};
  m.net_all = {5000, 0.1};
  m.copy_ns_per_byte = 0.001;
  const CountOf counts = [](const void*, Rank from, Rank to) { return Count(from) * 3 + to; };
  for (const Algorithm& a : algorithms()) {
    if (!moves(a)) continue;
    const Call c{.kind = a.kind, .count = 1000, .counts = counts};
    for (Rank r = 1; r < layout->ranks(); ++r) CHECK(a.cost(c, layout->view(r), m) == a.cost(c, layout->view(0), m));
  }
}

}  // namespace algorithms_move
