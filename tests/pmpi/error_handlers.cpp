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
