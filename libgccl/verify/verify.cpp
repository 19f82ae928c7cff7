#include "libgccl/verify/verify.hpp"

#include <fmt/core.h>

#include "libgccl/base/splitmix.hpp"

namespace gccl {
namespace {

// A reproducible stream of choices.
struct Dice : splitmix::Generator {
  using Generator::Generator;
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }
};

// Block sizes: a quarter empty, the others different; symmetric ones for all-to-all-v in place.
struct Skew {
  Count base;
  bool symmetric;
  Rank ranks;

  static Count count(const void* table, Rank from, Rank to) {
    const Skew& s = *static_cast<const Skew*>(table);
    if (s.symmetric && from > to) std::swap(from, to);
    const std::uint32_t hash = (from * 2654435761u ^ to * 2246822519u) >> 13;
    switch (hash % 4) {
      case 0: return 0;
      case 1: return s.base;
      case 2: return 2 * s.base + 1;
      default: return (s.base + 1) / 2;
    }
  }
  // Blocks in reverse order of ranks, apart from each other, and the output's further apart than the input's.
  static Count place(const void* table, Rank, Rank peer, bool outgoing) {
    const Skew& s = *static_cast<const Skew*>(table);
    return Count(s.ranks - 1 - peer) * (2 * s.base + (outgoing ? 2 : 3));
  }
};

struct SharesAndLanes {
  Count shares, lanes;
};
struct Mode {
  unsigned window;
  Delivery delivery;
  bool replayed = false;  // whole calls alone

  bool allows(SharesAndLanes s) const { return !replayed || s.shares == 1; }
};
struct Named {
  std::string name;
  std::shared_ptr<const Layout> layout;
};

const std::vector<SharesAndLanes> kSlicings = {{1, 1}, {2, 2}, {3, 2}, {5, 3}};
// Where a lane's shares depend on each other's order, as many as are on their way to a root.
const std::vector<SharesAndLanes> kLongSlicings = {{1, 1}, {3, 2}, {6, 3}, {24, 1}, {40, 2}};

const std::vector<SharesAndLanes>& slicings(const Algorithm& a) {
  return a.trail || a.staggered ? kLongSlicings : kSlicings;
}
// 16 is what the runtime plans with, 8 the simulator's default.
const std::vector<Mode> kModes = {{1, Delivery::buffered},   {1, Delivery::buffered, true}, {16, Delivery::buffered},
                                  {2, Delivery::rendezvous}, {2, Delivery::fetched},        {8, Delivery::rendezvous}};

template <class T>
std::vector<T> distinct(std::vector<T> v) {
  std::sort(v.begin(), v.end());
  v.erase(std::unique(v.begin(), v.end()), v.end());
  return v;
}

std::vector<Rank> rank_counts(Rank max) {
  std::vector<Rank> all;
  for (Rank n = 1; n <= 33; ++n) all.push_back(n);
  for (const Rank n : {48, 63, 64, 65, 96, 127, 128, 129, 200, 255, 256, 257, 511, 512, 1000, 1024}) all.push_back(n);
  if (max > 33) all.push_back(max);
  std::erase_if(all, [max](Rank n) { return n > max; });
  return distinct(all);
}

// Everything that can vary for one algorithm on n ranks.
struct Choices {
  std::vector<Count> counts;
  std::vector<Rank> roots = {0};
  std::vector<bool> in_place = {false, true};
  std::vector<bool> placed = {false};
  std::vector<Named> layouts;

  Choices(Collective kind, Rank n, std::uint64_t seed) {
    const Count blocks = counts_blocks(kind) ? n : 1;
    counts = {0, 1, 2, 3, Count(n) - 1, n, Count(n) + 1, 97, 1009};
    // All ranks' buffers together stay near 2^20 elements, or a wide exchange would take the time of all others.
    for (Count& c : counts) c = std::min(c, std::max<Count>(3, (Count(1) << 20) / (blocks * n)));
    if (kind == Collective::barrier) {
      counts = {0};
      in_place = {false};
    }
    counts = distinct(counts);
    if (kind == Collective::alltoallv || kind == Collective::allgatherv) placed = {false, true};
    if (has_root(kind)) roots = distinct(std::vector<Rank>{0, n > 1 ? 1u : 0u, n / 2, n - 1});

    const auto add = [&](std::string name, Layout l) {
      layouts.push_back({std::move(name), std::make_shared<const Layout>(std::move(l))});
    };
    Layout flat = Layout::flat(n);
    flat.columns(n / flat.view(0).columns);  // the others' rows are at least as long as their columns
    add("flat", std::move(flat));
    if (n > 1) add("4 per node", Layout::regular(n, 4));
    if (n > 4) add("8 per node, joined pairwise", Layout::regular(n, 8).wiring(View::Wiring::mesh));
    if (n > 2) {
      Dice dice{seed + n};
      std::vector<Rank> node_of(n);
      for (Rank& node : node_of) node = Rank(dice.below(n / 3 + 2));
      add("irregular", Layout::of(node_of));
    }
  }
};

Case make_case(const Algorithm& a, Count count, Rank root, bool in_place, bool placed, const Named& layout,
               SharesAndLanes slicing, Mode mode, std::uint64_t seed) {
  Case c;
  c.algorithm = &a;
  c.call = {.kind = a.kind, .count = count, .root = root, .in_place = in_place};
  if (has_counts(a.kind)) {
    const bool symmetric = in_place && a.kind == Collective::alltoallv;
    const auto skew = std::make_shared<const Skew>(Skew{count, symmetric, layout.layout->ranks()});
    c.call.counts = Skew::count;
    c.call.table = skew.get();
    if (placed) c.call.places = Skew::place;
    c.table = skew;
  }
  c.layout = layout.layout;
  c.layout_name = layout.name;
  c.shares = slicing.shares;
  c.lanes = slicing.lanes;
  c.window = mode.window;
  c.delivery = mode.delivery;
  c.replayed = mode.replayed;
  c.seed = seed;
  return c;
}

// One algorithm's sweep.
class Sweep {
 public:
  Sweep(const SweepOptions& options, const Algorithm& a) : options_(options), dice_{options.seed} {
    tally_.algorithm = &a;
  }

