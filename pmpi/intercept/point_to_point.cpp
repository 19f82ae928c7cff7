// Blocking messages while collectives of ours are in flight: a peer may need us to make progress on those before it
// comes to send or to receive. So they become non-blocking ones that are waited for. The rarer ones are left to the
// background thread.
#include <atomic>

#include "pmpi/engine/progress.hpp"

using namespace gccl::pmpi;

namespace {

int wait_for_request(MPI_Request* request, MPI_Status* status) {
  return wait_for([&](int* flag) { return PMPI_Test(request, flag, status); });
}

template <class Start>
int wait_for_start(MPI_Status* status, Start&& start) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = start(&request);
  return code == MPI_SUCCESS ? wait_for_request(&request, status) : code;
}

std::atomic<bool> buffered_are_started{false};

}  // namespace

extern "C" {

int MPI_Send(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  if (!anything_in_flight()) return PMPI_Send(buf, count, type, dest, tag, comm);
  return wait_for_start(MPI_STATUS_IGNORE,
                        [=](MPI_Request* request) { return PMPI_Isend(buf, count, type, dest, tag, comm, request); });
}

int MPI_Ssend(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  if (!anything_in_flight()) return PMPI_Ssend(buf, count, type, dest, tag, comm);
  return wait_for_start(MPI_STATUS_IGNORE,
                        [=](MPI_Request* request) { return PMPI_Issend(buf, count, type, dest, tag, comm, request); });
}

int MPI_Rsend(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  if (!anything_in_flight()) return PMPI_Rsend(buf, count, type, dest, tag, comm);
  return wait_for_start(MPI_STATUS_IGNORE,
                        [=](MPI_Request* request) { return PMPI_Irsend(buf, count, type, dest, tag, comm, request); });
}

int MPI_Recv(void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status) {
  if (!anything_in_flight()) return PMPI_Recv(buf, count, type, source, tag, comm, status);
  return wait_for_start(status,
                        [=](MPI_Request* request) { return PMPI_Irecv(buf, count, type, source, tag, comm, request); });
}

int MPI_Sendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf,
                 int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status* status) {
  if (!anything_in_flight())
    return PMPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag,
                         comm, status);
  MPI_Request send = MPI_REQUEST_NULL, recv = MPI_REQUEST_NULL;
  int code = PMPI_Irecv(recvbuf, recvcount, recvtype, source, recvtag, comm, &recv);
  if (code != MPI_SUCCESS) return code;
  code = PMPI_Isend(sendbuf, sendcount, sendtype, dest, sendtag, comm, &send);
  if (code != MPI_SUCCESS) {
    PMPI_Cancel(&recv);
    PMPI_Request_free(&recv);
    return code;
  }
  const int received = wait_for_request(&recv, status);
  const int sent = wait_for_request(&send, MPI_STATUS_IGNORE);
  return received != MPI_SUCCESS ? received : sent;
}

int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  if (!anything_in_flight()) return PMPI_Probe(source, tag, comm, status);
  return wait_for([&](int* flag) { return PMPI_Iprobe(source, tag, comm, flag, status); });
}

int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  if (!anything_in_flight()) return PMPI_Mprobe(source, tag, comm, message, status);
  return wait_for([&](int* flag) { return PMPI_Improbe(source, tag, comm, flag, message, status); });
}

int MPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  return look_for(flag, [=] { return PMPI_Iprobe(source, tag, comm, flag, status); });
}

int MPI_Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message, MPI_Status* status) {
  return look_for(flag, [=] { return PMPI_Improbe(source, tag, comm, flag, message, status); });
}

// Those that have arrived leave the buffer.
int MPI_Bsend(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  move_messages_on();
  return PMPI_Bsend(buf, count, type, dest, tag, comm);
}

int MPI_Ibsend(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request* request) {
  move_messages_on();
  return PMPI_Ibsend(buf, count, type, dest, tag, comm, request);
}

// MPI does not say of a request that its messages are buffered. Programs that have none do not pay for it.
int MPI_Bsend_init(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                   MPI_Request* request) {
  buffered_are_started.store(true, std::memory_order_relaxed);
  return PMPI_Bsend_init(buf, count, type, dest, tag, comm, request);
}

int MPI_Start(MPI_Request* request) {
  if (buffered_are_started.load(std::memory_order_relaxed)) move_messages_on();
  return PMPI_Start(request);
}

int MPI_Startall(int count, MPI_Request requests[]) {
  if (buffered_are_started.load(std::memory_order_relaxed)) move_messages_on();
  return PMPI_Startall(count, requests);
}

// What has arrived is not cancelled.
int MPI_Cancel(MPI_Request* request) {
  move_messages_on();
  return PMPI_Cancel(request);
}

}  // extern "C"
