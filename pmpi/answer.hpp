// What every intercepted collective does: prepare, and let GCCL answer, or MPI.
#pragma once

#include <memory>

#include "pmpi/progress.hpp"

namespace gccl::pmpi {

// prepare(Member, Call*) -> Reason; by_mpi(MPI_Comm) -> MPI error code.
template <class Prepare, class ByMpi>
int answer(Function function, MPI_Comm comm, Prepare&& prepare, ByMpi&& by_mpi) {
  Reason why;
  if (Communicator* const k = find(comm, &why)) {
    Call call;
    why = prepare(k->me, &call);
    if (why == Reason::none) {
      if (connect(*k)) {
        count(function, Reason::none);
        return run(*k, call, function);
      }
      why = Reason::not_connected;
      comm = k->instead;
    }
  }
  count(function, why);
  return by_mpi(comm);
}

// by_mpi(MPI_Comm, MPI_Request*) -> MPI error code.
template <class Prepare, class ByMpi>
int answer_later(Function function, MPI_Comm comm, MPI_Request* request, Prepare&& prepare, ByMpi&& by_mpi) {
  Reason why = Reason::wrong_argument;
  if (Communicator* const k = request ? find(comm, &why) : nullptr) {
    auto later = std::make_unique<Later>();
    later->function = function;
    why = prepare(k->me, &later->call);
    if (why == Reason::none) {
      int code = MPI_SUCCESS;
      if (begin(*k, std::move(later), by_mpi, request, &code)) {
        count(function, Reason::none);
        return code;
      }
      why = Reason::not_connected;
      comm = k->instead;
    }
  }
  count(function, why);
  return by_mpi(comm, request);
}

}  // namespace gccl::pmpi
