#include "sim/scenario/judge/baseline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libgccl/json/reader.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

// What makes two rows the same point, but for how the call is cut up.
constexpr const char* kIdentity[] = {"cluster",   "label", "world_ranks", "engine",  "collective",
                                     "algorithm", "ranks", "groups",      "bytes",   "count",
                                     "dtype",     "op",    "root",        "in_place"};
constexpr const char* kSlicing[] = {"shares", "lanes", "window"};

const Json& field(const Json& row, const char* key) {
  static const Json kNone;
  const auto at = row.find(key);
  return at == row.end() ? kNone : *at;
}

// Where the planner decided in both rows how the call is cut up (older results do not say), that is part of
// what came out.
bool planned(const Json& stored, const Json& row) {
  return field(row, "planned") == true && field(stored, "planned") != false;
}

std::vector<std::string> differences(const Json& stored, const Json& row) {
  std::vector<std::string> keys;
  const auto compare = [&](const char* key) {
    if (field(stored, key) != field(row, key)) keys.emplace_back(key);
  };
  for (const char* key : kIdentity) compare(key);
  if (!planned(stored, row))
    for (const char* key : kSlicing) compare(key);
  return keys;
}

bool same_slicing(const Json& stored, const Json& row) {
  return std::all_of(std::begin(kSlicing), std::end(kSlicing),
                     [&](const char* key) { return field(stored, key) == field(row, key); });
}

bool is_auto(const Json& row) { return field(row, "auto") == true; }

}  // namespace

std::optional<std::size_t> same_point(const ResultRows& rows, std::size_t run, const ResultRow& row) {
  std::optional<std::size_t> chosen;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ResultRow& r = rows[i];
    if (r.run != run || r.world_ranks != row.world_ranks || r.cluster != row.cluster || r.engine != row.engine)
      continue;
    if (!row.single) return i;
    const auto &a = r.stated_bytes, &b = row.stated_bytes;
    if (std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) == a.end()) continue;
    if (r.algorithm == row.algorithm) return i;
    if (r.automatic && row.automatic) chosen = i;
  }
  return chosen;
}

std::vector<const Json*> same_rows(const Json& stored, const Json& row) {
  std::vector<const Json*> alike, cut_otherwise, chosen;
  for (const Json& other : stored) {
    const auto differ = differences(other, row);
    if (differ.empty()) {
      (same_slicing(other, row) ? alike : cut_otherwise).push_back(&other);
    } else if (is_auto(row) && is_auto(other) && differ == std::vector<std::string>{"algorithm"}) {
      chosen.push_back(&other);
    }
  }
  return !alike.empty() ? alike : !cut_otherwise.empty() ? cut_otherwise : chosen;
}

std::string nearest_row(const Json& stored, const Json& row) {
  const Json* nearest = nullptr;
  std::vector<std::string> least;
  for (const Json& other : stored)
    if (auto differ = differences(other, row); !nearest || differ.size() < least.size())
      nearest = &other, least = std::move(differ);
  std::string text;
  for (const std::string& key : least)
    text += fmt::format("{}{} {} instead of {}", text.empty() ? "; the nearest has " : ", ", key,
                        nearest->contains(key) ? json::format_value((*nearest)[key]) : "none",
                        json::format_value(field(row, key.c_str())));
  return text;
}

}  // namespace gccl::sim
