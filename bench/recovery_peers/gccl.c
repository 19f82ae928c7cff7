/* GCCL's part of bench/recovery. */
#include <gccl/gccl.h>

#include "recovery.h"

int main(void) {
  GCCL_Comm comm, smaller;
  int rank, size;
  double in[kCount], out[kCount];
  if (GCCL_Init(&comm, NULL) != GCCL_SUCCESS) return 1;
  GCCL_Comm_rank(comm, &rank);
  GCCL_Comm_size(comm, &size);
  for (int i = 0; i < kCount; ++i) in[i] = 1;
  const double end = now_ms() + kAfterMs;
  while (GCCL_Allreduce(in, out, kCount, GCCL_FLOAT64, GCCL_SUM, comm) == GCCL_SUCCESS)
    if (rank == size - 1 && now_ms() > end) end_here();
  const double noticed = now_ms();
  if (GCCL_Comm_shrink(comm, &smaller) != GCCL_SUCCESS) return 1;
  const double shrunk = now_ms();
  if (GCCL_Allreduce(in, out, kCount, GCCL_FLOAT64, GCCL_SUM, smaller) != GCCL_SUCCESS) return 1;
  report(rank, noticed, shrunk, out[kCount - 1], size - 1);
  GCCL_Comm_free(&comm);
  GCCL_Finalize();
  return 0;
}
