// From the sizes that were simulated to ranges of sizes.
#pragma once

#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "sim/tuning/counterparts.hpp"

namespace gccl::sim {

// What serves calls of `from` bytes or more and less than `to`.
struct Segment {
  Count from = 0, to = 0;
  const nlohmann::json* tried = nullptr;  // of the smallest size in it, simulated or estimated; null: the library has
                                          // no such algorithm, or nothing is known there
  const nlohmann::json* cell = nullptr;   // or place of "between", of that size
  bool as_good = false;                   // what the library chooses by itself serves as well
};

// One collective on one number of ranks.
struct TunedCalls {
  Collective kind{};
  Rank ranks = 0, nodes = 0;
  std::vector<Segment> segments;  // side by side, from 0 to the largest size simulated
};

// Of sizes of the sweep the fastest found; of those between them that were simulated, of what is within 2 % of the
// fastest, what is nearest to it at the sizes beside; of the others what is estimated to be the fastest. Between two
// sizes the middle of the way on a logarithmic scale is the border. What is shorter than half the smallest size is a
// segment of nothing, unless that size is at most 128 B, or 8 B for each rank where ranks have blocks. Neighbours that
// are carried out alike are one segment; `library`: what it has alone, and chunks do not matter where it cannot cut up
// calls as GCCL does. Sizes that were to be searched and have no result, such as those of an interrupted sweep, are
// segments of nothing. `gain_percent`: as in Exporting.
std::vector<TunedCalls> tuned_calls(const nlohmann::json& document, std::optional<Library> library,
                                    double gain_percent = 0);

// The fastest in the cell, or place of "between", that the library has, null where there is none; without a library the
// fastest.
const nlohmann::json* fastest(const nlohmann::json& cell, std::optional<Library> library);
// What the library's file names at the cell; null where it leaves the call to the library's own choice.
const nlohmann::json* exported(const nlohmann::json& cell, Library library, const Exporting& how);
// What the library chooses by itself at the cell or place where that is faster than `named`, or as good (Exporting);
// null where it is not, or is not known.
const nlohmann::json* as_good(const nlohmann::json& cell, const nlohmann::json& named, Library library,
                              double gain_percent);
// Whether two plans of "tried" agree in these.
bool alike(const nlohmann::json& a, const nlohmann::json& b, std::initializer_list<const char*> in);
// The time of a plan of "tried" by that of the fastest, where the plan was simulated at another size; else without
// limit.
double behind(const nlohmann::json& plan, const nlohmann::json& cell, std::optional<Library> library = std::nullopt);
Counterpart counterpart_of(const nlohmann::json& cell, const nlohmann::json& tried, Library library);

}  // namespace gccl::sim
