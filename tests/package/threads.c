/* Two threads, each on a communicator of its own, in a program that the thread sanitizer watches. */
#include <gccl/gccl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kCount = 1 << 18 };

static void* work(void* comm) {
  float* x = malloc(kCount * sizeof *x);
  for (int k = 0; k < 30; ++k) {
    for (int i = 0; i < kCount; ++i) x[i] = 1;
    if (GCCL_Allreduce(GCCL_IN_PLACE, x, kCount, GCCL_FLOAT32, GCCL_SUM, comm) != GCCL_SUCCESS || x[k] != 2) {
      fprintf(stderr, "%s\n", GCCL_Last_error());
      exit(1);
    }
  }
  free(x);
  return NULL;
}

int main(void) {
  GCCL_Comm world, other;
  if (GCCL_Init(&world, NULL) != GCCL_SUCCESS || GCCL_Comm_split(world, 0, 0, &other) != GCCL_SUCCESS) return 1;
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, other) != 0) return 1;
  work(world);
  pthread_join(thread, NULL);
  return GCCL_Finalize() != GCCL_SUCCESS;
}
