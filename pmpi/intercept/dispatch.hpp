// What every intercepted collective does: prepare, and let GCCL answer, or MPI.
#pragma once

#include <memory>
#include <new>
#include <optional>

#include "pmpi/engine/progress.hpp"

namespace gccl::pmpi {

// Where memory for packed data is short, the call ends as MPI's own do.
template <class Body>
int within_memory(MPI_Comm comm, Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {  // the program's handler may leave by longjmp: not from in here
  }
  PMPI_Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
  return MPI_ERR_NO_MEM;
}

// Packing may need a message to ourselves, which no other call's may meet.
template <class Prepare>
Reason prepared(const Prepare& prepare, Communicator& k, Call* call) {
  const InOwnCode here;
  const Reason why = prepare(k.me, call);
  // The other ranks may well make this call, and come to the next one with another number: recovery.hpp.
  if (why == Reason::wrong_argument || why == Reason::operation) ++k.refused;
  return why;
}

// GCCL's answer; none where MPI is to answer, and *why says why.
template <class Prepare>
std::optional<int> answer(Function function, Communicator& k, const Prepare& prepare, Reason* why) {
  Call call;
  *why = prepared(prepare, k, &call);
  if (*why != Reason::none) return std::nullopt;
  *why = Reason::not_connected;
  if (!connect(k)) return std::nullopt;
  bool to_mpi = false;
  const int code = run(k, call, function, &to_mpi);
  return to_mpi ? std::nullopt : std::optional(code);
}

template <class Prepare, class ByMpi>
int dispatch_blocking(Function function, MPI_Comm comm, const Prepare& prepare, const ByMpi& by_mpi) {
  Reason why;
  Communicator* const k = find(comm, &why);
  if (const std::optional<int> code = k ? answer(function, *k, prepare, &why) : std::nullopt) {
    count(function, Reason::none);
    // The program's handler may leave by longjmp: nothing of the call is held any more.
    if (*code != MPI_SUCCESS) PMPI_Comm_call_errhandler(comm, *code);
    return *code;
  }
  count(function, why);
  return by_mpi();
}

// A communicator is connected within a blocking call only. Connecting takes several rounds in which every rank must
// do something, so a non-blocking call that began it would depend on what the program calls next.
template <class Prepare, class ByMpi>
int begin_nonblocking(Function function, MPI_Comm comm, MPI_Request* request, const Prepare& prepare,
                      const ByMpi& by_mpi) {
  Reason why = Reason::wrong_argument;
  if (Communicator* const k = request ? find(comm, &why) : nullptr) {
    why = may_begin(*k);
    if (why == Reason::none) {
      auto pending = std::make_unique<PendingRequest>();
      pending->function = function;
      pending->call.nonblocking = true;
      why = prepared(prepare, *k, &pending->call);
      if (why == Reason::none) {
        count(function, Reason::none);
        return begin(*k, std::move(pending), request);
      }
    }
  }
  count(function, why);
  return by_mpi();
}

// prepare(Member, Call*) -> Reason; by_mpi() -> MPI error code.
template <class Prepare, class ByMpi>
int dispatch(Function function, MPI_Comm comm, const Prepare& prepare, const ByMpi& by_mpi) {
  return within_memory(comm, [&] { return dispatch_blocking(function, comm, prepare, by_mpi); });
}
template <class Prepare, class ByMpi>
int dispatch_nonblocking(Function function, MPI_Comm comm, MPI_Request* request, const Prepare& prepare,
                         const ByMpi& by_mpi) {
  return within_memory(comm, [&] { return begin_nonblocking(function, comm, request, prepare, by_mpi); });
}

}  // namespace gccl::pmpi
