// The prover: the whole table proved, and planted bugs found.
#include "libgccl/verify/verify.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

#include "tests/verify/calls.hpp"

using namespace gccl;
using namespace gccl::test;

namespace {

Case case_of(const Algorithm& a, Rank n, Count count) {
  Case c;
  c.algorithm = &a;
  c.call = call_of(a.kind, count);
  c.layout = std::make_shared<const Layout>(Layout::flat(n));
  return c;
}

// Planted bugs. Each mutant is one algorithm with one bug; `none` is the algorithm itself.
enum class Bug {
  none,
  wrong_peer,
  wrong_part,
  missing_last,
  missing_on_one,
  doubled,
  double_reduce,
  extra_send,
  late_send,
  whole_vector,
  next_share,
  input_written,
  scratch_overrun,
  scratch_unwritten,
  self_send,
  far_peer,
  endless,
  throws,
  different_sizes,
  half_overlap,
  signal_of_five,
  no_copy
};

// A ring all-reduce.
template <Bug bug>
Schedule ring(Call c, View v, Share mine) {
  const Group g = v.all;
  const Rank n = g.size, me = g.rank;
  if (bug == Bug::next_share) mine.index = (mine.index + 1) % mine.of;
  if (bug == Bug::whole_vector) mine = {};
  const Region in = slice(input_of(c, n, me), mine), x = slice(output_of(c, n, me), mine);
  const Region scratch{Buffer::scratch, 0, x.count};
  const Rank next = g[me + (bug == Bug::wrong_peer ? 2 : 1)], before = g[std::int64_t(me) - 1];
  const auto part = [=](std::int64_t i) { return x.part(Count(g.wrap(i)), n); };

  if (bug == Bug::endless)
    for (;;) co_yield copy(x.part(0, 2), x.part(0, 2));
  if (bug == Bug::throws) throw std::runtime_error("no table for this");
  if (bug == Bug::self_send) co_yield send(me, in);
  if (bug == Bug::far_peer) co_yield send(n, in);
  if (bug == Bug::different_sizes) co_yield copy(in, x.sub(0, x.count - 1));
  if (bug == Bug::half_overlap) co_yield copy(in, x);
  if (bug == Bug::half_overlap) co_yield copy(x.sub(0, x.count - 1), x.sub(1, x.count - 1));
  if (bug == Bug::signal_of_five) co_yield send(next, Region{Buffer::none, 0, 5});
  if (bug == Bug::scratch_overrun) co_yield copy(in.sub(0, 1), Region{Buffer::scratch, x.count, 1});
  if (bug == Bug::scratch_unwritten) co_yield copy(scratch, x);
  if (bug == Bug::input_written) co_yield copy(in.sub(0, 1), in.sub(1, 1));
  if (bug != Bug::no_copy) co_yield copy(in, x);
  if (bug == Bug::double_reduce && me == 2) co_yield reduce(in, x);

  for (Rank s = 1; s < n; ++s) {
    const Step give = send(next, part(std::int64_t(me) - s + (bug == Bug::wrong_part ? 1 : 0)));
    const Step take = recv_reduce(before, part(std::int64_t(me) - s - 1));
    if (bug != Bug::late_send) co_yield give;
    co_yield take;
    if (bug == Bug::late_send) co_yield give;
    if (bug == Bug::doubled && s == 1 && me == 3) co_yield take;
  }
  for (Rank s = 0; s + 1 < n; ++s) {
    const bool last = s + 2 == n;
    if (bug == Bug::missing_last && last) co_return;
    co_yield send(next, part(std::int64_t(me) - s));
    if (bug == Bug::missing_on_one && last && me == 1) co_return;
    co_yield recv(before, part(std::int64_t(me) - s - 1));
  }
  if (bug == Bug::extra_send && me == 0) co_yield send(next, x.part(0, n));
}

Count ring_scratch(const Call& c, const View&, Share s) {
  return Region{Buffer::output, 0, c.count}.part(s.index, s.of).count;
}

template <Bug bug>
constexpr Algorithm kRing = {
    .name = "mutant", .kind = Collective::allreduce, .make = ring<bug>, .scratch = ring_scratch};

// A linear reduce in which every rank but the root also writes an output that it does not have.
template <bool stray>
Schedule linear_reduce(Call c, View v, Share mine) {
  const Rank n = v.all.size, me = v.all.rank;
  const Region in = slice(input_of(c, n, me), mine);
  if (me != c.root) {
    if (stray) co_yield copy(in, slice(Region{Buffer::output, 0, c.count}, mine));
    co_yield send(c.root, in);
    co_return;
  }
  const Region out = slice(output_of(c, n, me), mine);
  co_yield copy(in, out);
  for (Rank p = 0; p < n; ++p)
    if (p != c.root) co_yield recv_reduce(p, out);
}

// An all-to-all that sends everything before it receives anything, or each block concurrently with its counterpart.
template <bool sends_first, bool swapped>
Schedule all_to_all(Call c, View v, Share mine) {
  const Rank n = v.all.size, me = v.all.rank;
  const Blocks in = slice(input_of(c, n, me), n, mine), out = slice(output_of(c, n, me), n, mine);
  co_yield copy(in[me], out[me]);
  for (Rank s = 1; s < n; ++s) {
    co_yield send((me + s) % n, in[(me + s) % n]);
    if (!sends_first) co_yield recv((me + n - s) % n, out[swapped ? (me + s) % n : (me + n - s) % n]);
  }
  for (Rank s = 1; sends_first && s < n; ++s) co_yield recv((me + n - s) % n, out[(me + n - s) % n]);
}

// A dissemination barrier that stops `missing` rounds early; with all missing it is no barrier at all.
template <Rank missing>
Schedule dissemination(Call, View v, Share mine) {
  Rank rounds = 0;
  while ((Count(1) << rounds) < v.all.size) ++rounds;
  for (Rank k = 0; mine.index == 0 && k + missing < rounds; ++k) {
    co_yield signal(v.all[std::int64_t(v.all.rank) + (std::int64_t(1) << k)]);
    co_yield await(v.all[std::int64_t(v.all.rank) - (std::int64_t(1) << k)]);
  }
}

// A scatter in place whose root writes over the other ranks' blocks.
template <bool shifts>
Schedule linear_scatter(Call c, View v, Share mine) {
  const Rank n = v.all.size, me = v.all.rank;
  const Region out = slice(output_of(c, n, me), mine);
  if (me != c.root) {
    co_yield recv(c.root, out);
    co_return;
  }
  const Blocks in = slice(input_of(c, n, me), n, mine);
  for (Rank p = 0; p < n; ++p)
    if (p != me) co_yield send(p, in[p]);
  if (shifts) co_yield copy(in[0], in[1]);
  co_yield copy(in[me], out);
}

// A broadcast whose root does not give itself the vector.
Schedule forgetful_broadcast(Call c, View v, Share mine) {
  const Rank n = v.all.size, me = v.all.rank;
  if (me != c.root) co_yield recv(c.root, slice(output_of(c, n, me), mine));
  for (Rank p = 0; me == c.root && p < n; ++p)
    if (p != me) co_yield send(p, slice(input_of(c, n, me), mine));
}

bool even_ranks_only(const Call&, const View& v) { return v.all.rank % 2 == 0; }

struct Planted {
  std::string what;
  const Algorithm& algorithm;
  FaultKind buffered, rendezvous;  // as which it must be reported
  Count count = 11, shares = 1, lanes = 1;
  bool in_place = false;
  Rank ranks = 5;
};

}  // namespace

