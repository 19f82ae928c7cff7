// Reductions by an operation that is associative and does not commute: of two elements the left one. Fails where an
// element is not rank 0's.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void left(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] = ((int*)in)[i];
}

static int rank, size;

static long wrong(const int* found, int count, int first) {
  long all = 0;
  for (int i = 0; i < count; ++i) all += found[i] != first + i;
  return all;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Op op;
  MPI_Op_create(left, 0, &op);
  long of[3] = {0, 0, 0};
  for (int count = size; count <= 262144 * size; count *= 8) {
    int* const in = malloc(sizeof(int) * (size_t)count);
    int* const out = malloc(sizeof(int) * (size_t)count);
    for (int i = 0; i < count; ++i) in[i] = rank * 100000000 + i;
    MPI_Allreduce(in, out, count, MPI_INT, op, MPI_COMM_WORLD);
    of[0] += wrong(out, count, 0);
    for (int root = 0; root < size; ++root) {
      MPI_Reduce(in, out, count, MPI_INT, op, root, MPI_COMM_WORLD);
      if (rank == root) of[1] += wrong(out, count, 0);
    }
    MPI_Reduce_scatter_block(in, out, count / size, MPI_INT, op, MPI_COMM_WORLD);
    of[2] += wrong(out, count / size, rank * (count / size));
    free(in);
    free(out);
  }
  MPI_Op_free(&op);
  long all[3];
  MPI_Allreduce(of, all, 3, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("wrong: allreduce %ld, reduce %ld, reduce_scatter_block %ld\n", all[0], all[1], all[2]);
  MPI_Finalize();
  return all[0] + all[1] + all[2] != 0;
}
