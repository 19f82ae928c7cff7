#include "sim/scenario/judge/baseline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libgccl/json/reader.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

// What makes two rows the same point.
constexpr const char* kIdentity[] = {"cluster", "label",    "world_ranks", "engine", "collective", "algorithm",
                                     "ranks",   "groups",   "bytes",       "count",  "dtype",      "op",
                                     "root",    "in_place", "shares",      "lanes",  "window"};

const Json& field(const Json& row, const char* key) {
  static const Json kNone;
  const auto at = row.find(key);
  return at == row.end() ? kNone : *at;
}

std::vector<std::string> differences(const Json& row, const Json& other) {
  std::vector<std::string> keys;
  for (const char* key : kIdentity)
    if (field(row, key) != field(other, key)) keys.emplace_back(key);
  return keys;
}

bool is_auto(const Json& row) { return field(row, "auto") == true; }

}  // namespace

std::optional<std::size_t> same_point(const ResultRows& rows, std::size_t run, const Json& row) {
  std::optional<std::size_t> chosen;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& r = rows[i];
    if (r.at("run") != run) continue;
    if (r.at("cluster") != row.at("cluster") || r.at("world_ranks") != row.at("world_ranks") ||
        r.at("engine") != row.at("engine"))
      continue;
    if (!is_single(row)) return i;
    const Json &a = r.at("stated_bytes"), &b = row.at("stated_bytes");
    if (std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) == a.end()) continue;
    if (r.at("algorithm") == row.at("algorithm")) return i;
    if (is_auto(r) && is_auto(row)) chosen = i;
  }
  return chosen;
}

const Json* same_row(const Json& stored, const Json& row) {
  const Json* chosen = nullptr;
  for (const Json& other : stored) {
    const auto differ = differences(other, row);
    if (differ.empty()) return &other;
    if (is_auto(row) && is_auto(other) && differ == std::vector<std::string>{"algorithm"}) chosen = &other;
  }
  return chosen;
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
