// A tuning table: which algorithm, chunks, channels and window to use for which calls, as somebody has found out for
// one machine. It decides before the model does. Its file is "gccl/table/1" (docs/formats.md,
// cluster/read/tuning_file.hpp).
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/base/status.hpp"

namespace gccl {

struct TuningTable {
  // The machine that it is for. A job may use a part of it.
  struct Machine {
    std::string cluster;  // its name
    Rank nodes = 1, cards_per_node = 1;
    std::string backends{};  // GCCL's transports, as GCCL_BACKENDS names them; empty: not said
    friend bool operator==(const Machine&, const Machine&) = default;
  };
  // A communicator has so many ranks on so many nodes, both ends included; bytes, as nccl-tests counts them, are at
  // least from_bytes and less than to_bytes. No two entries of a table are about the same call.
  struct Entry {
    static constexpr Count kNoEnd = std::numeric_limits<Count>::max();

    Rank ranks_min = 1, ranks_max = ~Rank(0);
    Rank nodes_min = 1, nodes_max = ~Rank(0);
    Count from_bytes = 0, to_bytes = kNoEnd;
    const Algorithm* algorithm = nullptr;       // never null; says the collective
    std::string protocol{};                     // empty: the planner's
    Count chunks = 0;                           // 0: the planner's
    Count channels = 0;                         // 0: not said, which is 1 where there are chunks
    unsigned window = 0;                        // 0: the planner's
    std::optional<double> predicted_us{};       // for readers
    std::optional<Count> predicted_at_bytes{};  // the size that it is of, which is in the range; unset: not said

    bool covers(Rank ranks, Rank nodes) const {
      return ranks_min <= ranks && ranks <= ranks_max && nodes_min <= nodes && nodes <= nodes_max;
    }
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  std::string file{};  // that it was read from
  std::string name;
  std::string description{};
  Machine machine{};
  std::vector<Entry> entries{};

  // "FILE: /entries/3", for messages.
  std::string place(const Entry& entry) const;
};

// Two entries that are about the same call, the one that comes later in the table first; null where there are none.
std::pair<const TuningTable::Entry*, const TuningTable::Entry*> overlapping(std::span<const TuningTable::Entry> all);

// What loads a table: a job, or a simulated cluster.
struct TunedMachine {
  std::string_view cluster{};  // empty: unknown, as on a real machine
  Rank nodes = 1, ranks_per_node = 1;
  std::string_view backends{};                   // empty: none of GCCL's transports
  std::vector<std::string_view> protocols = {};  // that a call can be carried out by
  std::vector<std::string_view> unsummed = {};   // those of them by which its nodes' switches do not sum
  std::vector<std::string_view> inside = {};     // those of them that only calls inside one node use
};
// GCCL_ERR_INVALID_ARGUMENT with file and pointer where the table is for another machine, or for protocols that this
// one does not have, or that its switches or its network do not carry.
Status check_machine(const TuningTable& table, const TunedMachine& here);

// The entries for one communicator, to be asked for each shape of call: a search among those of a collective, without
// memory of its own. The table outlives it.
class PreparedTable {
 public:
  PreparedTable() = default;
  PreparedTable(const TuningTable& table, Rank ranks, Rank nodes);

  // Null where no entry is about the call.
  const TuningTable::Entry* find(Collective kind, Count bytes) const;
  // Adds the bytes at which an entry for the collective begins or ends.
  void borders(Collective kind, std::vector<Count>& to) const;
  const TuningTable* table() const { return table_; }  // null: there is none

 private:
  static constexpr std::size_t kKinds = std::size(kDefinitions);
  struct Row {
    Count from, to;
    const TuningTable::Entry* entry;
  };
  const TuningTable* table_ = nullptr;
  std::vector<Row> rows_;                          // by collective, then by bytes
  std::array<std::uint32_t, kKinds + 1> begin_{};  // of each collective
};

}  // namespace gccl
