// The rows of a scenario as its expectations look at them: which of them compete, and what each is called.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace gccl::sim {

// Whether a row's operations all ended, on all ranks that are left. Where they did not, its time is that until all had
// returned from them, of work that was not done: it is compared with no other. True of heads, and of what is no row.
bool completed(const nlohmann::json& row);

// What judging compares of one row, read once: every row may be compared with all others.
struct ResultRow {
  const nlohmann::json* json = nullptr;
  std::size_t run = 0;
  std::string_view cluster, engine, algorithm;
  std::uint64_t world_ranks = 0;
  bool automatic = false;
  bool single = false;                      // of a run of one collective
  std::vector<std::uint64_t> stated_bytes;  // of those alone
  double time_us = NAN;                     // of a row that has results
  bool completed = true;
  bool may_fail = false;  // its run's expectations say that it does not complete
};

// In the campaign's order. Before anything runs they are heads (result/row.hpp), without results. Refers to the
// documents, whose strings must stay.
class ResultRows {
 public:
  explicit ResultRows(const std::vector<nlohmann::json>& rows);

  std::size_t size() const { return rows_.size(); }
  const ResultRow& operator[](std::size_t i) const { return rows_[i]; }
  void set_may_fail(std::size_t i) { rows_[i].may_fail = true; }
  std::vector<ResultRow>::const_iterator begin() const { return rows_.begin(); }
  std::vector<ResultRow>::const_iterator end() const { return rows_.end(); }

  // Rows that compete: same run, cluster, ranks, engine and stated sizes; they lie next to each other. The index after
  // the last one that competes with `first`.
  std::size_t competitors_end(std::size_t first) const;

  // Of the rows that compete with row i the fastest that completed, and the one whose algorithm is `name`; none: `end`.
  struct Rivals {
    std::size_t best, named, end;
  };
  Rivals rivals(std::size_t i, std::string_view name) const;

  // "ring at 64 B (model)", and where the scenario has several clusters or numbers of ranks, which of them.
  std::string name(std::size_t i) const;
  // "did not complete for ring at 64 B (model)".
  std::string incomplete(std::size_t i) const;
  // "12 us for ring at 64 B (model)".
  std::string time(std::size_t i) const;

 private:
  std::vector<ResultRow> rows_;
  bool several_clusters_ = false, several_ranks_ = false;
};

}  // namespace gccl::sim