Schedule into_the_gap(Call c, View v, Share mine) {
  co_yield find_algorithm(c.kind, "ring")->make(c, v, mine);
  co_yield copy(Region{Buffer::output, 2, 1}, Region{Buffer::output, 0, 1});
}

TEST_CASE("a write into a gap between blocks is found, and so is a read of one") {
  static const Algorithm writes = {.name = "writes", .kind = Collective::allgatherv, .make = into_the_gap};
  Case c = case_of(writes, 6, 0);
  c.call.counts = [](const void*, Rank, Rank) -> Count { return 3; };
  c.call.places = [](const void*, Rank, Rank peer, bool) -> Count { return 2 + 4 * peer; };
  const auto fault = Memory(c).run();
  REQUIRE(fault);
  CHECK(fault->kind == FaultKind::outside);
  CHECK(fault->text.find("belongs to no block") != std::string::npos);
  static const Algorithm reads = {
      .name = "reads", .kind = Collective::allgatherv, .make = [](Call, View, Share) -> Schedule {
        co_yield copy(Region{Buffer::output, 0, 1}, Region{Buffer::output, 2, 1});
      }};
  c.algorithm = &reads;
  const auto other = Memory(c).run();
  REQUIRE(other);
  CHECK(other->kind == FaultKind::unwritten_read);
}

