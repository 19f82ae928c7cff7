#include "sim/scenario/judge/baseline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libgccl/json/reader.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

// What makes two rows the same point, but for how the call is cut up and its protocol.
constexpr const char* kIdentity[] = {"cluster", "label",    "world_ranks", "engine", "collective", "algorithm",
                                     "ranks",   "groups",   "bytes",       "count",  "dtype",      "op",
                                     "root",    "in_place", "planner",     "repeats"};
constexpr const char* kSlicing[] = {"chunks", "channels", "window"};

const Json& field(const Json& row, const char* key) {
  static const Json kNone;  // of repeats it is once
  const auto at = row.find(key);
  return at == row.end() ? kNone : *at;
}

// Where the planner decided in both rows how the call is cut up (older results do not say), that is part of
// what came out.
bool planned(const Json& stored, const Json& row) {
  return field(row, "planned") == true && field(stored, "planned") != false;
}

bool stated_protocol(const Json& row) { return field(row, "protocol_planned") == false; }

std::vector<std::string> differences(const Json& stored, const Json& row) {
  std::vector<std::string> keys;
  const auto compare = [&](const char* key) {
    if (field(stored, key) != field(row, key)) keys.emplace_back(key);
  };
  for (const char* key : kIdentity) compare(key);
  if (!planned(stored, row))
    for (const char* key : kSlicing) compare(key);
  if (stated_protocol(row) || stated_protocol(stored)) compare("protocol");
  return keys;
}

bool carried_out_alike(const Json& stored, const Json& row) {
  const auto same = [&](const char* key) { return field(stored, key) == field(row, key); };
  return same("protocol") && std::all_of(std::begin(kSlicing), std::end(kSlicing), same);
}

bool is_auto(const Json& row) { return field(row, "auto") == true; }

std::string shown(const Json& row, const std::string& key) {
  return row.contains(key) ? json::format_value(row[key]) : key == "repeats" ? "1" : "none";
}

}  // namespace

Json with_present_names(Json rows) {
  for (Json& row : rows)
    for (const auto& [once, now] : {std::pair{"shares", "chunks"}, {"lanes", "channels"}}) {
      const auto old = row.find(once);
      if (old == row.end()) continue;
      Json value = std::move(*old);
      row.erase(old);
      row.emplace(now, std::move(value));
    }
  return rows;
}

std::optional<std::size_t> same_point(const ResultRows& rows, std::size_t run, const ResultRow& row) {
  std::optional<std::size_t> chosen;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ResultRow& r = rows[i];
    if (r.run != run || r.world_ranks != row.world_ranks || r.cluster != row.cluster || r.engine != row.engine)
      continue;
    if (!row.single) return i;
    const auto &a = r.stated_bytes, &b = row.stated_bytes;
    const bool stated_alike = std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
    const auto same = [&](const char* key) { return field(*r.json, key) == field(*row.json, key); };
    if (!stated_alike && !(same("bytes") && same("dtype"))) continue;  // what was stated may be rounded to one size
    if (r.algorithm == row.algorithm) return i;
    if (r.automatic && row.automatic) chosen = i;
  }
  return chosen;
}

std::vector<const Json*> same_rows(const Json& stored, const Json& row) {
  std::vector<const Json*> alike, otherwise, chosen;
  for (const Json& other : stored) {
    const auto differ = differences(other, row);
    if (differ.empty()) {
      (carried_out_alike(other, row) ? alike : otherwise).push_back(&other);
    } else if (is_auto(row) && is_auto(other) && differ == std::vector<std::string>{"algorithm"}) {
      chosen.push_back(&other);
    }
  }
  return !alike.empty() ? alike : !otherwise.empty() ? otherwise : chosen;
}

std::string nearest_row(const Json& stored, const Json& row) {
  const Json* nearest = nullptr;
  std::vector<std::string> least;
  for (const Json& other : stored)
    if (auto differ = differences(other, row); !nearest || differ.size() < least.size())
      nearest = &other, least = std::move(differ);
  std::string text;
  for (const std::string& key : least)
    text += fmt::format("{}{} {} instead of {}", text.empty() ? "; the nearest has " : ", ", key, shown(*nearest, key),
                        shown(row, key));
  return text;
}

}  // namespace gccl::sim
