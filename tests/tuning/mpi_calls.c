/* Makes the calls that its arguments name, "allreduce 4096 ...", and notes each in the file SPY_FILE, on rank 0. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void note(const char* what, long bytes) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  FILE* file = getenv("SPY_FILE") && rank == 0 ? fopen(getenv("SPY_FILE"), "a") : NULL;
  if (!file) return;
  fprintf(file, "call %s %ld\n", what, bytes);
  fclose(file);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int n;
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  const MPI_Comm world = MPI_COMM_WORLD;
  char *in = calloc(1, 2 << 20), *out = calloc(1, 2 << 20);
  for (int i = 1; i + 1 < argc; i += 2) {
    const char* what = argv[i];
    const int all = (int)(atol(argv[i + 1]) / 2), each = all / n; /* elements of the vector, and of a block */
    note(what, 2L * all);
    if (!strcmp(what, "allreduce")) MPI_Allreduce(in, out, all, MPI_SHORT, MPI_SUM, world);
    if (!strcmp(what, "allgather")) MPI_Allgather(in, each, MPI_SHORT, out, each, MPI_SHORT, world);
    if (!strcmp(what, "alltoall")) MPI_Alltoall(in, each, MPI_SHORT, out, each, MPI_SHORT, world);
    if (!strcmp(what, "reduce_scatter")) MPI_Reduce_scatter_block(in, out, each, MPI_SHORT, MPI_SUM, world);
    if (!strcmp(what, "broadcast")) MPI_Bcast(in, all, MPI_SHORT, 0, world);
    if (!strcmp(what, "reduce")) MPI_Reduce(in, out, all, MPI_SHORT, MPI_SUM, 0, world);
    if (!strcmp(what, "gather")) MPI_Gather(in, each, MPI_SHORT, out, each, MPI_SHORT, 0, world);
    if (!strcmp(what, "scatter")) MPI_Scatter(in, each, MPI_SHORT, out, each, MPI_SHORT, 0, world);
    note("end", 0);
  }
  MPI_Finalize();
  free(in);
  free(out);
  return 0;
}
