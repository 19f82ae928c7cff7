#include "libgccl/select/algorithm_lists.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "gccl/gccl.h"
#include "libgccl/base/nearest.hpp"
#include "libgccl/base/quoted.hpp"
#include "libgccl/base/split_text.hpp"
#include "libgccl/base/units.hpp"
#include "libgccl/select/overrides.hpp"

namespace gccl {
namespace {

using Rule = AlgorithmLists::Rule;
constexpr Count kNoEnd = std::numeric_limits<Count>::max();

// What is wrong with one list.
struct WrongList {
  std::string text;
};

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(at);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string plain(std::string_view name) {
  std::string s;
  for (const char c : name)
    if (c != '_') s += c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  return s;
}

std::optional<Collective> collective_of(std::string_view text) {
  for (const std::string_view known : collective_names())
    if (plain(known) == plain(text)) return collective_named(known);
  return std::nullopt;
}

const Algorithm* row_of(Collective kind, std::string_view text) {
  for (const Algorithm& a : algorithms())
    if (a.kind == kind && plain(a.name) == plain(text)) return &a;
  return has_root(kind) && plain(text) == "ring" ? find_algorithm(kind, "chain") : nullptr;
}

Count bytes_of(std::string_view text, Count otherwise) {
  if (text.empty()) return otherwise;
  const auto bytes = parse_bytes(text);
  if (!bytes) throw WrongList{fmt::format("{} is no size; write 8, 64KiB, 1.5GB ...", quoted(text))};
  return *bytes;
}

// One list between semicolons, as it is written.
struct List {
  std::optional<Collective> kind;
  Count from_bytes = 0, to_bytes = kNoEnd;
  bool excludes = false;
  std::vector<std::string> names;
};

List list_of(std::string_view text) {
  std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() > 3) throw WrongList{fmt::format("{} has more than COLLECTIVE:SIZES:NAMES", quoted(text))};
  List list;
  std::string_view names = parts.back();
  parts.pop_back();
  if (!parts.empty() && parts.back().find('-') != std::string_view::npos) {
    const std::string_view sizes = parts.back();
    parts.pop_back();
    const std::size_t dash = sizes.find('-');
    list.from_bytes = bytes_of(trimmed(sizes.substr(0, dash)), 0);
    list.to_bytes = bytes_of(trimmed(sizes.substr(dash + 1)), kNoEnd);
    if (list.to_bytes <= list.from_bytes) throw WrongList{fmt::format("{} ends before it begins", quoted(sizes))};
  }
  if (parts.size() > 1)
    throw WrongList{fmt::format("{} is no range of sizes, expected FROM-TO such as 0-64KiB", quoted(parts.back()))};
  if (!parts.empty()) {
    list.kind = collective_of(parts[0]);
    if (!list.kind)
      throw WrongList{
          fmt::format("there is no collective {}{}", quoted(parts[0]), suggestion(parts[0], collective_names()))};
  }
  if (names.starts_with('^')) {
    list.excludes = true;
    names.remove_prefix(1);
  }
  for (const std::string& name : split_names(std::string(names))) {
    list.names.emplace_back(trimmed(name));
    if (list.names.back().empty()) throw WrongList{fmt::format("{} lacks the name of an algorithm", quoted(text))};
    if (list.names.back().starts_with('^'))
      throw WrongList{fmt::format("{}: ^ belongs before the first name, and excludes them all", quoted(text))};
  }
  return list;
}

[[noreturn]] void unknown(const std::string& name, std::optional<Collective> kind) {
  throw WrongList{fmt::format("there is no algorithm {}{}{}", quoted(name),
                              kind ? fmt::format(" for {}", gccl::name(*kind)) : "",
                              suggestion(name, algorithm_names(kind)))};
}

// The rule for one collective, which has no rows where none of the names is one of it.
Rule rule_of(const List& list, Collective kind) {
  Rule rule{.kind = kind, .from_bytes = list.from_bytes, .to_bytes = list.to_bytes, .excludes = list.excludes};
  for (const std::string& name : list.names) {
    const Algorithm* const row = row_of(kind, name);
    if (row && !std::ranges::count(rule.rows, row)) rule.rows.push_back(row);
    if (!row && list.kind) unknown(name, kind);
  }
  std::ranges::sort(rule.rows);
  return rule;
}

bool leaves_something(const Rule& rule) {
  return std::ranges::any_of(algorithms(), [&](const Algorithm& a) { return a.kind == rule.kind && rule.offers(a); });
}

void add(const Rule& rule, const std::vector<Rule>& own, std::vector<Rule>& to) {
  for (const Rule& other : own)
    if (other.kind == rule.kind && other.from_bytes < rule.to_bytes && rule.from_bytes < other.to_bytes)
      throw WrongList{fmt::format("two lists are about {} of the same sizes", name(rule.kind))};
  to.push_back(rule);
}

}  // namespace

bool AlgorithmLists::Rule::forbids(const Algorithm& a) const {
  const bool listed = std::ranges::any_of(
      rows, [&](const Algorithm* row) { return row == &a || (row->kind == a.kind && row->name == a.name); });
  return listed == excludes;
}

Status AlgorithmLists::parse(const std::string& text, AlgorithmLists* out) try {
  std::vector<Rule> own, general;  // for one collective; for all
  for (const std::string_view part : split(text, ';')) {
    if (part.empty()) continue;
    const List list = list_of(part);
    if (list.kind) {
      const Rule rule = rule_of(list, *list.kind);
      if (!leaves_something(rule)) throw WrongList{fmt::format("{} leaves no algorithm", quoted(part))};
      add(rule, own, own);
      continue;
    }
    for (const std::string& name : list.names)
      if (std::ranges::none_of(collective_names(),
                               [&](std::string_view kind) { return row_of(*collective_named(kind), name) != nullptr; }))
        unknown(name, std::nullopt);
    const std::vector<Rule> before = general;
    for (std::size_t kind = 0; kind < collective_names().size(); ++kind)
      if (const Rule rule = rule_of(list, Collective(kind)); !rule.rows.empty() && leaves_something(rule))
        add(rule, before, general);
  }
  std::vector<Rule> all = std::move(own);
  all.insert(all.end(), general.begin(), general.end());
  std::ranges::stable_sort(all, {}, [](const Rule& r) { return r.kind; });
  out->rules_ = std::move(all);
  return {};
} catch (const WrongList& wrong) {
  return Status::error(fmt::format("GCCL_ALGO {}: {}", quoted(text), wrong.text), GCCL_ERR_INVALID_ARGUMENT);
}

std::string AlgorithmLists::text() const {
  std::string s;
  for (const Rule& r : rules_) {
    s += fmt::format("{}{}:", s.empty() ? "" : ";", name(r.kind));
    if (r.from_bytes > 0 || r.to_bytes != kNoEnd)
      s += fmt::format("{}-{}:", r.from_bytes, r.to_bytes == kNoEnd ? "" : std::to_string(r.to_bytes));
    for (const Algorithm* row : r.rows) s.append(row == r.rows[0] ? (r.excludes ? "^" : "") : ",").append(row->name);
  }
  return s;
}

const Rule* AlgorithmLists::of(Collective kind, Count bytes) const {
  for (const Rule& r : rules_)
    if (r.kind == kind && r.from_bytes <= bytes && (bytes < r.to_bytes || r.to_bytes == kNoEnd)) return &r;
  return nullptr;
}

void AlgorithmLists::borders(Collective kind, std::vector<Count>& to) const {
  for (const Rule& r : rules_)
    if (r.kind == kind) to.insert(to.end(), {r.from_bytes, r.to_bytes});
}

}  // namespace gccl
