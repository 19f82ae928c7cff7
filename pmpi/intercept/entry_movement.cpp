// The intercepted movements, in both forms.
#include "pmpi/intercept/dispatch.hpp"

using namespace gccl::pmpi;

extern "C" {

int MPI_Allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                  MPI_Datatype recvtype, MPI_Comm comm) {
  return dispatch(
      Function::allgather, comm,
      [=](Member me, Call* call) {
        return prepare_allgather(me, call, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype);
      },
      [=] { return PMPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm); });
}

int MPI_Iallgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                   MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return dispatch_nonblocking(
      Function::iallgather, comm, request,
      [=](Member me, Call* call) {
        return prepare_allgather(me, call, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype);
      },
      [=] { return PMPI_Iallgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request); });
}

int MPI_Allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int* recvcounts,
                   const int* displs, MPI_Datatype recvtype, MPI_Comm comm) {
  return dispatch(
      Function::allgatherv, comm,
      [=](Member me, Call* call) {
        return prepare_allgatherv(me, call, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype);
      },
      [=] { return PMPI_Allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm); });
}

int MPI_Iallgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int* recvcounts,
                    const int* displs, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return dispatch_nonblocking(
      Function::iallgatherv, comm, request,
      [=](Member me, Call* call) {
        return prepare_allgatherv(me, call, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype);
      },
      [=] {
        return PMPI_Iallgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, request);
      });
}

int MPI_Alltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                 MPI_Datatype recvtype, MPI_Comm comm) {
  return dispatch(
      Function::alltoall, comm,
      [=](Member me, Call* call) {
        return prepare_alltoall(me, call, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype);
      },
      [=] { return PMPI_Alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm); });
}

int MPI_Ialltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                  MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return dispatch_nonblocking(
      Function::ialltoall, comm, request,
      [=](Member me, Call* call) {
        return prepare_alltoall(me, call, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype);
      },
      [=] { return PMPI_Ialltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request); });
}

int MPI_Alltoallv(const void* sendbuf, const int* sendcounts, const int* sdispls, MPI_Datatype sendtype, void* recvbuf,
                  const int* recvcounts, const int* rdispls, MPI_Datatype recvtype, MPI_Comm comm) {
  return dispatch(
      Function::alltoallv, comm,
      [=](Member me, Call* call) {
        return prepare_alltoallv(me, call, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                                 recvtype);
      },
      [=] {
        return PMPI_Alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);
      });
}

int MPI_Ialltoallv(const void* sendbuf, const int* sendcounts, const int* sdispls, MPI_Datatype sendtype, void* recvbuf,
                   const int* recvcounts, const int* rdispls, MPI_Datatype recvtype, MPI_Comm comm,
                   MPI_Request* request) {
  return dispatch_nonblocking(
      Function::ialltoallv, comm, request,
      [=](Member me, Call* call) {
        return prepare_alltoallv(me, call, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                                 recvtype);
      },
      [=] {
        return PMPI_Ialltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm,
                               request);
      });
}

int MPI_Alltoallw(const void* sendbuf, const int* sendcounts, const int* sdispls, const MPI_Datatype* sendtypes,
                  void* recvbuf, const int* recvcounts, const int* rdispls, const MPI_Datatype* recvtypes,
                  MPI_Comm comm) {
  return dispatch(
      Function::alltoallw, comm,
      [=](Member me, Call* call) {
        return prepare_alltoallw(me, call, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
                                 recvtypes);
      },
      [=] {
        return PMPI_Alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm);
      });
}

int MPI_Ialltoallw(const void* sendbuf, const int* sendcounts, const int* sdispls, const MPI_Datatype* sendtypes,
                   void* recvbuf, const int* recvcounts, const int* rdispls, const MPI_Datatype* recvtypes,
                   MPI_Comm comm, MPI_Request* request) {
  return dispatch_nonblocking(
      Function::ialltoallw, comm, request,
      [=](Member me, Call* call) {
        return prepare_alltoallw(me, call, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
                                 recvtypes);
      },
      [=] {
        return PMPI_Ialltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm,
                               request);
      });
}

int MPI_Barrier(MPI_Comm comm) {
  return dispatch(
      Function::barrier, comm, [=](Member me, Call* call) { return prepare_barrier(me, call); },
      [=] { return PMPI_Barrier(comm); });
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return dispatch_nonblocking(
      Function::ibarrier, comm, request, [=](Member me, Call* call) { return prepare_barrier(me, call); },
      [=] { return PMPI_Ibarrier(comm, request); });
}

int MPI_Bcast(void* buf, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return dispatch(
      Function::bcast, comm, [=](Member me, Call* call) { return prepare_bcast(me, call, buf, count, type, root); },
      [=] { return PMPI_Bcast(buf, count, type, root, comm); });
}

int MPI_Ibcast(void* buf, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  return dispatch_nonblocking(
      Function::ibcast, comm, request,
      [=](Member me, Call* call) { return prepare_bcast(me, call, buf, count, type, root); },
      [=] { return PMPI_Ibcast(buf, count, type, root, comm, request); });
}

int MPI_Gather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
               MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return dispatch(
      Function::gather, comm,
      [=](Member me, Call* call) {
        return prepare_gather(me, call, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root);
      },
      [=] { return PMPI_Gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm); });
}

int MPI_Igather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request) {
  return dispatch_nonblocking(
      Function::igather, comm, request,
      [=](Member me, Call* call) {
        return prepare_gather(me, call, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root);
      },
      [=] { return PMPI_Igather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request); });
}

int MPI_Scatter(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return dispatch(
      Function::scatter, comm,
      [=](Member me, Call* call) {
        return prepare_scatter(me, call, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root);
      },
      [=] { return PMPI_Scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm); });
}

int MPI_Iscatter(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                 MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request) {
  return dispatch_nonblocking(
      Function::iscatter, comm, request,
      [=](Member me, Call* call) {
        return prepare_scatter(me, call, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root);
      },
      [=] { return PMPI_Iscatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request); });
}

}  // extern "C"
