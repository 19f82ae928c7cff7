// `gccl run --engine real`: the timeline of a scenario's faults, inflicted on real ranks of this machine.
#pragma once

#include <string>

#include "sim/scenario/plan/campaign.hpp"

namespace gccl::real {

// By its file names; throws json::InputError where the program has no runtime. Before run().
void load_runtime();

// Whether ranks on networks of their own do, since others take the places of those that crash, also of the first.
bool meet_by_files(const sim::RecoverySettings& recovery);

// A folder of this user's alone, for RealMeans::folder, that goes with this object: run() may be killed.
class MeetingPlace {
 public:
  MeetingPlace();  // throws json::InputError
  ~MeetingPlace();
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

// Plays the workload in virtual time first, which says in which operation a fault strikes; then starts the ranks as
// children of this process, inflicts the faults, and returns what came of it in the words of the simulation, with what
// differs from it. Needs a process without other threads, which it may leave in another network namespace. No process
// outlives it, nor this process, however it ends. Throws std::runtime_error where the system refuses.
sim::Outcome run(const sim::Workload& workload, const sim::RealMeans& means);

}  // namespace gccl::real
