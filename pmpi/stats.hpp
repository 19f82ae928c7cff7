// Who answered each call, GCCL or MPI, and why.
#pragma once

#include <cstdint>

namespace gccl::pmpi {

// The intercepted collectives; the non-blocking form of each follows its blocking one.
enum class Function : std::uint8_t {
  allgather,
  iallgather,
  allgatherv,
  iallgatherv,
  allreduce,
  iallreduce,
  alltoall,
  ialltoall,
  alltoallv,
  ialltoallv,
  alltoallw,
  ialltoallw,
  barrier,
  ibarrier,
  bcast,
  ibcast,
  gather,
  igather,
  reduce,
  ireduce,
  reduce_scatter,
  ireduce_scatter,
  reduce_scatter_block,
  ireduce_scatter_block,
  scatter,
  iscatter,
  count
};
// "MPI_Allgather"
const char* name(Function function);

// Why a call was left to MPI. Apart from wrong_argument, which MPI answers without communicating, every reason follows
// from arguments that MPI demands to be alike on all ranks: so all ranks leave the call to MPI, or none does.
enum class Reason : std::uint8_t {
  none,            // GCCL answered
  wrong_argument,  // MPI says what is wrong, in its own way
  intercommunicator,
  not_connected,       // GCCL could not connect these ranks, or the communicator is being freed
  not_yet_connected,   // a non-blocking call before the first blocking one
  operation,           // MPI defines no such operation on this type, or GCCL has no way to carry it out
  operation_not_ours,  // a non-blocking call whose operation MPI or the program carries out
  element_too_large,   // a user's operation on elements beyond what GCCL combines
  order_too_large,     // an operation that does not commute, on more than fits the ordered way
  not_running,         // before MPI_Init, after MPI_Finalize, or MPI was started by other means (as Fortran's does)
  count
};
const char* text(Reason reason);

// Any thread.
void count(Function function, Reason reason);
// One line for each function and reason, to standard error.
void print_stats();

}  // namespace gccl::pmpi
