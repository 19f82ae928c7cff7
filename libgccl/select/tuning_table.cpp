#include "libgccl/select/tuning_table.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "gccl/gccl.h"
#include "libgccl/base/nearest.hpp"
#include "libgccl/base/quoted.hpp"

namespace gccl {
namespace {

using Entry = TuningTable::Entry;

bool overlap(const Entry& a, const Entry& b) {
  return a.algorithm->kind == b.algorithm->kind && a.from_bytes < b.to_bytes && b.from_bytes < a.to_bytes &&
         a.ranks_min <= b.ranks_max && b.ranks_min <= a.ranks_max && a.nodes_min <= b.nodes_max &&
         b.nodes_min <= a.nodes_max;
}

Status other_machine(const TuningTable& table, const char* pointer, const std::string& what) {
  return Status::error(fmt::format("{}: /machine/{}: {}", table.file, pointer, what), GCCL_ERR_INVALID_ARGUMENT);
}

}  // namespace

std::string TuningTable::place(const Entry& entry) const {
  return fmt::format("{}: /entries/{}", file, &entry - entries.data());
}

std::pair<const Entry*, const Entry*> overlapping(std::span<const Entry> all) {
  // Only those of a collective that begin before an entry's last byte can meet it.
  std::vector<const Entry*> sorted;
  for (const Entry& e : all) sorted.push_back(&e);
  const auto order = [](const Entry* e) { return std::pair(e->algorithm->kind, e->from_bytes); };
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Entry* a, const Entry* b) { return order(a) < order(b); });
  for (std::size_t i = 0; i < sorted.size(); ++i)
    for (std::size_t j = i + 1; j < sorted.size() && sorted[j]->algorithm->kind == sorted[i]->algorithm->kind &&
                                sorted[j]->from_bytes < sorted[i]->to_bytes;
         ++j)
      if (overlap(*sorted[i], *sorted[j])) return {std::max(sorted[i], sorted[j]), std::min(sorted[i], sorted[j])};
  return {};
}

Status check_machine(const TuningTable& table, const TunedMachine& here) {
  const TuningTable::Machine& m = table.machine;
  if (!here.cluster.empty() && here.cluster != m.cluster)
    return other_machine(table, "cluster",
                         fmt::format("the table is for {}, this is {}", quoted(m.cluster), quoted(here.cluster)));
  if (here.nodes > m.nodes)
    return other_machine(
        table, "nodes",
        fmt::format("found {}, but this job has {}: the table is for another machine", m.nodes, here.nodes));
  if (here.ranks_per_node > m.cards_per_node)
    return other_machine(table, "cards_per_node",
                         fmt::format("found {}, but a node of this job has {} ranks: the table is for another machine",
                                     m.cards_per_node, here.ranks_per_node));
  if (!m.backends.empty() && m.backends != here.backends)
    return other_machine(table, "backends",
                         fmt::format("the table is for {}, this machine has {}", quoted(m.backends),
                                     here.backends.empty() ? "no transports of GCCL's" : quoted(here.backends)));
  for (const Entry& e : table.entries) {
    if (e.algorithm->in_switch && std::ranges::count(here.unsummed, e.protocol))
      return Status::error(
          fmt::format("{}/protocol: found {}, by which switches do not sum (its \"in_switch\" is false), for {}, which "
                      "leaves summing to them; expected another one",
                      table.place(e), quoted(e.protocol), e.algorithm->name),
          GCCL_ERR_INVALID_ARGUMENT);
    if (here.nodes > 1 && e.nodes_max > 1 && std::ranges::count(here.inside, e.protocol))
      return Status::error(
          fmt::format(
              "{}/protocol: found {}, which is for calls inside one node here (its \"network\" is false); expected "
              "another one, or \"nodes_max\": 1",
              table.place(e), quoted(e.protocol)),
          GCCL_ERR_INVALID_ARGUMENT);
    if (e.protocol.empty() || std::ranges::count(here.protocols, e.protocol)) continue;
    return Status::error(
        fmt::format("{}/protocol: found {}{}", table.place(e), quoted(e.protocol),
                    here.protocols.empty() ? ", but here calls have no protocols to choose from: leave it out"
                                           : suggestion(e.protocol, here.protocols)),
        GCCL_ERR_INVALID_ARGUMENT);
  }
  return {};
}

PreparedTable::PreparedTable(const TuningTable& table, Rank ranks, Rank nodes) : table_(&table) {
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    begin_[kind] = std::uint32_t(rows_.size());
    for (const Entry& e : table.entries)
      if (e.algorithm->kind == Collective(kind) && e.covers(ranks, nodes))
        rows_.push_back({e.from_bytes, e.to_bytes, &e});
    std::sort(rows_.begin() + begin_[kind], rows_.end(), [](const Row& a, const Row& b) { return a.from < b.from; });
  }
  begin_[kKinds] = std::uint32_t(rows_.size());
}

const Entry* PreparedTable::find(Collective kind, Count bytes) const {
  const auto first = rows_.begin() + begin_[std::size_t(kind)], last = rows_.begin() + begin_[std::size_t(kind) + 1];
  const auto after = std::upper_bound(first, last, bytes, [](Count b, const Row& r) { return b < r.from; });
  if (after == first) return nullptr;
  const Row& row = *std::prev(after);
  return bytes < row.to || row.to == Entry::kNoEnd ? row.entry : nullptr;
}

void PreparedTable::borders(Collective kind, std::vector<Count>& to) const {
  for (std::size_t i = begin_[std::size_t(kind)]; i < begin_[std::size_t(kind) + 1]; ++i)
    to.insert(to.end(), {rows_[i].from, rows_[i].to});
}

}  // namespace gccl
