/* Open MPI's part of bench/recovery, by ULFM. */
/* clang-format off */
#include <mpi.h>
#include <mpi-ext.h> /* needs it */
/* clang-format on */

#include "recovery.h"

int main(int argc, char** argv) {
  MPI_Comm comm, smaller;
  int rank, size;
  double in[kCount], out[kCount];
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < kCount; ++i) in[i] = 1;
  const double end = now_ms() + kAfterMs;
  while (MPI_Allreduce(in, out, kCount, MPI_DOUBLE, MPI_SUM, comm) == MPI_SUCCESS)
    if (rank == size - 1 && now_ms() > end) end_here();
  const double noticed = now_ms();
  MPIX_Comm_revoke(comm); /* others may wait for a rank that has noticed */
  if (MPIX_Comm_shrink(comm, &smaller) != MPI_SUCCESS) return 1;
  const double shrunk = now_ms();
  if (MPI_Allreduce(in, out, kCount, MPI_DOUBLE, MPI_SUM, smaller) != MPI_SUCCESS) return 1;
  report(rank, noticed, shrunk, out[kCount - 1], size - 1);
  MPI_Comm_free(&smaller);
  _exit(0); /* MPI_Finalize may wait for the rank that is gone */
}
