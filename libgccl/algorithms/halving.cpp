#include "libgccl/algorithms/halving.hpp"

#include <array>

namespace gccl {
namespace {

// One round of the reduce-scatter as number `rank` sees it: which parts it gives to whom, and which it takes from whom.
// Both are `length` parts long and may wrap around from part n-1 to part 0.
struct Round {
  Rank to, from;
  Count give, take, length;
};

unsigned rounds(Rank n) { return unsigned(std::bit_width(n - 1)); }

// The part distance over which round k sends, and how many parts.
struct Span {
  Rank distance, length;
};

Span span_of(Rank n, unsigned k) {
  Rank open = n;  // parts that are not given away yet: n, ceil(n/2), ceil(n/4), ...
  for (unsigned i = 0; i < k; ++i) open -= open / 2;
  return {open - open / 2, open / 2};
}

Round round_of(Rank n, Rank rank, unsigned k) {
  const auto [distance, length] = span_of(n, k);
  if (std::has_single_bit(n)) {
    const Rank partner = rank ^ distance;
    return {partner, partner, partner & ~(distance - 1), rank & ~(distance - 1), length};
  }
  const Rank to = Rank((Count(rank) + distance) % n), from = Rank((Count(rank) + n - distance) % n);
  return {to, from, to, rank, length};
}

// The piece of parts first .. first+length-1 (mod n) before the end of the vector, or the one after it.
Region piece(Region x, Count first, Count length, Count n, bool after) {
  const Count before = std::min(length, n - first);
  return after ? x.parts(0, length - before, n) : x.parts(first, before, n);
}

}  // namespace

Schedule halving_reduce_scatter(Numbering g, Region in, Region work, Region mine) {
  const Rank n = g.size;
  if (n == 1) co_yield copy(in, mine);
  // With an odd n the first round leaves one part that is kept but gets nothing: it must join the partial sums.
  if (n > 1 && n % 2) {
    const Count single = (Count(g.rank) + n / 2) % n;
    co_yield copy(in.part(single, n), work.part(single, n));
  }
  for (unsigned k = 0; k < rounds(n); ++k) {
    const Round r = round_of(n, g.rank, k);
    const Region have = k == 0 ? in : work;
    for (int after = 0; after < 2; ++after) {
      co_yield send(g[r.to], piece(have, r.give, r.length, n, after));
      const Region take = piece(have, r.take, r.length, n, after);
      const bool last = k + 1 == rounds(n) && !after;
      co_yield recv_reduce(g[r.from], take, last ? mine : piece(work, r.take, r.length, n, after));
    }
  }
}

Schedule doubling_all_gather(Numbering g, Region x) {
  const Rank n = g.size;
  for (unsigned k = rounds(n); k-- > 0;) {
    const Round r = round_of(n, g.rank, k);
    for (int after = 0; after < 2; ++after) {
      co_yield send(g[r.from], piece(x, r.take, r.length, n, after));
      co_yield recv(g[r.to], piece(x, r.give, r.length, n, after));
    }
  }
}

namespace {

// The time of the rounds of one rank, whose parts lie at the same places from its own on every rank. A round's message
// leaves when the one before it has left and what it carries is there: parts that an earlier round has not touched
// wait for nobody (never so for a power of two). Rounds of a power of two are exchanges in pairs, all others are
// shifts.
class Way {
 public:
  Way(Rank n, const Paths& p) : pairs_(std::has_single_bit(n)), p_(p) {}

  // `near`: the distance of a power of two's pairs that Numbering::near_first leads to.
  void add(Span s, double part_bytes, Rank near, bool reduces) {
    const Hop& hop = pairs_ ? p_.at(near ? near : s.distance) : p_.round(s.distance);
    const double bytes = s.length * part_bytes;
    Cost begin = left_;
    for (std::size_t i = 0; i < count_; ++i) {
      const Span &touched = reduces ? done_[i].span : s, &other = reduces ? s : done_[i].span;
      if (other.distance < touched.length) begin = std::max(begin, done_[i].end);
    }
    left_ = begin + std::max(p_.model().overhead_ns, bytes * hop.beta_ns_per_byte);
    const Cost end = begin + hop(bytes) + (reduces ? p_.model().combine(bytes) : 0);
    end_ = std::max(end_, end);
    done_[count_++] = {s, end};
  }
  Cost end() const { return end_; }

 private:
  struct Done {
    Span span;
    Cost end;
  };
  bool pairs_;
  const Paths& p_;
  std::array<Done, 32> done_;
  std::size_t count_ = 0;
  Cost left_ = 0, end_ = 0;
};

}  // namespace

Cost halving_reduce_scatter_cost(Rank n, double part_bytes, bool near_first, const Paths& p) {
  Way way(n, p);
  for (unsigned k = 0; k < rounds(n); ++k) way.add(span_of(n, k), part_bytes, near_first ? 1u << k : 0, true);
  return way.end();
}

Cost doubling_all_gather_cost(Rank n, double part_bytes, bool near_first, const Paths& p) {
  Way way(n, p);
  for (unsigned k = rounds(n); k-- > 0;) way.add(span_of(n, k), part_bytes, near_first ? 1u << k : 0, false);
  return way.end();
}

}  // namespace gccl
