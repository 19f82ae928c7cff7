#include "sim/engine/stream_places.hpp"

namespace gccl::sim {

StreamPlaces::StreamPlaces(const Workload& workload)
    : w_(workload), streams_(workload.streams.size()), stream_of_(workload.operations.size(), 0) {
  const std::size_t world = w_.cards.size();
  for (std::uint32_t i = 0; i < streams_.size(); ++i) {
    Places& s = streams_[i];
    s.stage.assign(world, 0);
    s.operation.resize(w_.streams[i].size());
    s.rank.resize(w_.streams[i].size());
    for (std::size_t k = 0; k < w_.streams[i].size(); ++k) {
      const Stage& stage = w_.streams[i][k];
      for (std::uint32_t operation : stage) stream_of_[operation] = i;
      if (stage.size() == 1 && w_.operations[stage[0]].members.empty()) continue;
      s.operation[k].assign(world, kAbsent);
      s.rank[k].assign(world, 0);
      for (std::uint32_t operation : stage)
        for (Rank r = 0; r < w_.operations[operation].ranks(); ++r) {
          const Rank m = w_.operations[operation].world(r);
          s.operation[k][m] = operation;
          s.rank[k][m] = r;
        }
    }
  }
}

}  // namespace gccl::sim
