// Everything that is under way, and how it moves on: whoever waits for anything carries on everything.
#pragma once

#include <functional>
#include <memory>

#include "pmpi/communicator.hpp"

namespace gccl::pmpi {

// A non-blocking call, from its start until MPI has freed its request.
class Later {
 public:
  Call call;
  Function function{};
  Communicator* communicator = nullptr;
  MPI_Request request = MPI_REQUEST_NULL;  // generalized, the program's
  GCCL_Request gccl = GCCL_REQUEST_NULL;
  MPI_Request at_mpi = MPI_REQUEST_NULL;  // where GCCL could not connect, and MPI carries the call out
  std::function<int(MPI_Comm, MPI_Request*)> by_mpi;
  int code = MPI_SUCCESS;
};

// Blocking: false when the communicator cannot be served; all ranks then find that together.
bool connect(Communicator& k);
// Carries out a call on a connected communicator. Returns an MPI error code, after MPI's error handler has seen it.
int run(Communicator& k, Call& call, Function function);

// Begins a call, or lines it up until the ranks are connected; then `by_mpi` is kept for the case that they cannot be.
// False when the communicator cannot be served. *code is the MPI error code.
bool begin(Communicator& k, std::unique_ptr<Later> later, const std::function<int(MPI_Comm, MPI_Request*)>& by_mpi,
           MPI_Request* request, int* code);

// True while any non-blocking call is under way in this process.
bool anything_under_way();
// Moves on what can move without waiting, and completes requests. From threads that may call MPI.
void progress();
// Waits until nothing is under way on `k`.
void settle(Communicator& k);
// Waits until nothing is under way at all, at most `seconds`.
void settle_all(double seconds);
// A freed communicator's last reference goes.
void forgotten(Communicator* k);

// Operations and types that calls under way may still need are freed when nothing is. The handle's new value is stored.
void free_op_when_idle(MPI_Op* op);
void free_type_when_idle(MPI_Datatype* type);

// One wait, with a pause after each look that found nothing.
class Wait {
 public:
  // mpi_moves: the looks themselves let MPI make progress.
  explicit Wait(bool mpi_moves) : mpi_moves_(mpi_moves) {}
  void pause();

 private:
  bool mpi_moves_;
  unsigned looks_ = 0, yields_ = 0;
};
// More ranks on this machine than processors for them.
void set_crowded(bool crowded);

// Waits for something at MPI while GCCL's calls move on: test() is called until it says it is over.
template <class Test>
int wait_for(Test&& test) {
  Wait wait(true);
  for (;;) {
    int flag = 0;
    progress();
    const int code = test(&flag);
    if (code != MPI_SUCCESS || flag) return code;
    wait.pause();
  }
}

}  // namespace gccl::pmpi