  Tally run() {
    for (const Rank n : rank_counts(options_.ranks_max)) {
      const Choices choices(tally_.algorithm->kind, n, options_.seed);
      if (n <= (options_.quick ? 4u : 7u)) {
        every(choices);
      } else if (n <= 33) {
        sample(choices, options_.quick ? 5 : 100, options_.quick ? 10'000 : 60'000);
      } else if (!options_.quick || n <= 129) {
        sample(choices, options_.quick ? 1 : 12, 250'000);
      }
      if (tally_.failure) break;
    }
    return std::move(tally_);
  }

 private:
  void every(const Choices& choices) {
    for (const Count count : choices.counts)
      for (const Rank root : choices.roots)
        for (const bool in_place : choices.in_place)
          for (const bool placed : choices.placed)
            for (const Named& layout : choices.layouts)
              for (const SharesAndLanes slicing : slicings(*tally_.algorithm))
                for (const Mode mode : kModes) {
                  if (tally_.failure) return;
                  if (!mode.allows(slicing)) continue;
                  one(make_case(*tally_.algorithm, count, root, in_place, placed, layout, slicing, mode, dice_.next()));
                }
  }

  // Until so many cases or messages are spent, whichever comes first: wide exchanges on many ranks are expensive.
  void sample(const Choices& choices, unsigned cases, std::uint64_t messages) {
    const std::uint64_t end = tally_.messages + messages;
    for (unsigned i = 0; i < cases && tally_.messages < end && !tally_.failure; ++i) {
      const Mode mode = dice_.pick(kModes);
      const SharesAndLanes slicing = dice_.pick(slicings(*tally_.algorithm));
      one(make_case(*tally_.algorithm, dice_.pick(choices.counts), dice_.pick(choices.roots),
                    choices.in_place[dice_.below(choices.in_place.size())],
                    choices.placed[dice_.below(choices.placed.size())], dice_.pick(choices.layouts),
                    mode.allows(slicing) ? slicing : kSlicings.front(), mode, dice_.next()));
    }
  }

  void one(const Case& c) {
    if (!tally_.algorithm->can(c.call, c.layout->view(0))) {
      ++tally_.unfit;
      return;
    }
    ++tally_.cases;
    tally_.failure = verify(c, &tally_.messages);
  }

  const SweepOptions& options_;
  Dice dice_;
  Tally tally_;
};

}  // namespace

std::string describe(const Case& c) {
  constexpr std::array kDeliveries{"buffered", "rendezvous", "fetched"};
  return fmt::format("{} {}: ranks {} ({}), count {}{}, {}{}, chunks {}, channels {}, window {} {}{}, seed {}",
                     name(c.call.kind), c.algorithm->name, c.ranks(), c.layout_name, c.call.count,
                     has_root(c.call.kind) ? fmt::format(", root {}", c.call.root) : "",
                     c.call.in_place ? "in place" : "out of place", c.call.places ? ", blocks apart" : "", c.shares,
                     c.lanes, c.window, kDeliveries[std::size_t(c.delivery)], c.replayed ? " replayed" : "", c.seed);
}

std::optional<Counterexample> verify(const Case& c, std::uint64_t* messages) {
  const auto failure = [&](FaultKind kind, const std::string& text) {
    return Counterexample{kind, fmt::format("{}: {}: {}", describe(c), name(kind), text)};
  };
  const Rank n = c.ranks();
  for (Rank r = 0; r < n; ++r)
    if (!c.algorithm->can(c.call, c.layout->view(r)))
      return failure(FaultKind::fits_differs, fmt::format("rank {} cannot serve the call", r));

  const bool barrier = c.call.kind == Collective::barrier;
  const Rank runs = barrier ? std::min<Rank>(n, 32) : 1;
  for (Rank i = 0; i < runs; ++i) {
    Memory memory(c, barrier ? Rank((c.seed + Count(i) * n / runs) % n) : n);
    const std::optional<Fault> fault = memory.run();
    if (messages) *messages += memory.messages();
    if (fault) return failure(fault->kind, fault->text);
  }
  return std::nullopt;
}

std::vector<Tally> sweep(const SweepOptions& options, std::span<const Algorithm> table,
                         const std::function<void(const Tally&)>& progress) {
  std::vector<Tally> tallies;
  for (const Algorithm& a : table) {
    if (options.collective && *options.collective != a.kind) continue;
    if (!options.algorithm.empty() && options.algorithm != a.name) continue;
    tallies.push_back(Sweep(options, a).run());
    if (progress) progress(tallies.back());
  }
  return tallies;
}

}  // namespace gccl
