// Where each rank is in each stream of a workload, and which operation it takes part in there.
#pragma once

#include <optional>
#include <vector>

#include "sim/engine/workload.hpp"

namespace gccl::sim {

class StreamPlaces {
 public:
  // Every rank at the first stage of every stream. `workload` must outlive it.
  explicit StreamPlaces(const Workload& workload);

  // The stream in which the operation is.
  std::uint32_t of(std::uint32_t operation) const { return stream_of_[operation]; }

  struct Part {
    std::uint32_t operation;
    Rank rank;  // in the operation
  };
  // Of the first stage in which the rank takes part, from where it is on: it is there afterwards. Nothing at the end.
  std::optional<Part> part(std::uint32_t stream, Rank world) {
    Places& s = streams_[stream];
    const Stream& stages = w_.streams[stream];
    for (std::uint32_t& stage = s.stage[world]; stage < stages.size(); ++stage) {
      if (s.operation[stage].empty()) return Part{stages[stage][0], world};
      const std::uint32_t operation = s.operation[stage][world];
      if (operation != kAbsent) return Part{operation, s.rank[stage][world]};
    }
    return {};
  }
  void advance(std::uint32_t stream, Rank world) { ++streams_[stream].stage[world]; }

 private:
  static constexpr std::uint32_t kAbsent = ~0u;

  struct Places {
    std::vector<std::uint32_t> stage;  // by world rank: the one it is in
    // By stage and world rank: its operation or kAbsent, and its rank there. Empty where one operation has all ranks.
    std::vector<std::vector<std::uint32_t>> operation;
    std::vector<std::vector<Rank>> rank;
  };

  const Workload& w_;
  std::vector<Places> streams_;
  std::vector<std::uint32_t> stream_of_;  // by operation
};

}  // namespace gccl::sim
