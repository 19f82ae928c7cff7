// The rows of a scenario as its expectations look at them: which of them compete, and what each is called.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gccl::sim {

// In the plan's order. Before anything runs they are heads (result/row.hpp), without times.
using ResultRows = std::vector<nlohmann::json>;

double time_us(const nlohmann::json& row);
// Of a run of one collective.
bool is_single(const nlohmann::json& row);

// Rows that compete: same run, cluster, ranks, engine and stated sizes; they lie next to each other. Returns the index
// after the last one that competes with `first`.
std::size_t competitors_end(const ResultRows& rows, std::size_t first);

// The fastest of the rows that compete with row i, and the one whose algorithm is `name`; none: `end`.
struct Rivals {
  std::size_t best, named, end;
};
Rivals rivals(const ResultRows& rows, std::size_t i, std::string_view name);

// "ring at 64 B (model)", and where the scenario has several clusters or numbers of ranks, which of them.
std::string point_name(const ResultRows& rows, std::size_t i);
// "12 us for ring at 64 B (model)".
std::string time_at(const ResultRows& rows, std::size_t i);

}  // namespace gccl::sim
