// What a communicator keeps of its calls: their order, to be compared with the other ranks' (history.hpp), when they
// began and ended (flight.hpp), how many they were (metrics.hpp), and which plans the log has reported.
#pragma once

#include <array>
#include <set>
#include <tuple>

#include "libgccl/communicator/operation.hpp"
#include "libgccl/communicator/record/metrics.hpp"
#include "libgccl/communicator/team.hpp"

namespace gccl {

// With the communicator's lock held.
class Recorder {
 public:
  explicit Recorder(Team& team) : team_(team) {}

  // The call gets its place in the order of all.
  void number(Work& work);
  // It is carried out by this plan, which was made just now or is an earlier call's.
  void planned(const Work& work, const PreparedPlan& plan, bool made);
  // What it had to move has moved.
  void moved(const Operation& op, bool ok);
  // It is over.
  void ended(const Operation& op, bool ok);
  // Links became slow or recovered.
  void links_changed(const std::vector<fault::LinkHealth::Link>& changed, const fault::LinkHealth& health);
  Metrics& metrics() { return metrics_; }

 private:
  void announce(const Work& work, const PreparedPlan& plan);

  Team& team_;
  Metrics metrics_;
  std::set<std::array<std::uint64_t, 4>> announced_;                       // shapes that the log has reported
  std::set<std::tuple<Collective, Authority, const Algorithm*>> refused_;  // and what cannot serve
};

// For GCCL_LOG=2: who this rank is and how it reaches the others; on rank 0 also nodes, and the settings in force.
void announce(const Team& team);

}  // namespace gccl
