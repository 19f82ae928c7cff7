// The communication calls behind gccl.h, which are all of one form: the caller's arguments; where its request goes;
// whether it waits. What is wrong with an argument is the result, and what last_error says.
#pragma once

#include <cstddef>

#include "gccl/gccl.h"

namespace gccl {

GCCL_Result broadcast(void* buf, size_t count, GCCL_Dtype dtype, int root, GCCL_Comm comm, GCCL_Request* request,
                      bool non_blocking);
GCCL_Result reduce(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Op op, int root,
                   GCCL_Comm comm, GCCL_Request* request, bool non_blocking);
GCCL_Result allreduce(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Op op, GCCL_Comm comm,
                      GCCL_Request* request, bool non_blocking);
GCCL_Result allgather(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Comm comm,
                      GCCL_Request* request, bool non_blocking);
GCCL_Result alltoall(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Comm comm,
                     GCCL_Request* request, bool non_blocking);
GCCL_Result scatter(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, int root, GCCL_Comm comm,
                    GCCL_Request* request, bool non_blocking);
GCCL_Result gather(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, int root, GCCL_Comm comm,
                   GCCL_Request* request, bool non_blocking);
GCCL_Result allgatherv(const void* sendbuf, void* recvbuf, const size_t* counts, const size_t* displs, GCCL_Dtype dtype,
                       GCCL_Comm comm, GCCL_Request* request, bool non_blocking);
GCCL_Result reduce_scatter(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Op op,
                           GCCL_Comm comm, GCCL_Request* request, bool non_blocking);
GCCL_Result reduce_scatterv(const void* sendbuf, void* recvbuf, const size_t* counts, GCCL_Dtype dtype, GCCL_Op op,
                            GCCL_Comm comm, GCCL_Request* request, bool non_blocking);
GCCL_Result alltoallv(const void* sendbuf, const size_t* sendcounts, const size_t* sdispls, void* recvbuf,
                      const size_t* recvcounts, const size_t* rdispls, GCCL_Dtype dtype, GCCL_Comm comm,
                      GCCL_Request* request, bool non_blocking);
GCCL_Result barrier(GCCL_Comm comm, GCCL_Request* request, bool non_blocking);
GCCL_Result point_to_point(bool sends, const void* buf, size_t count, GCCL_Dtype dtype, int peer, GCCL_Comm comm,
                           GCCL_Request* request, bool non_blocking);

}  // namespace gccl
