/* Every rank contributes its number plus one; all of them get the sum. Start with: gccl launch -n 4 -- ./hello_c */
#include <gccl/gccl.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1000 };

static void check(GCCL_Result result) {
  if (result == GCCL_SUCCESS) return;
  fprintf(stderr, "%s: %s\n", GCCL_Error_string(result), GCCL_Last_error());
  exit(1);
}

int main(void) {
  GCCL_Comm world;
  int rank, size;
  check(GCCL_Init(&world, NULL));
  check(GCCL_Comm_rank(world, &rank));
  check(GCCL_Comm_size(world, &size));

  float mine[COUNT], sum[COUNT];
  for (int i = 0; i < COUNT; ++i) mine[i] = (float)(rank + 1);
  check(GCCL_Allreduce(mine, sum, COUNT, GCCL_FLOAT32, GCCL_SUM, world));
  for (int i = 0; i < COUNT; ++i)
    if (sum[i] != (float)(size * (size + 1) / 2)) return 1;

  printf("rank %d of %d: the sum is %g\n", rank, size, sum[0]);
  check(GCCL_Finalize());
  return 0;
}
