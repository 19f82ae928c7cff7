// The communication calls of gccl.h: each of them blocking and not.
#include "libgccl/api/calls.hpp"
#include "libgccl/api/guard.hpp"

using gccl::guarded;

namespace {

// An I-form, whose request is null where it is refused, whatever was there.
template <class F>
GCCL_Result begun(GCCL_Comm comm, GCCL_Request* request, F call) {
  if (request) *request = GCCL_REQUEST_NULL;
  return guarded(comm, call);
}

}  // namespace

extern "C" {

GCCL_Result GCCL_Send(const void* buf, size_t count, GCCL_Dtype dtype, int dest, GCCL_Comm comm) {
  return guarded(comm, [&] { return gccl::point_to_point(true, buf, count, dtype, dest, comm, nullptr, false); });
}
GCCL_Result GCCL_Isend(const void* buf, size_t count, GCCL_Dtype dtype, int dest, GCCL_Comm comm,
                       GCCL_Request* request) {
  return begun(comm, request, [&] { return gccl::point_to_point(true, buf, count, dtype, dest, comm, request, true); });
}

GCCL_Result GCCL_Recv(void* buf, size_t count, GCCL_Dtype dtype, int source, GCCL_Comm comm) {
  return guarded(comm, [&] { return gccl::point_to_point(false, buf, count, dtype, source, comm, nullptr, false); });
}
GCCL_Result GCCL_Irecv(void* buf, size_t count, GCCL_Dtype dtype, int source, GCCL_Comm comm, GCCL_Request* request) {
  return begun(comm, request,
               [&] { return gccl::point_to_point(false, buf, count, dtype, source, comm, request, true); });
}

GCCL_Result GCCL_Broadcast(void* buf, size_t count, GCCL_Dtype dtype, int root, GCCL_Comm comm) {
  return guarded(comm, [&] { return gccl::broadcast(buf, count, dtype, root, comm, nullptr, false); });
}
GCCL_Result GCCL_Ibroadcast(void* buf, size_t count, GCCL_Dtype dtype, int root, GCCL_Comm comm,
                            GCCL_Request* request) {
  return begun(comm, request, [&] { return gccl::broadcast(buf, count, dtype, root, comm, request, true); });
}

GCCL_Result GCCL_Reduce(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Op op, int root,
                        GCCL_Comm comm) {
  return guarded(comm, [&] { return gccl::reduce(sendbuf, recvbuf, count, dtype, op, root, comm, nullptr, false); });
}
GCCL_Result GCCL_Ireduce(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Op op, int root,
                         GCCL_Comm comm, GCCL_Request* request) {
  return begun(comm, request,
               [&] { return gccl::reduce(sendbuf, recvbuf, count, dtype, op, root, comm, request, true); });
}

GCCL_Result GCCL_Allreduce(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Op op,
                           GCCL_Comm comm) {
  return guarded(comm, [&] { return gccl::allreduce(sendbuf, recvbuf, count, dtype, op, comm, nullptr, false); });
}
GCCL_Result GCCL_Iallreduce(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Op op,
                            GCCL_Comm comm, GCCL_Request* request) {
  return begun(comm, request, [&] { return gccl::allreduce(sendbuf, recvbuf, count, dtype, op, comm, request, true); });
}

GCCL_Result GCCL_Allgather(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Comm comm) {
  return guarded(comm, [&] { return gccl::allgather(sendbuf, recvbuf, count, dtype, comm, nullptr, false); });
}
GCCL_Result GCCL_Iallgather(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Comm comm,
                            GCCL_Request* request) {
  return begun(comm, request, [&] { return gccl::allgather(sendbuf, recvbuf, count, dtype, comm, request, true); });
}

GCCL_Result GCCL_Allgatherv(const void* sendbuf, void* recvbuf, const size_t* counts, const size_t* displs,
                            GCCL_Dtype dtype, GCCL_Comm comm) {
  return guarded(comm, [&] { return gccl::allgatherv(sendbuf, recvbuf, counts, displs, dtype, comm, nullptr, false); });
}
GCCL_Result GCCL_Iallgatherv(const void* sendbuf, void* recvbuf, const size_t* counts, const size_t* displs,
                             GCCL_Dtype dtype, GCCL_Comm comm, GCCL_Request* request) {
  return begun(comm, request,
               [&] { return gccl::allgatherv(sendbuf, recvbuf, counts, displs, dtype, comm, request, true); });
}

GCCL_Result GCCL_Reduce_scatter(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Op op,
                                GCCL_Comm comm) {
  return guarded(comm, [&] { return gccl::reduce_scatter(sendbuf, recvbuf, count, dtype, op, comm, nullptr, false); });
}
GCCL_Result GCCL_Ireduce_scatter(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Op op,
                                 GCCL_Comm comm, GCCL_Request* request) {
  return begun(comm, request,
               [&] { return gccl::reduce_scatter(sendbuf, recvbuf, count, dtype, op, comm, request, true); });
}

GCCL_Result GCCL_Reduce_scatterv(const void* sendbuf, void* recvbuf, const size_t* counts, GCCL_Dtype dtype, GCCL_Op op,
                                 GCCL_Comm comm) {
  return guarded(comm,
                 [&] { return gccl::reduce_scatterv(sendbuf, recvbuf, counts, dtype, op, comm, nullptr, false); });
}
GCCL_Result GCCL_Ireduce_scatterv(const void* sendbuf, void* recvbuf, const size_t* counts, GCCL_Dtype dtype,
                                  GCCL_Op op, GCCL_Comm comm, GCCL_Request* request) {
  return begun(comm, request,
               [&] { return gccl::reduce_scatterv(sendbuf, recvbuf, counts, dtype, op, comm, request, true); });
}

GCCL_Result GCCL_Alltoall(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Comm comm) {
  return guarded(comm, [&] { return gccl::alltoall(sendbuf, recvbuf, count, dtype, comm, nullptr, false); });
}
GCCL_Result GCCL_Ialltoall(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, GCCL_Comm comm,
                           GCCL_Request* request) {
  return begun(comm, request, [&] { return gccl::alltoall(sendbuf, recvbuf, count, dtype, comm, request, true); });
}

GCCL_Result GCCL_Alltoallv(const void* sendbuf, const size_t* sendcounts, const size_t* sdispls, void* recvbuf,
                           const size_t* recvcounts, const size_t* rdispls, GCCL_Dtype dtype, GCCL_Comm comm) {
  return guarded(comm, [&] {
    return gccl::alltoallv(sendbuf, sendcounts, sdispls, recvbuf, recvcounts, rdispls, dtype, comm, nullptr, false);
  });
}
GCCL_Result GCCL_Ialltoallv(const void* sendbuf, const size_t* sendcounts, const size_t* sdispls, void* recvbuf,
                            const size_t* recvcounts, const size_t* rdispls, GCCL_Dtype dtype, GCCL_Comm comm,
                            GCCL_Request* request) {
  return begun(comm, request, [&] {
    return gccl::alltoallv(sendbuf, sendcounts, sdispls, recvbuf, recvcounts, rdispls, dtype, comm, request, true);
  });
}

GCCL_Result GCCL_Scatter(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, int root, GCCL_Comm comm) {
  return guarded(comm, [&] { return gccl::scatter(sendbuf, recvbuf, count, dtype, root, comm, nullptr, false); });
}
GCCL_Result GCCL_Iscatter(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, int root, GCCL_Comm comm,
                          GCCL_Request* request) {
  return begun(comm, request, [&] { return gccl::scatter(sendbuf, recvbuf, count, dtype, root, comm, request, true); });
}

GCCL_Result GCCL_Gather(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, int root, GCCL_Comm comm) {
  return guarded(comm, [&] { return gccl::gather(sendbuf, recvbuf, count, dtype, root, comm, nullptr, false); });
}
GCCL_Result GCCL_Igather(const void* sendbuf, void* recvbuf, size_t count, GCCL_Dtype dtype, int root, GCCL_Comm comm,
                         GCCL_Request* request) {
  return begun(comm, request, [&] { return gccl::gather(sendbuf, recvbuf, count, dtype, root, comm, request, true); });
}

GCCL_Result GCCL_Barrier(GCCL_Comm comm) {
  return guarded(comm, [&] { return gccl::barrier(comm, nullptr, false); });
}
GCCL_Result GCCL_Ibarrier(GCCL_Comm comm, GCCL_Request* request) {
  return begun(comm, request, [&] { return gccl::barrier(comm, request, true); });
}

}  // extern "C"
