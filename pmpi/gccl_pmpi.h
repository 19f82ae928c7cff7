/* What the MPI drop-in libgccl_pmpi.so says about itself. A program that wants to know looks GCCL_PMPI_stats up with
 * dlsym(RTLD_DEFAULT, "GCCL_PMPI_stats"): it is there only when the drop-in is loaded. */
#ifndef GCCL_PMPI_H
#define GCCL_PMPI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct GCCL_PMPI_Count {
  const char* function; /* "MPI_Iallreduce" */
  const char* reason;   /* why MPI itself had to answer; null: GCCL answered */
  uint64_t calls;       /* of this process, 1 or more */
} GCCL_PMPI_Count;

/* Which calls GCCL has answered so far and which it has left to MPI. Writes the first `max` counts to `counts`, which
 * may be null when max is 0, and returns how many there are. Any thread; texts are constant. */
int GCCL_PMPI_stats(GCCL_PMPI_Count* counts, int max);
typedef int (*GCCL_PMPI_stats_function)(GCCL_PMPI_Count* counts, int max);

#ifdef __cplusplus
}
#endif

#endif
