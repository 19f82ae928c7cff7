/* What the programs of bench/recovery have in common: ranks of one machine sum 1000 doubles again and again, the last
 * one writes down the time and kills itself, the others notice, shrink and go on. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { kCount = 1000 };
static const double kAfterMs = 200; /* of all-reduces */

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t); /* one for all processes of a machine */
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* The file whose name the environment has is where the last one writes its time. */
static void end_here(void) {
  FILE* f = fopen(getenv("RECOVERY_FILE"), "w");
  if (!f) abort();
  fprintf(f, "%.6f\n", now_ms());
  fclose(f);
  kill(getpid(), SIGKILL);
}

/* One line on standard output: how long after that a rank noticed, and how long shrinking took. */
static void report(int rank, double noticed_ms, double shrunk_ms, double sum, int left) {
  double killed_ms = 0;
  FILE* f = fopen(getenv("RECOVERY_FILE"), "r");
  if (!f || fscanf(f, "%lf", &killed_ms) != 1 || fabs(sum - left) > 1e-9) {
    printf("rank %d is wrong\n", rank);
    exit(1);
  }
  fclose(f);
  printf("noticed %.3f shrunk %.3f\n", noticed_ms - killed_ms, shrunk_ms - noticed_ms);
  fflush(stdout);
}
