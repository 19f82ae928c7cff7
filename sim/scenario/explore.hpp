// The same campaign with many seeds: what is drawn differs, and so do the losses on wires. The first seed that breaks
// an expectation, and the fewest of its faults that still do.
#pragma once

#include "sim/scenario/run_campaign.hpp"

namespace gccl::sim {

struct SeedRange {
  std::uint64_t first = 1, last = 1;
};
// "1..1000", or one seed. Throws json::InputError; `what` names it in the message.
SeedRange read_seeds(std::string_view text, std::string_view what);

struct BrokenSeed {
  std::uint64_t seed = 0;
  std::vector<std::string> broken;  // expectations, each with what was found
  struct Timeline {
    std::size_t run = 0;
    std::size_t world = 0;  // the first in which the run broke something
    std::size_t of = 0;     // faults that the seed gave
    nlohmann::json faults;  // what is left of them, as a scenario states them
    std::string found;      // the first expectation that these alone break
  };
  std::vector<Timeline> minimal;  // of each run with faults that broke something
};

// The lowest seed that breaks something; nothing where all hold. Throws what run_campaign() throws.
std::optional<BrokenSeed> explore(const Campaign& campaign, const Engines& engines, SeedRange seeds,
                                  const RunOptions& options);

// The fewest items that still fail, of a list that does: Zeller and Hildebrandt, "Simplifying and isolating
// failure-inducing input", IEEE TSE 28(2), 2002: leaving out any one of them would not fail.
template <class T, class Fails>
std::vector<T> minimal(std::vector<T> all, Fails fails) {
  for (std::size_t parts = 2; all.size() > 1;) {
    bool smaller = false;
    for (std::size_t i = 0; i < parts && !smaller; ++i) {
      const auto begin = std::ptrdiff_t(i * all.size() / parts), end = std::ptrdiff_t((i + 1) * all.size() / parts);
      std::vector<T> rest(all.begin(), all.begin() + begin);
      rest.insert(rest.end(), all.begin() + end, all.end());
      if (rest.size() == all.size() || !fails(rest)) continue;
      all = std::move(rest);
      parts = std::max<std::size_t>(2, parts - 1);
      smaller = true;
    }
    if (smaller) continue;
    if (parts >= all.size()) break;
    parts = std::min(all.size(), parts * 2);
  }
  if (all.size() == 1 && fails(std::vector<T>())) all.clear();
  return all;
}

}  // namespace gccl::sim
