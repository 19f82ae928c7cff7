/* What MPI's collectives take, as bench/rules runs them: COLLECTIVE BYTES MICROSECONDS a line, the mean of calls back
   to back of the slowest rank. Bytes: of a rank's vector, or of all its blocks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ranks, rank;

static void call(const char* name, const float* in, float* out, int count) {
  const int block = count / ranks;
  if (!strcmp(name, "allreduce")) MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  if (!strcmp(name, "allgather")) MPI_Allgather(in, block, MPI_FLOAT, out, block, MPI_FLOAT, MPI_COMM_WORLD);
  if (!strcmp(name, "alltoall")) MPI_Alltoall(in, block, MPI_FLOAT, out, block, MPI_FLOAT, MPI_COMM_WORLD);
  if (!strcmp(name, "broadcast")) MPI_Bcast(out, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
  if (!strcmp(name, "reduce")) MPI_Reduce(in, out, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  static const char* const names[] = {"allreduce", "allgather", "alltoall", "broadcast", "reduce"};
  const long most = argc > 1 ? atol(argv[1]) : 4 << 20;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* From here on glibc keeps what is freed, as it does in a program that has freed as much once. Without this an
     algorithm that allocates may take twice as long, by what was called before it: its memory comes in new pages. */
  void* volatile freed = malloc(31 << 20); /* the most that counts for glibc's threshold is 32 MiB */
  free(freed);
  float *in = calloc(most, 1), *out = calloc(most, 1);
  if (!in || !out) MPI_Abort(MPI_COMM_WORLD, 2);
  for (size_t k = 0; k < sizeof names / sizeof *names; ++k)
    for (long bytes = 64; bytes <= most; bytes *= 4) {
      const int calls = bytes <= 4096 ? 200 : bytes <= 262144 ? 50 : 10;
      for (int i = 0; i < 5; ++i) call(names[k], in, out, (int)(bytes / 4));
      MPI_Barrier(MPI_COMM_WORLD);
      double took = MPI_Wtime(), longest;
      for (int i = 0; i < calls; ++i) call(names[k], in, out, (int)(bytes / 4));
      took = (MPI_Wtime() - took) / calls;
      MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
      if (rank == 0) printf("%s %ld %.3f\n", names[k], bytes, 1e6 * longest);
    }
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
