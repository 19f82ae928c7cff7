// The GCCL side of MPI's communicators.
#pragma once

#include <atomic>

#include "pmpi/engine/descriptors.hpp"
#include "pmpi/translate/prepare.hpp"

namespace gccl::pmpi {

// One for each MPI communicator that a collective was called on, kept with it as an attribute.
struct Communicator {
  // Connected within the first blocking collective call, on all ranks in the same one; retired when it is freed.
  enum class Stage : std::uint8_t { fresh, ready, failed, retired };

  MPI_Comm mpi = MPI_COMM_NULL;
  Member me;
  bool inter = false;
  std::atomic<Stage> stage{Stage::fresh};
  GCCL_Comm gccl = GCCL_COMM_NULL;
  Promised promised;           // of gccl
  int tag = 0;                 // on own_world(), for recovery.hpp
  std::int64_t calls = 0;      // handed to GCCL so far
  std::int64_t last_call = 0;  // which of the process's calls was its last one
  // Calls that MPI refused here, for a wrong argument, since the ranks' calls were last found to be the same.
  std::int64_t refused = 0;
  bool failed_before = false;              // a non-blocking one ended with calls that differ
  bool gave_up = false;                    // on recovery
  bool used_up_tags = false;               // topologies.cpp
  std::atomic<bool> differs_said = false;  // that the ranks' calls differ
  // These with the lock of progress.cpp held.
  int in_flight = 0;      // non-blocking calls
  bool released = false;  // MPI has freed it
};

// No communicator, nor what a program's memory of zeros makes of one.
inline bool is_no_handle(MPI_Comm comm) { return comm == MPI_COMM_NULL || comm == MPI_Comm(); }

// Null when GCCL does not serve it; *why says why.
Communicator* find(MPI_Comm comm, Reason* why);
// Only if it is known already.
Communicator* find_known(MPI_Comm comm);
// A communicator of this process alone: all MPI communicators of size 1 share it. GCCL_COMM_NULL when there is none.
GCCL_Comm solo();
// Before MPI ends.
void release_solo();

// While it lives, this thread is inside MPI's freeing of a communicator: a delete function of the program's may call
// collectives on it, and MPI answers. find() must not meet it anew, as its handle soon stands for another one.
class Freeing {
 public:
  explicit Freeing(MPI_Comm comm);
  ~Freeing();
  Freeing(const Freeing&) = delete;
  Freeing& operator=(const Freeing&) = delete;
  static bool is(MPI_Comm comm);

 private:
  MPI_Comm comm_;
  Freeing* outer_;  // one delete function may free another communicator
};

// MPI has freed it: its handle may come to stand for another one.
void forget_handles();

// From now on find() finds nothing: MPI is about to end.
void stop_finding();
bool running();

}  // namespace gccl::pmpi
