// What decides on the algorithm of a call before the planner's own rules do: the call itself, then the environment,
// then a tuning table.
#pragma once

#include <memory>
#include <vector>

#include "libgccl/select/algorithm_lists.hpp"
#include "libgccl/select/overrides.hpp"
#include "libgccl/select/tuning_table.hpp"

namespace gccl {

// In the order in which they are asked.
enum class Authority : std::uint8_t { call, named, lists, table, measured, model };
// As users know them.
constexpr std::string_view kAuthorities[] = {
    "the call", "GCCL_ALGORITHM", "GCCL_ALGO", "GCCL_TUNING_FILE", "the transport's own rules", "the model"};
constexpr std::string_view name(Authority a) { return kAuthorities[std::size_t(a)]; }

struct Authorities {
  Overrides named{};                           // GCCL_ALGORITHM
  AlgorithmLists lists{};                      // GCCL_ALGO
  std::shared_ptr<const TuningTable> table{};  // GCCL_TUNING_FILE; null: none
  PreparedTable entries{};                     // of the table, for one communicator

  // Bytes from which on a list or an entry of the table decides, or no longer does.
  std::vector<Count> borders(Collective kind) const {
    std::vector<Count> all;
    lists.borders(kind, all);
    entries.borders(kind, all);
    return all;
  }

  // Those of the environment that ask for something.
  std::vector<Authority> stated() const {
    std::vector<Authority> all;
    if (!named.text().empty()) all.push_back(Authority::named);
    if (!lists.text().empty()) all.push_back(Authority::lists);
    if (table) all.push_back(Authority::table);
    return all;
  }

  // For a communicator of so many ranks on so many nodes.
  Authorities on(Rank ranks, Rank nodes) const {
    Authorities a = *this;
    if (table) a.entries = PreparedTable(*table, ranks, nodes);
    return a;
  }
};

}  // namespace gccl
