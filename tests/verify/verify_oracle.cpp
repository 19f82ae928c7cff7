// The prover's oracle, and the definitions of the collectives behind it (definition.hpp), against the definitions
// written out; and where blocks lie in place and with displacements.
#include <doctest/doctest.h>

#include <algorithm>

#include "libgccl/verify/oracle.hpp"
#include "tests/verify/calls.hpp"

using namespace gccl;
using namespace gccl::test;

namespace {

std::vector<OracleElement> input(const Oracle& o, const Call& c, Rank n, Rank r) {
  std::vector<OracleElement> v(input_of(c, n, r).count);
  o.input(r, v);
  return v;
}

std::vector<OracleElement> output(const Oracle& o, const Call& c, Rank n, Rank r) {
  std::vector<OracleElement> v(output_of(c, n, r).count);
  o.output(r, v);
  return v;
}

// The definitions over whole vectors, with none of the oracle's shortcuts.
std::vector<OracleElement> defined(const Call& c, Rank n, Rank r, const std::vector<std::vector<OracleElement>>& in) {
  std::vector<OracleElement> out;
  const auto append = [&](Rank from, Count first, Count count) {
    for (Count i = first; i < first + count; ++i) out.push_back(in[from].at(i));
  };
  const auto sum = [&](Count first, Count count) {
    for (Count i = first; i < first + count; ++i) {
      out.push_back(0);
      for (Rank p = 0; p < n; ++p) out.back() += in[p].at(i);
    }
  };
  switch (c.kind) {
    case Collective::allreduce: sum(0, c.count); break;
    case Collective::reduce:
      if (r == c.root) sum(0, c.count);
      break;
    case Collective::reduce_scatter: sum(r * c.count, c.count); break;
    case Collective::reduce_scatterv: {
      Count first = 0;
      for (Rank q = 0; q < r; ++q) first += ragged(nullptr, 0, q);
      sum(first, ragged(nullptr, 0, r));
      break;
    }
    case Collective::broadcast: append(c.root, 0, c.count); break;
    case Collective::scatter: append(c.root, r * c.count, c.count); break;
    case Collective::gather:
      for (Rank p = 0; p < n && r == c.root; ++p) append(p, 0, c.count);
      break;
    case Collective::allgather:
      for (Rank p = 0; p < n; ++p) append(p, 0, c.count);
      break;
    case Collective::allgatherv:
      for (Rank p = 0; p < n; ++p) append(p, 0, ragged(nullptr, p, 0));
      break;
    case Collective::alltoall:
      for (Rank p = 0; p < n; ++p) append(p, r * c.count, c.count);
      break;
    case Collective::alltoallv:
      for (Rank p = 0; p < n; ++p) {
        Count first = 0;
        for (Rank q = 0; q < r; ++q) first += ragged(nullptr, p, q);
        append(p, first, ragged(nullptr, p, r));
      }
      break;
    case Collective::sendrecv: append((r + n - 1) % n, 0, c.count); break;
    case Collective::barrier: break;
  }
  return out;
}

}  // namespace

TEST_CASE("the oracle agrees with the definitions written out") {
  for (std::size_t k = 0; k < collective_names().size(); ++k)
    for (Rank n = 1; n <= 6; ++n)
      for (const Count count : {0, 1, 2, 5})
        for (Rank root = 0; root < (has_root(Collective(k)) ? n : 1); ++root)
          for (const bool in_place : {false, true}) {
            const Call c = call_of(Collective(k), count, root, in_place);
            const Oracle oracle(c, n, 42);
            std::vector<std::vector<OracleElement>> inputs;
            for (Rank r = 0; r < n; ++r) inputs.push_back(input(oracle, c, n, r));
            for (Rank r = 0; r < n; ++r) {
              CAPTURE(collective_names()[k]);
              CAPTURE(n);
              CAPTURE(r);
              // In place alltoallv asks for symmetric counts, which `ragged` does not give.
              if (c.kind == Collective::alltoallv && in_place) continue;
              CHECK(output(oracle, c, n, r) == defined(c, n, r, inputs));
            }
          }
}