TEST_CASE("every algorithm of the table is proved by the quick sweep") {
  SweepOptions options;
  options.quick = true;
  for (const Tally& t : sweep(options)) {
    const std::string failure = t.failure ? t.failure->text : "no case fits";
    CHECK_MESSAGE(t.proved(), failure);
  }
}

TEST_CASE("the algorithms from which the mutants are made are right") {
  const Algorithm right[] = {
      kRing<Bug::none>,
      {.name = "linear", .kind = Collective::reduce, .make = linear_reduce<false>},
      {.name = "concurrent", .kind = Collective::alltoall, .make = all_to_all<false, false>},
      {.name = "dissemination", .kind = Collective::barrier, .make = dissemination<0>},
      {.name = "linear", .kind = Collective::scatter, .make = linear_scatter<false>},
  };
  SweepOptions options{.ranks_max = 16, .quick = true};
  for (const Algorithm& a : right) {
    Case c = case_of(a, 5, 11);
    for (const bool in_place : {false, a.kind != Collective::alltoall && a.kind != Collective::barrier}) {
      c.call.in_place = in_place;
      for (const Delivery d : {Delivery::buffered, Delivery::rendezvous, Delivery::fetched}) {
        c.delivery = d;
        c.window = d == Delivery::buffered ? 1 : 8;
        const std::optional<Counterexample> failure = verify(c);
        CHECK_MESSAGE(!failure, failure->text);
      }
    }
  }
  const std::vector<Tally> tallies = sweep(options, right);
  for (const std::size_t i : {0, 1, 3, 4}) CHECK_MESSAGE(tallies[i].proved(), tallies[i].failure->text);
}

TEST_CASE("every planted bug is found and called by its name") {
  using enum FaultKind;
  static const Algorithm stray = {.name = "stray", .kind = Collective::reduce, .make = linear_reduce<true>};
  static const Algorithm swapped = {.name = "swapped", .kind = Collective::alltoall, .make = all_to_all<false, true>};
  static const Algorithm short_barrier = {.name = "short", .kind = Collective::barrier, .make = dissemination<1>};
  static const Algorithm no_barrier = {.name = "none", .kind = Collective::barrier, .make = dissemination<32>};
  static const Algorithm shifting = {.name = "shifting", .kind = Collective::scatter, .make = linear_scatter<true>};
  static const Algorithm forgetful = {.name = "forgetful", .kind = Collective::broadcast, .make = forgetful_broadcast};
  static const Algorithm disagreeing = {
      .name = "disagreeing", .kind = Collective::allreduce, .make = ring<Bug::none>, .fits = even_ranks_only};
  const Planted planted[] = {
      {"wrong peer", kRing<Bug::wrong_peer>, deadlock, deadlock},
      {"wrong part of equal size", kRing<Bug::wrong_part>, wrong_value, wrong_value, 10},
      {"wrong part of another size", kRing<Bug::wrong_part>, count_mismatch, count_mismatch},
      {"last step missing everywhere", kRing<Bug::missing_last>, wrong_value, wrong_value},
      {"step missing on one rank", kRing<Bug::missing_on_one>, unmatched, unmatched, 10},
      {"receive doubled", kRing<Bug::doubled>, unmatched, unmatched, 10},
      {"own contribution twice", kRing<Bug::double_reduce>, wrong_value, wrong_value},
      {"extra send", kRing<Bug::extra_send>, unmatched, unmatched},
      {"no initial copy", kRing<Bug::no_copy>, unwritten_read, unwritten_read},
      {"whole vector instead of the share", kRing<Bug::whole_vector>, lane_overlap, lane_overlap, 11, 2, 2},
      {"write to input", kRing<Bug::input_written>, input_written, input_written},
      {"scratch overrun", kRing<Bug::scratch_overrun>, outside, outside},
      {"scratch read before written", kRing<Bug::scratch_unwritten>, unwritten_read, unwritten_read},
      {"message to itself", kRing<Bug::self_send>, self_message, self_message},
      {"peer beyond the last", kRing<Bug::far_peer>, no_such_peer, no_such_peer},
      {"copy between different sizes", kRing<Bug::different_sizes>, malformed, malformed},
      {"copy onto its own half", kRing<Bug::half_overlap>, malformed, malformed},
      {"signal with elements", kRing<Bug::signal_of_five>, malformed, malformed},
      {"never ends", kRing<Bug::endless>, endless, endless},
      {"throws", kRing<Bug::throws>, exception, exception},
      {"stray output on non-roots", stray, outside, outside},
      {"blocks swapped", swapped, wrong_value, wrong_value},
      {"a round missing in a barrier", short_barrier, left_early, left_early, 0, 1, 1, false, 16},
      {"no barrier at all", no_barrier, left_early, left_early, 0, 1, 1, false, 16},
      {"write to the input of a scatter in place", shifting, input_written, input_written, 11, 1, 1, true},
      {"root leaves its own output alone", forgetful, not_written, not_written},
      {"ranks disagree about fitting", disagreeing, fits_differs, fits_differs},
  };
  for (const Planted& p : planted) {
    for (const Delivery d : {Delivery::buffered, Delivery::rendezvous, Delivery::fetched}) {
      Case c = case_of(p.algorithm, p.ranks, p.count);
      c.call.in_place = p.in_place;
      c.shares = p.shares;
      c.lanes = p.lanes;
      c.delivery = d;
      c.window = d == Delivery::buffered ? 1 : 2;
      const FaultKind due = d == Delivery::buffered ? p.buffered : p.rendezvous;
      CAPTURE(p.what);
      for (c.seed = 1; c.seed <= (due == endless ? 1 : 5); ++c.seed) {
        const std::optional<Counterexample> failure = verify(c);
        REQUIRE(failure);
        CHECK_MESSAGE(failure->kind == due, failure->text);
        CHECK(failure->text.find(name(due)) != std::string::npos);
      }
    }
    if (&p.algorithm == &kRing<Bug::endless>) continue;
    const SweepOptions options{.ranks_max = 8, .quick = true};
    const std::vector<Tally> tallies = sweep(options, {&p.algorithm, 1});
    CHECK_MESSAGE(!tallies.at(0).proved(), p.what);
  }
}

