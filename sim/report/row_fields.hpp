// What the rows of a result say, whatever is missing or strange in them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "libgccl/json/reader.hpp"

namespace gccl::sim::row_fields {

using Json = nlohmann::json;
using Rows = std::vector<const Json*>;

inline constexpr const char* kDimensions[] = {"chunks", "channels", "window", "protocol", "planner"};

inline std::string text(const Json& row, const char* key) {
  const auto at = row.find(key);
  return at != row.end() && at->is_string() ? at->get<std::string>() : "";
}
inline double number(const Json& row, const char* key) {
  const auto at = row.find(key);
  return at != row.end() && at->is_number() ? at->get<double>() : NAN;
}
inline std::uint64_t whole(const Json& row, const char* key, std::uint64_t otherwise = 0) {
  const double x = number(row, key);
  return x >= 0 && x < 1e18 ? std::uint64_t(x) : otherwise;
}
inline bool is_sequence(const Json& row) { return text(row, "collective") == "sequence" || row.contains("operations"); }

// Groups in the order of their first rows.
template <class Key>
std::vector<Rows> grouped(const Rows& rows, Key key) {
  std::vector<Rows> groups;
  std::map<decltype(key(*rows[0])), std::size_t> places;
  for (const Json* row : rows) {
    const auto [at, fresh] = places.try_emplace(key(*row), groups.size());
    if (fresh) groups.emplace_back();
    groups[at->second].push_back(row);
  }
  return groups;
}

inline std::size_t kinds(const Rows& rows, const char* key) {
  std::set<std::string> values;
  for (const Json* row : rows) values.insert(row->contains(key) ? json::format_value(row->at(key)) : "");
  return values.size();
}

// Chunks, channels, window, protocol or planner as the run states it; what the planner decided does not distinguish
// rows.
inline std::string stated(const Json& row, const char* key) {
  if (key == std::string_view("planner")) return text(row, key);
  const bool protocol = key == std::string_view("protocol");
  if (row.value(protocol ? "protocol_planned" : "planned", Json(protocol)) == true || !row.contains(key)) return "";
  return protocol ? text(row, key) : json::format_value(row.at(key));
}

inline bool stated_differs(const Rows& rows, const char* key) {
  return std::ranges::any_of(rows, [&](const Json* r) { return stated(*r, key) != stated(*rows[0], key); });
}

inline std::string parts_of(const Json& row, std::initializer_list<const char*> keys) {
  std::string all;
  for (const char* key : keys) all += row.contains(key) ? json::format_value(row[key]) + ' ' : "- ";
  return all;
}

// How many ranks there are for each that takes part: with the ranks and the groups it says of how many ranks.
inline std::string part_of_world(const Json& row) {
  const double part = number(row, "ranks") * double(whole(row, "groups", 1));
  return part > 0 ? fmt::format("{}", number(row, "world_ranks") / part) : "";
}

}  // namespace gccl::sim::row_fields