TEST_CASE("no two input elements of a call are alike, and another seed gives others") {
  const Call c = call_of(Collective::alltoall, 50);
  std::vector<OracleElement> all;
  for (const std::uint64_t seed : {1, 2})
    for (Rank r = 0; r < 20; ++r)
      for (const OracleElement e : input(Oracle(c, 20, seed), c, 20, r)) all.push_back(e);
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
}

TEST_CASE("in place, regions lie where call.hpp says") {
  const Rank n = 4, r = 2;
  struct {
    Collective kind;
    Region in, out;
    Count in_size, out_size;
  } const rows[] = {
      {Collective::allreduce, {Buffer::output, 0, 3}, {Buffer::output, 0, 3}, 0, 3},
      {Collective::broadcast, {Buffer::output, 0, 3}, {Buffer::output, 0, 3}, 0, 3},
      {Collective::reduce, {Buffer::output, 0, 3}, {Buffer::output, 0, 3}, 0, 3},
      {Collective::allgather, {Buffer::output, 6, 3}, {Buffer::output, 0, 12}, 0, 12},
      {Collective::gather, {Buffer::output, 6, 3}, {Buffer::output, 0, 12}, 0, 12},
      {Collective::reduce_scatter, {Buffer::output, 0, 12}, {Buffer::output, 6, 3}, 0, 12},
      {Collective::scatter, {Buffer::input, 0, 12}, {Buffer::input, 6, 3}, 12, 0},
      {Collective::alltoall, {Buffer::output, 0, 12}, {Buffer::output, 0, 12}, 0, 12},
      {Collective::sendrecv, {Buffer::output, 0, 3}, {Buffer::output, 0, 3}, 0, 3},
      // ragged: blocks of 0, 3, 2, 1 and of 0, 1, 2, 3
      {Collective::allgatherv, {Buffer::output, 3, 2}, {Buffer::output, 0, 6}, 0, 6},
      {Collective::reduce_scatterv, {Buffer::output, 0, 6}, {Buffer::output, 1, 2}, 0, 6},
  };
  for (const auto& row : rows) {
    const Call c = call_of(row.kind, 3, r, true);
    CAPTURE(name(row.kind));
    CHECK(input_of(c, n, r) == row.in);
    CHECK(output_of(c, n, r) == row.out);
    CHECK(input_count(c, n, r) == row.in_size);
    CHECK(output_count(c, n, r) == row.out_size);
  }
}

// Blocks of `ragged` from the last rank's to the first's: in the input 5 apart, in the output 7 and behind a gap of 2.
Count backwards(const void*, Rank, Rank peer, bool outgoing) { return outgoing ? (5 - peer) * 5 : 2 + (5 - peer) * 7; }

TEST_CASE("with places every block lies where it should, and the gaps are nobody's") {
  const Rank n = 6;
  for (const Collective kind : {Collective::alltoallv, Collective::allgatherv}) {
    Call c = call_of(kind, 0);
    const Oracle packed(c, n, 7);
    std::vector<std::vector<OracleElement>> due(n);
    for (Rank r = 0; r < n; ++r) due[r] = output(packed, c, n, r);
    c.places = backwards;
    const Oracle placed(c, n, 7);
    for (Rank r = 0; r < n; ++r) {
      CAPTURE(name(kind));
      CAPTURE(r);
      const Count size = output_count(c, n, r);
      std::vector<OracleElement> found(size, 1);
      placed.output(r, found);
      Count i = 0, filled = 0, end = 0;
      for (Rank p = 0; p < n; ++p) {
        const Count length = ragged(nullptr, p, kind == Collective::alltoallv ? r : 0);
        const Count begin = backwards(nullptr, r, p, false);
        for (Count k = 0; k < length; ++k) CHECK(found.at(begin + k) == due[r].at(i++));
        if (length) end = std::max(end, begin + length);
        filled += length;
      }
      CHECK(size == end);
      CHECK(Count(std::count(found.begin(), found.end(), OracleElement(1))) == size - filled);
    }
    c.in_place = kind == Collective::allgatherv;  // ragged is not symmetric, as an all-to-all-v in place needs it
    for (Rank r = 0; r < n && c.in_place; ++r) {
      const Count length = ragged(nullptr, r, 0);
      CHECK(input_of(c, n, r) == Region{Buffer::output, length ? backwards(nullptr, r, r, false) : 0, length});
    }
  }
}