TEST_CASE("sends before receives pass one buffered slot and fail rendezvous") {
  static const Algorithm a = {.name = "sends first", .kind = Collective::alltoall, .make = all_to_all<true, false>};
  Case c = case_of(a, 5, 3);
  CHECK_FALSE(verify(c));
  c.delivery = Delivery::rendezvous;
  c.window = 2;
  REQUIRE(verify(c));
  CHECK(verify(c)->kind == FaultKind::deadlock);
  c.window = 8;  // wide enough for all of them at once
  CHECK_FALSE(verify(c));
}

TEST_CASE("a share done by the wrong lane is no bug while every share is done") {
  Case c = case_of(kRing<Bug::next_share>, 4, 23);
  c.shares = 3;
  c.lanes = 2;
  CHECK_FALSE(verify(c));
}

TEST_CASE("a failure names its case and what is wrong") {
  Case c = case_of(kRing<Bug::double_reduce>, 5, 11);
  c.shares = 3;
  c.lanes = 2;
  c.window = 8;
  c.delivery = Delivery::rendezvous;
  c.seed = 9;
  const std::optional<Counterexample> failure = verify(c);
  REQUIRE(failure);
  const std::string head =
      "allreduce mutant: ranks 5 (flat), count 11, out of place, chunks 3, channels 2, window 8 rendezvous, seed 9: "
      "wrong value: rank 0 element 0 of 11 of its output has rank 2's contribution twice";
  CHECK(failure->text == head);
}

TEST_CASE("a receive before the send it should follow needs a window, and the deadlock names all that wait") {
  Case c = case_of(kRing<Bug::late_send>, 3, 3);
  for (const Delivery d : {Delivery::buffered, Delivery::rendezvous, Delivery::fetched}) {
    c.delivery = d;
    c.window = 1;
    const std::optional<Counterexample> failure = verify(c);
    REQUIRE(failure);
    CHECK(failure->kind == FaultKind::deadlock);
    CHECK(failure->text.find(
              "3 of 3 channels cannot go on; rank 0 channel 0: recv_reduce output[1,2) into output[1,2) from 2, "
              "then waits send output[2,3) to 1; rank 1 channel 0:") != std::string::npos);
    c.window = 2;
    CHECK_FALSE(verify(c));
  }
  c.window = 1;
  c.delivery = Delivery::buffered;
  c.replayed = true;  // its sends go first
  CHECK_FALSE(verify(c));
}

TEST_CASE("the same seed gives the same sweep, another one another") {
  const auto run = [](std::uint64_t seed) {
    const SweepOptions options{
        .collective = Collective::allreduce, .algorithm = "ring", .ranks_max = 12, .seed = seed, .quick = true};
    const Tally t = sweep(options).at(0);
    CHECK(t.proved());
    return std::pair(t.cases, t.messages);
  };
  CHECK(run(5) == run(5));
  CHECK(run(5) != run(6));
}
