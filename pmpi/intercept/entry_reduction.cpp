// The intercepted reductions, in both forms.
#include "pmpi/intercept/dispatch.hpp"

using namespace gccl::pmpi;

extern "C" {

int MPI_Allreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return dispatch(
      Function::allreduce, comm,
      [=](Member me, Call* call) { return prepare_allreduce(me, call, sendbuf, recvbuf, count, type, op); },
      [=] { return PMPI_Allreduce(sendbuf, recvbuf, count, type, op, comm); });
}

int MPI_Iallreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
  return dispatch_nonblocking(
      Function::iallreduce, comm, request,
      [=](Member me, Call* call) { return prepare_allreduce(me, call, sendbuf, recvbuf, count, type, op); },
      [=] { return PMPI_Iallreduce(sendbuf, recvbuf, count, type, op, comm, request); });
}

int MPI_Reduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  return dispatch(
      Function::reduce, comm,
      [=](Member me, Call* call) { return prepare_reduce(me, call, sendbuf, recvbuf, count, type, op, root); },
      [=] { return PMPI_Reduce(sendbuf, recvbuf, count, type, op, root, comm); });
}

int MPI_Ireduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
                MPI_Request* request) {
  return dispatch_nonblocking(
      Function::ireduce, comm, request,
      [=](Member me, Call* call) { return prepare_reduce(me, call, sendbuf, recvbuf, count, type, op, root); },
      [=] { return PMPI_Ireduce(sendbuf, recvbuf, count, type, op, root, comm, request); });
}

int MPI_Reduce_scatter(const void* sendbuf, void* recvbuf, const int* recvcounts, MPI_Datatype type, MPI_Op op,
                       MPI_Comm comm) {
  return dispatch(
      Function::reduce_scatter, comm,
      [=](Member me, Call* call) { return prepare_reduce_scatter(me, call, sendbuf, recvbuf, recvcounts, type, op); },
      [=] { return PMPI_Reduce_scatter(sendbuf, recvbuf, recvcounts, type, op, comm); });
}

int MPI_Ireduce_scatter(const void* sendbuf, void* recvbuf, const int* recvcounts, MPI_Datatype type, MPI_Op op,
                        MPI_Comm comm, MPI_Request* request) {
  return dispatch_nonblocking(
      Function::ireduce_scatter, comm, request,
      [=](Member me, Call* call) { return prepare_reduce_scatter(me, call, sendbuf, recvbuf, recvcounts, type, op); },
      [=] { return PMPI_Ireduce_scatter(sendbuf, recvbuf, recvcounts, type, op, comm, request); });
}

int MPI_Reduce_scatter_block(const void* sendbuf, void* recvbuf, int recvcount, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
  return dispatch(
      Function::reduce_scatter_block, comm,
      [=](Member me, Call* call) {
        return prepare_reduce_scatter_block(me, call, sendbuf, recvbuf, recvcount, type, op);
      },
      [=] { return PMPI_Reduce_scatter_block(sendbuf, recvbuf, recvcount, type, op, comm); });
}

int MPI_Ireduce_scatter_block(const void* sendbuf, void* recvbuf, int recvcount, MPI_Datatype type, MPI_Op op,
                              MPI_Comm comm, MPI_Request* request) {
  return dispatch_nonblocking(
      Function::ireduce_scatter_block, comm, request,
      [=](Member me, Call* call) {
        return prepare_reduce_scatter_block(me, call, sendbuf, recvbuf, recvcount, type, op);
      },
      [=] { return PMPI_Ireduce_scatter_block(sendbuf, recvbuf, recvcount, type, op, comm, request); });
}

}  // extern "C"
