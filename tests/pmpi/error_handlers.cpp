// Error handlers that leave a call of the drop-in by longjmp.
#include <doctest/doctest.h>
#include <unistd.h>

#include <csetjmp>
#include <cstdlib>
#include <exception>

#include "tests/pmpi/support.hpp"

namespace gccl::test {
namespace {

std::jmp_buf jump;
void leave(MPI_Comm*, int*, ...) { std::longjmp(jump, 1); }

// A sanitizer's operator new ends the process where others throw.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("data too large to be packed is MPI's error for it, and no exception") {
  const Returning own;
  const auto& [rank, size, comm] = own;
  int one = rank;
  MPI_Datatype gaps, many;  // 2^20 bytes, and as many as 2^50 of them need
  MPI_Type_vector(1 << 20, 1, 2, MPI_BYTE, &gaps);
  MPI_Type_contiguous(1 << 30, gaps, &many);
  MPI_Type_commit(&many);
  char room = 0;
  if (size > 1) {
    CHECK(error_class(MPI_Bcast(&room, 1, many, 0, comm)) == MPI_ERR_NO_MEM);
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK(error_class(MPI_Ibcast(&room, 1, many, 0, comm, &request)) == MPI_ERR_NO_MEM);
    CHECK(request == MPI_REQUEST_NULL);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(leave, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    if (setjmp(jump) == 0) CHECK(MPI_Bcast(&room, 1, many, 0, comm) == -1);
    CHECK(std::current_exception() == nullptr);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
  }
  CHECK(MPI_Bcast(&one, 1, MPI_INT, 0, comm) == MPI_SUCCESS);
  CHECK(one == 0);  // it goes on
  MPI_Type_free(&many);
  MPI_Type_free(&gaps);
}
#endif

// Rank 0 calls wait_too_short(comm, request) of a message that is longer than its buffer, while a sum is in flight that
// rank 1 begins afterwards; then wait() of the sum.
template <class WaitTooShort>
void beside_a_sum(const WaitTooShort& wait_too_short, int (*wait)(MPI_Request*, MPI_Status*)) {
  const Returning own;
  const auto& [rank, size, comm] = own;
  if (size == 1) return;
  int one = 1, sum = 0, token = 0;
  const int four[4] = {};
  MPI_Request of_sum = MPI_REQUEST_NULL;
  if (rank == 0) {
    MPI_Request too_short;
    MPI_Irecv(&token, 1, MPI_INT, 1, 1, comm, &too_short);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &of_sum);
    wait_too_short(comm, &too_short);
    MPI_Send(&token, 1, MPI_INT, 1, 2, comm);
  } else {
    if (rank == 1) {
      MPI_Send(four, 4, MPI_INT, 0, 1, comm);
      MPI_Recv(&token, 1, MPI_INT, 0, 2, comm, MPI_STATUS_IGNORE);
    }
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &of_sum);
  }
  wait(&of_sum, MPI_STATUS_IGNORE);
  CHECK(sum == size);
}

#ifdef OPEN_MPI
TEST_CASE("MPI_Waitall returns where one request has failed, also while a collective is in flight") {
  beside_a_sum(
      [](MPI_Comm comm, MPI_Request* too_short) {
        int late = 0, own = 0;
        MPI_Request both[2] = {*too_short, MPI_REQUEST_NULL};
        MPI_Status status[2];
        MPI_Irecv(&late, 1, MPI_INT, 0, 3, comm, &both[1]);
        CHECK(error_class(MPI_Waitall(2, both, status)) == MPI_ERR_IN_STATUS);
        CHECK(error_class(status[0].MPI_ERROR) == MPI_ERR_TRUNCATE);
        CHECK(error_class(status[1].MPI_ERROR) == MPI_ERR_PENDING);
        MPI_Send(&own, 1, MPI_INT, 0, 3, comm);
        MPI_Wait(&both[1], MPI_STATUS_IGNORE);
      },
      MPI_Wait);
}
#endif

bool leaves_by_longjmp(const int* in, int* out, int count, MPI_Op op, MPI_Comm comm) {
  if (setjmp(jump) != 0) return true;
  MPI_Allreduce(in, out, count, MPI_INT, op, comm);
  return false;
}

TEST_CASE("an error handler may leave a call by longjmp, and later ones complete while the program computes") {
  const Returning returning;
  const auto& [rank, size, comm] = returning;
  if (size == 1) return;
  MPI_Errhandler handler;
  MPI_Op own;
  MPI_Comm other;
  MPI_Request request;
  const int two[2] = {};
  int sums[2];
  std::vector<int> in(1 << 20, 1), out(in.size());
  MPI_Comm_create_errhandler(leave, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &own);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Barrier(other);
  CHECK(leaves_by_longjmp(two, sums, rank == 0 ? 1 : 2, own, comm));
  MPI_Iallreduce(in.data(), out.data(), int(in.size()), MPI_INT, MPI_SUM, other, &request);
  const bool computes = rank == 0 && !std::getenv("GCCL_BACKENDS");  // over the backend mpi it has to call MPI
  const double from = MPI_Wtime();
  while (computes && so_far(out.back()) != size && MPI_Wtime() - from < 60) usleep(1000);
  CHECK((!computes || so_far(out.back()) == size));
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_free(&other);
  MPI_Op_free(&own);
  MPI_Errhandler_free(&handler);
}

[[gnu::noinline]] bool wait_leaves_by_longjmp(MPI_Request* request) {
  if (setjmp(jump) != 0) return true;
  MPI_Wait(request, MPI_STATUS_IGNORE);
  return false;
}

TEST_CASE("an error handler may leave a wait by longjmp, and MPI's own waits complete what is in flight") {
  beside_a_sum(
      [](MPI_Comm comm, MPI_Request* too_short) {
        MPI_Errhandler handler;
        MPI_Comm_create_errhandler(leave, &handler);
        MPI_Comm_set_errhandler(comm, handler);
        CHECK(wait_leaves_by_longjmp(too_short));
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        MPI_Errhandler_free(&handler);
      },
      PMPI_Wait);  // as a tool's does
}

[[gnu::noinline]] bool freeing_leaves_by_longjmp(MPI_Comm comm) {
  if (setjmp(jump) != 0) return true;
  MPI_Comm_free(&comm);
  return false;
}
[[gnu::noinline]] void use_the_stack() {
  volatile char room[16384];
  for (volatile char& c : room) c = 'Z';
}

TEST_CASE("an error handler may leave MPI_Comm_free by longjmp, and collectives go on") {
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(leave, &handler);
  for (const MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) MPI_Comm_set_errhandler(comm, handler);
  for (const MPI_Comm comm : {MPI_COMM_NULL, MPI_COMM_WORLD}) CHECK(freeing_leaves_by_longjmp(comm));
  for (const MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
  const Returning returning;
  const auto& [rank, size, comm] = returning;
  use_the_stack();
  MPI_Comm other;
  MPI_Comm_dup(comm, &other);
  int one = 1, sum = 0;
  CHECK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, other) == MPI_SUCCESS);
  CHECK(sum == size);
  MPI_Comm_free(&other);
}

}  // namespace
}  // namespace gccl::test
