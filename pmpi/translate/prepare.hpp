// MPI's arguments -> a Call. One function for each collective, blocking or not.
#pragma once

#include "pmpi/translate/call.hpp"

namespace gccl::pmpi {

struct Member {
  int rank = 0, size = 1;
};

// Each looks at the arguments that matter on this rank and fills in *call; Reason::none when GCCL can answer. What
// types the ranks chose for the same data never decides: movements become bytes.
Reason prepare_barrier(Member me, Call* call);
Reason prepare_bcast(Member me, Call* call, void* buf, int count, MPI_Datatype type, int root);
Reason prepare_gather(Member me, Call* call, const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                      int recvcount, MPI_Datatype recvtype, int root);
Reason prepare_scatter(Member me, Call* call, const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                       int recvcount, MPI_Datatype recvtype, int root);
Reason prepare_allgather(Member me, Call* call, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                         void* recvbuf, int recvcount, MPI_Datatype recvtype);
Reason prepare_allgatherv(Member me, Call* call, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                          void* recvbuf, const int* recvcounts, const int* displs, MPI_Datatype recvtype);
Reason prepare_alltoall(Member me, Call* call, const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                        int recvcount, MPI_Datatype recvtype);
Reason prepare_alltoallv(Member me, Call* call, const void* sendbuf, const int* sendcounts, const int* sdispls,
                         MPI_Datatype sendtype, void* recvbuf, const int* recvcounts, const int* rdispls,
                         MPI_Datatype recvtype);
Reason prepare_alltoallw(Member me, Call* call, const void* sendbuf, const int* sendcounts, const int* sdispls,
                         const MPI_Datatype* sendtypes, void* recvbuf, const int* recvcounts, const int* rdispls,
                         const MPI_Datatype* recvtypes);

Reason prepare_allreduce(Member me, Call* call, const void* sendbuf, void* recvbuf, int count, MPI_Datatype type,
                         MPI_Op op);
Reason prepare_reduce(Member me, Call* call, const void* sendbuf, void* recvbuf, int count, MPI_Datatype type,
                      MPI_Op op, int root);
Reason prepare_reduce_scatter_block(Member me, Call* call, const void* sendbuf, void* recvbuf, int recvcount,
                                    MPI_Datatype type, MPI_Op op);
Reason prepare_reduce_scatter(Member me, Call* call, const void* sendbuf, void* recvbuf, const int* recvcounts,
                              MPI_Datatype type, MPI_Op op);

}  // namespace gccl::pmpi
