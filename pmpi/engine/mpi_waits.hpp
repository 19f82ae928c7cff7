// Progress of GCCL's calls from within MPI's own waits: a profiling tool in front of the drop-in, or a part of the
// program in Fortran, waits by PMPI_Wait, and only MPI knows of that wait.
#pragma once

namespace gccl::pmpi {

// Has MPI call progress() while it waits for anything, in the thread that waits. Open MPI calls functions that were
// registered with its own progress engine (opal_progress_register of libopen-pal, in 4.1 and 5). MPICH has no such
// function; its waits for a request of ours ask that request (PMPIX_Grequest_start in progress.cpp).
void enter_mpi_waits();
// Whether it does.
bool mpi_waits_entered();
// Before MPI ends.
void leave_mpi_waits();

// While one of these lives on a thread, MPI's waits on that thread do not come back to the drop-in: GCCL is at work
// there, and may itself call MPI.
class InOwnCode {
 public:
  InOwnCode() : outer_(here_) { here_ = true; }
  ~InOwnCode() { here_ = outer_; }
  InOwnCode(const InOwnCode&) = delete;
  InOwnCode& operator=(const InOwnCode&) = delete;
  static bool is() { return here_; }

 private:
  static inline thread_local bool here_ = false;
  bool outer_;
};

}  // namespace gccl::pmpi
