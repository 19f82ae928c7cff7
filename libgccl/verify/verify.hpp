// The prover: runs algorithms through the Memory backend over a sweep of ranks, counts, roots, layouts, slicings,
// windows and deliveries, and holds every output element against the oracle.
#pragma once

#include <functional>

#include "libgccl/verify/memory.hpp"

namespace gccl {

struct Counterexample {
  FaultKind kind;
  std::string text;  // the whole case, then what is wrong
};

// Runs one case; null when it is proved. A barrier is run once for each of up to 32 ranks that enter last. `messages`,
// when given, grows by the messages that travelled. Requires layout->ranks() >= 1, shares, lanes and window >= 1, and
// an algorithm that can serve the call on this layout.
std::optional<Counterexample> verify(const Case& c, std::uint64_t* messages = nullptr);

// A case in one line: collective, algorithm, ranks, layout, count, root, in place, shares, lanes, window, delivery,
// seed.
std::string describe(const Case& c);

struct SweepOptions {
  std::optional<Collective> collective{};  // absent: all
  std::string algorithm{};                 // empty: all
  Rank ranks_max = 257;
  std::uint64_t seed = 1;
  bool quick = false;  // seconds rather than minutes; no more than 129 ranks
};

// What became of one algorithm.
struct Tally {
  const Algorithm* algorithm = nullptr;
  std::uint64_t cases = 0;  // run
  std::uint64_t unfit = 0;  // left out because the algorithm cannot serve them
  std::uint64_t messages = 0;
  std::optional<Counterexample> failure;  // the first; the algorithm's sweep ends there

  bool proved() const { return cases > 0 && !failure; }
};

// Small rank counts with every combination, larger ones up to ranks_max by a sample that the seed determines.
// `progress` may be empty; it is called after each algorithm. The result has a tally for each algorithm of `table`
// asked for.
std::vector<Tally> sweep(const SweepOptions& options, std::span<const Algorithm> table = algorithms(),
                         const std::function<void(const Tally&)>& progress = {});

}  // namespace gccl
