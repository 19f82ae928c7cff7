#include "libgccl/algorithms/parts/halving.hpp"

namespace gccl {

Span halving_span(Rank n, unsigned k) {
  if (std::has_single_bit(n)) return {n >> (k + 1), n >> (k + 1)};
  Rank open = n;  // parts that are not given away yet: n, ceil(n/2), ceil(n/4), ...
  for (unsigned i = 0; i < k; ++i) open -= open / 2;
  return {open - open / 2, open / 2};
}

namespace {

// One round of the reduce-scatter as number `rank` sees it: which parts it gives to whom, and which it takes from whom.
// Both are `length` parts long and may wrap around from part n-1 to part 0.
struct Round {
  Rank to, from;
  Rank give, take, length;
};

unsigned rounds(Rank n) { return unsigned(std::bit_width(n - 1)); }

Round round_of(Rank n, Rank rank, unsigned k) {
  const auto [distance, length] = halving_span(n, k);
  if (std::has_single_bit(n)) {
    const Rank partner = rank ^ distance;
    return {partner, partner, partner & ~(distance - 1), rank & ~(distance - 1), length};
  }
  const Rank to = Rank((Count(rank) + distance) % n), from = Rank((Count(rank) + n - distance) % n);
  return {to, from, to, rank, length};
}

// How many pieces the parts of a round lie in.
int pieces(Rank n) { return std::has_single_bit(n) ? 1 : 2; }

// The piece of parts first .. first+length-1 (mod n) before the end of the vector, or the one after it.
Region piece(const Region& x, Count first, Count length, Count n, int after) {
  const Count before = std::min(length, n - first);
  return after ? x.parts(0, length - before, n) : x.parts(first, before, n);
}

}  // namespace

Schedule halving_reduce_scatter(Numbering g, Region in, Region work, Region mine) {
  const Rank n = g.size;
  Step step = copy(in, mine);
  if (n == 1) co_yield step;
  // With an odd n the first round leaves one part that is kept but gets nothing: it must join the partial sums.
  if (n > 1 && n % 2) {
    const Count single = (Count(g.rank) + n / 2) % n;
    step = copy(in.part(single, n), work.part(single, n));
    co_yield step;
  }
  for (unsigned k = 0; k < rounds(n); ++k) {
    const Round r = round_of(n, g.rank, k);
    for (int after = 0; after < pieces(n); ++after) {
      const Region& have = k == 0 ? in : work;
      step = send(g[r.to], piece(have, r.give, r.length, n, after));
      co_yield step;
      const bool last = k + 1 == rounds(n) && !after;
      step = recv_reduce(g[r.from], piece(have, r.take, r.length, n, after),
                         last ? mine : piece(work, r.take, r.length, n, after));
      co_yield step;
    }
  }
}

Schedule doubling_all_gather(Numbering g, Region x) {
  const Rank n = g.size;
  Step step;
  for (unsigned k = rounds(n); k-- > 0;) {
    const Round r = round_of(n, g.rank, k);
    for (int after = 0; after < pieces(n); ++after) {
      step = send(g[r.from], piece(x, r.take, r.length, n, after));
      co_yield step;
      step = recv(g[r.to], piece(x, r.give, r.length, n, after));
      co_yield step;
    }
  }
}

namespace {

// The hop of round k, which is over that distance. Among a power of two ranks rounds are exchanges in pairs, else
// shifts.
Hop hop_of(bool power, unsigned k, Rank distance, bool near_first, bool gathers, const Paths& p) {
  if (power) return p.at(near_first ? 1u << k : distance);
  return gathers ? p.doubling(k, distance) : p.halving(k, distance);
}

}  // namespace

Rounds halving_rounds(Rank n, double part_bytes, bool near_first, const Paths& p) {
  Rounds all(n, p.channels(), p.model(), true, p.one_node());
  const bool power = std::has_single_bit(n);
  for (unsigned k = 0; k < rounds(n); ++k) {
    const Span s = halving_span(n, k);
    const double bytes = s.length * part_bytes;
    all.add(s, bytes, hop_of(power, k, s.distance, near_first, false, p), p.model().combine(bytes));
  }
  return all;
}

namespace {

// What the busiest link carries in so many phases, which send alike. Off powers of two it is not kept busy from round
// to round, even where nothing else takes time.
Cost busiest_link(Rank n, double part_bytes, bool near_first, int phases, const Paths& p) {
  return phases * p.channels() * n * part_bytes * p.halving_ns_per_byte(near_first);
}

}  // namespace

Cost halving_reduce_scatter_cost(Rank n, double part_bytes, bool near_first, const Paths& p) {
  const Cost busiest = busiest_link(n, part_bytes, near_first, 1, p);
  if (p.model().links_alone && std::has_single_bit(n) && busiest > 0) return busiest;
  return std::max(busiest, halving_rounds(n, part_bytes, near_first, p).end());
}

// Off powers of two channels gain less by being apart, and begin anew.
Cost halving_all_reduce_cost(Rank n, double part_bytes, bool near_first, const Paths& p) {
  const Cost busiest = busiest_link(n, part_bytes, near_first, 2, p);
  const bool power = std::has_single_bit(n);
  if (p.model().links_alone && power && busiest > 0) return busiest;
  const Rounds scattered = halving_rounds(n, part_bytes, near_first, p);
  Rounds all = power ? Rounds(n, p.channels(), p.model(), false, p.one_node(), scattered)
                     : Rounds(n, p.channels(), p.model(), false, p.one_node());
  for (unsigned k = rounds(n); k-- > 0;) {
    const Span s = halving_span(n, k);
    all.add(s, s.length * part_bytes, hop_of(power, k, s.distance, near_first, true, p));
  }
  return std::max(busiest, power ? all.end() : scattered.end() + all.end());
}

}  // namespace gccl
