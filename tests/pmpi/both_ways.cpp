// Prints what a program sees of MPI around collectives; both_ways.sh runs it without and with the drop-in and compares.
// Each line begins with the rank. `stats` as an argument: also requires that GCCL answered.
#include <mpi.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <vector>

#include "tests/pmpi/support.hpp"

namespace {

int rank, size;

__attribute__((format(printf, 1, 2))) void print(const char* format, ...) {
  va_list values;
  va_start(values, format);
  std::printf("%d: ", rank);
  std::vprintf(format, values);
  std::puts("");
  va_end(values);
}

int sum_of_ones(MPI_Comm comm) {
  int one = 1, sum = -1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum;
}

int copied = 0, deleted = 0, handled = 0;
int copy(MPI_Comm, int, void*, void* in, void* out, int* flag) {
  ++copied;
  *static_cast<void**>(out) = in;
  *flag = 1;
  return MPI_SUCCESS;
}
int remove(MPI_Comm, int, void*, void*) {
  ++deleted;
  return MPI_SUCCESS;
}
int collective_in_remove(MPI_Comm comm, int, void*, void*) {
  ++deleted;
  print("a sum while the communicator is freed: %d", sum_of_ones(comm));
  return MPI_SUCCESS;
}
void handle(MPI_Comm*, int*, ...) { ++handled; }

// The drop-in keeps an attribute of its own, and makes communicators; the program's functions must not hear of them.
void attributes() {
  int key, value = 1;
  MPI_Comm a, b, c;
  MPI_Request request;
  MPI_Comm_create_keyval(copy, remove, &key, nullptr);
  MPI_Comm_dup(MPI_COMM_WORLD, &a);
  MPI_Comm_set_attr(a, key, &value);
  print("a: %d", sum_of_ones(a));
  MPI_Comm_dup(a, &b);
  print("b: %d, %d copied, %d deleted", sum_of_ones(b), copied, deleted);
  MPI_Comm_idup(b, &c, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Ibarrier(c, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  print("c: %d, %d copied, %d deleted", sum_of_ones(c), copied, deleted);
  MPI_Comm_free(&b);
  print("without b: %d copied, %d deleted", copied, deleted);
  MPI_Comm_free(&c);
  MPI_Comm_free(&a);
  MPI_Comm_free_keyval(&key);
  print("at last: %d copied, %d deleted", copied, deleted);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, collective_in_remove, &key, nullptr);
  MPI_Comm_dup(MPI_COMM_WORLD, &a);
  MPI_Comm_set_attr(a, key, &value);
  print("once more: %d", sum_of_ones(a));
  MPI_Comm_free(&a);
  MPI_Comm_free_keyval(&key);
}

// Every way to make a communicator.
void makers() {
  MPI_Comm made;
  MPI_Group all, others;
  const int zero[] = {0};
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  if (size > 1) {
    MPI_Group_excl(all, 1, zero, &others);
    MPI_Comm_create(MPI_COMM_WORLD, others, &made);
    if (made != MPI_COMM_NULL) {
      print("create: %d", sum_of_ones(made));
      MPI_Comm_free(&made);
    }
    if (rank != 0) {
      MPI_Comm_create_group(MPI_COMM_WORLD, others, 5, &made);
      print("create_group: %d", sum_of_ones(made));
      MPI_Comm_free(&made);
    }
    MPI_Group_free(&others);
  }
  MPI_Group_free(&all);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
  print("split_type: %d", sum_of_ones(made));
  MPI_Comm_free(&made);
  const int dims[] = {size}, periodic[] = {1}, left[] = {(rank + size - 1) % size}, right[] = {(rank + 1) % size};
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periodic, 0, &made);
  int value = rank, both[2] = {rank, rank + 100}, from[2] = {-1, -1};
  MPI_Bcast(&value, 1, MPI_INT, size - 1, made);
  MPI_Neighbor_allgather(both, 1, MPI_INT, from, 1, MPI_INT, made);
  print("cart: %d, neighbours %d %d", value, from[0], from[1]);
  MPI_Request request;
  MPI_Ineighbor_alltoall(both, 1, MPI_INT, from, 1, MPI_INT, made, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  print("exchanged with neighbours: %d %d", from[0], from[1]);
  MPI_Comm_free(&made);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, left, MPI_UNWEIGHTED, 1, right, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &made);
  print("graph: %d", sum_of_ones(made));
  MPI_Comm_free(&made);
}

void requests() {
  int one = 1, sum = 0, flag = -1, index = -1, done = -1, indices[2];
  MPI_Request two[2], request;
  MPI_Status statuses[2];
  std::memset(statuses, 0x55, sizeof statuses);
  MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &two[0]);
  MPI_Ibarrier(MPI_COMM_WORLD, &two[1]);
  const int code = MPI_Waitall(2, two, statuses);
  print("waitall: %d, sum %d", code, sum);  // Open MPI leaves the rest of these statuses to chance
  MPI_Waitany(2, two, &index, statuses);
  print("waitany of none: %d", index == MPI_UNDEFINED);
  MPI_Testany(2, two, &index, &flag, statuses);
  print("testany of none: %d %d", index == MPI_UNDEFINED, flag);
  MPI_Waitsome(2, two, &done, indices, statuses);
  print("waitsome of none: %d", done == MPI_UNDEFINED);
  MPI_Testsome(2, two, &done, indices, statuses);
  print("testsome of none: %d", done == MPI_UNDEFINED);
  MPI_Testall(2, two, &flag, statuses);
  print("testall of none: %d", flag);
  MPI_Waitall(0, nullptr, nullptr);
  MPI_Testall(0, nullptr, &flag, nullptr);
  print("testall of nothing: %d", flag);
  // None of them while another is in flight, which takes another way through the drop-in.
  MPI_Request none[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  MPI_Waitany(2, none, &index, statuses);
  MPI_Waitsome(2, none, &done, indices, statuses);
  MPI_Waitall(2, none, statuses);
  MPI_Wait(none, statuses);
  print("none beside another: %d %d", index == MPI_UNDEFINED, done == MPI_UNDEFINED);
  for (flag = 0; !flag;) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
  print("looked at, still there: %d", request != MPI_REQUEST_NULL);
  MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  print("tested, gone: %d %d", flag, request == MPI_REQUEST_NULL);
}

void errors() {
  int one = 1, sum = 0, two[2] = {rank, rank}, room[2];
  MPI_Comm comm;
  MPI_Request request;
  MPI_Errhandler handler, got;
  MPI_Datatype pair;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(handle, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);  // Open MPI reports some of them there
  MPI_Barrier(comm);
  const auto show = [](const char* what, int code) {
    print("%s: class %d, handled %d", what, gccl::test::error_class(code), handled);
  };
  show("no such root", MPI_Bcast(&sum, 1, MPI_INT, size + 3, comm));
  show("a count below 0", MPI_Bcast(&sum, -1, MPI_INT, 0, comm));
  show("both in place", MPI_Allreduce(MPI_IN_PLACE, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm));
  show("no type", MPI_Ibcast(&sum, 1, MPI_DATATYPE_NULL, 0, comm, &request));
  show("a type that the operation lacks", MPI_Iallreduce(&one, &sum, 1, MPI_FLOAT, MPI_BAND, comm, &request));
  MPI_Type_contiguous(2, MPI_INT, &pair);
  show("a type that is not committed", MPI_Bcast(two, 1, pair, 0, comm));
  MPI_Type_commit(&pair);
  show("a sum of a derived type", MPI_Allreduce(two, room, 1, pair, MPI_SUM, comm));
  show("nothing wrong", MPI_Bcast(two, 1, pair, 0, comm));
  MPI_Comm_get_errhandler(comm, &got);
  print("the handler is the program's: %d", got == handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&got);
  MPI_Errhandler_free(&handler);
  MPI_Type_free(&pair);
  MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  attributes();
  makers();
  requests();
  errors();
  const bool answered = argc < 2 || std::strcmp(argv[1], "stats") != 0 || gccl::test::calls_answered() > 10;
  if (!answered) std::fprintf(stderr, "rank %d: GCCL answered nothing\n", rank);
  MPI_Finalize();
  return answered ? 0 : 1;
}
