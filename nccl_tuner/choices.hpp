// What to answer NCCL about a communicator's calls: as a tuning table says, and what it does not say as GCCL's planner
// has it on a described cluster. Everything is found out when the communicator is made; a call is looked up.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libgccl/cluster/cluster.hpp"
#include "libgccl/select/others/nccl_model.hpp"
#include "libgccl/select/tuning_table.hpp"

namespace gccl::nccl {

struct Choice {
  NcclAlgorithm algorithm{};
  std::optional<NcclProtocol> protocol{};  // empty: any of the algorithm's
  unsigned channels = 0;                   // 0: NCCL's own
  friend bool operator==(const Choice&, const Choice&) = default;
};

// Those that NCCL asks about, by its numbers.
inline constexpr std::array kCollectives{Collective::broadcast, Collective::reduce, Collective::allgather,
                                         Collective::reduce_scatter, Collective::allreduce};

class Choices {
 public:
  struct Sources {
    std::string table, cluster;  // files; empty: none
  };
  // For a communicator of so many ranks on so many nodes. What of the sources cannot be used is left out, with a
  // sentence for each.
  Choices(const Sources& sources, std::size_t ranks, std::size_t nodes, std::vector<std::string>* warnings);
  Choices(const Choices&) = delete;
  Choices& operator=(const Choices&) = delete;

  // Null: nothing is known of the call. `function` is an index of kCollectives; bytes are the bigger of a rank's two
  // buffers.
  const Choice* find(std::size_t function, Count bytes) const;
  std::string text() const;                // where they are from
  bool usable() const { return usable_; }  // whether all sources could be read

 private:
  // Choices for one collective, each from its size on.
  struct Planned {
    Count from;
    Choice choice;
  };

  void read_table(const std::string& file, const Cluster* cluster, Rank ranks, Rank nodes,
                  std::vector<std::string>* warnings);
  std::shared_ptr<const Cluster> plan(const std::string& file, Rank ranks, Rank nodes);

  TuningTable table_;
  PreparedTable entries_;
  std::vector<std::optional<Choice>> of_entry_;  // empty: NCCL does not have its algorithm, or not on these ranks
  std::array<std::vector<Planned>, kCollectives.size()> planned_;
  std::string text_;
  bool usable_ = true;
};

}  // namespace gccl::nccl
