// The end of a communicator that is freed: the ranks compare all that they have called (comparison.hpp).
#pragma once

#include "libgccl/communicator/spin_lock.hpp"
#include "libgccl/communicator/supervisor.hpp"

namespace gccl {

// Takes the communicator's lock where it needs it.
class Leaving {
 public:
  // All outlive it. The communicator is waited on.
  Leaving(CommunicatorCore& communicator, SpinLock& lock, Team& team, Operations& operations, Supervisor& supervisor)
      : c_(communicator), lock_(lock), team_(team), operations_(operations), supervisor_(supervisor) {}

  // Every rank has come this far, by the same calls; where the communicator is broken, why, unless a call has said so.
  Status leave();
  // Begins it; null where there is nothing to wait for. `others`: GCCL_Finalize's.
  Status begin(Operation** out, const Others* others = nullptr);
  bool done() const { return done_; }

  // A communicator that GCCL_Finalize compares along with the world: there are no more calls here; then it is added to
  // what this rank says of all of them; and afterwards: what went wrong, as in leave().
  void announce() { team_.world->watch->leaving(*team_.record); }
  void sum_up(Others* others);
  // What is said before that, of communicators that had failed and were freed.
  Others failed_before() const;
  Status found();

 private:
  CommunicatorCore& c_;
  SpinLock& lock_;
  Team& team_;
  Operations& operations_;
  Supervisor& supervisor_;
  bool done_ = false;
};

}  // namespace gccl
