// MPI's ways to wait for requests. A request of ours is completed by progress(), so each waits by looking at MPI's
// answer in turn with that. While nothing of ours is in flight, MPI's own functions wait.
#include "pmpi/engine/progress.hpp"

using namespace gccl::pmpi;

extern "C" {

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  if (!anything_in_flight()) return PMPI_Wait(request, status);
  return wait_for([&](int* flag) { return PMPI_Test(request, flag, status); });
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  if (!anything_in_flight()) return PMPI_Waitall(count, requests, statuses);
  // Open MPI's function returns, or ends the job, once one request has failed; MPI_Testall waits for the others, which
  // may never be complete. So where that takes long, the function itself waits.
  constexpr unsigned kPolls = 4096;
  unsigned polls = 0;
  return wait_for([&](int* flag) {
    if (++polls < kPolls || !mpi_waits_entered()) return PMPI_Testall(count, requests, flag, statuses);
    *flag = 1;
    return PMPI_Waitall(count, requests, statuses);
  });
}

int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  if (!anything_in_flight()) return PMPI_Waitany(count, requests, index, status);
  return wait_for([&](int* flag) { return PMPI_Testany(count, requests, index, flag, status); });
}

int MPI_Waitsome(int count, MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]) {
  if (!anything_in_flight()) return PMPI_Waitsome(count, requests, done, indices, statuses);
  return wait_for([&](int* flag) {
    const int code = PMPI_Testsome(count, requests, done, indices, statuses);
    *flag = *done != 0;  // MPI_UNDEFINED: none is active
    return code;
  });
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  progress();
  return look_for(flag, [=] { return PMPI_Test(request, flag, status); });
}

int MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  progress();
  return look_for(flag, [=] { return PMPI_Testall(count, requests, flag, statuses); });
}

int MPI_Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  progress();
  return look_for(flag, [=] { return PMPI_Testany(count, requests, index, flag, status); });
}

int MPI_Testsome(int count, MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]) {
  progress();
  return look_for(done, [=] { return PMPI_Testsome(count, requests, done, indices, statuses); });
}

int MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  progress();
  return look_for(flag, [=] { return PMPI_Request_get_status(request, flag, status); });
}

}  // extern "C"
