/* fftw_mpi SIZE HOW: a complex 3-D transform and its inverse over all ranks. Prints some of the spectrum and whether
 * the data came back. */
#include <fftw3-mpi.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  fftw_mpi_init();
  int rank, sizes[3];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 3 || sscanf(argv[1], "%dx%dx%d", &sizes[0], &sizes[1], &sizes[2]) != 3) MPI_Abort(MPI_COMM_WORLD, 2);
  const int transposed = strstr(argv[2], "transposed") != NULL;
  const unsigned plan = strstr(argv[2], "measure") ? FFTW_MEASURE : FFTW_ESTIMATE;
  const ptrdiff_t n[3] = {sizes[0], sizes[1], sizes[2]};
  ptrdiff_t here, from, here_t, from_t;
  const ptrdiff_t room =
      fftw_mpi_local_size_3d_transposed(n[0], n[1], n[2], MPI_COMM_WORLD, &here, &from, &here_t, &from_t);
  fftw_complex* data = fftw_alloc_complex(room > 0 ? room : 1);
  fftw_plan there = fftw_mpi_plan_dft_3d(n[0], n[1], n[2], data, data, MPI_COMM_WORLD, FFTW_FORWARD,
                                         plan | (transposed ? FFTW_MPI_TRANSPOSED_OUT : 0));
  fftw_plan back = fftw_mpi_plan_dft_3d(n[0], n[1], n[2], data, data, MPI_COMM_WORLD, FFTW_BACKWARD,
                                        plan | (transposed ? FFTW_MPI_TRANSPOSED_IN : 0));
  const ptrdiff_t mine = here * n[1] * n[2];
  for (ptrdiff_t i = 0; i < mine; ++i) {
    const double x = (double)((from * n[1] * n[2] + i) * 2654435761u % 1000) / 1000;
    data[i][0] = x;
    data[i][1] = 1 - x;
  }
  fftw_execute(there);
  double power = 0, all_power = 0;
  const ptrdiff_t spectrum = transposed ? here_t * n[0] * n[2] : mine;
  for (ptrdiff_t i = 0; i < spectrum; ++i) power += data[i][0] * data[i][0] + data[i][1] * data[i][1];
  /* Added up in the order of the ranks, so that no library's order shows. */
  double powers[1024] = {0};
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allgather(&power, 1, MPI_DOUBLE, powers, 1, MPI_DOUBLE, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) all_power += powers[r];
  if (rank == 0) printf("zero frequency %.17g %.17g, power %.17g\n", data[0][0], data[0][1], all_power);
  fftw_execute(back);
  double worst = 0, all_worst = 0;
  const double scale = (double)(n[0] * n[1] * n[2]);
  for (ptrdiff_t i = 0; i < mine; ++i) {
    const double x = (double)((from * n[1] * n[2] + i) * 2654435761u % 1000) / 1000;
    worst = fmax(worst, fmax(fabs(data[i][0] / scale - x), fabs(data[i][1] / scale - (1 - x))));
  }
  MPI_Reduce(&worst, &all_worst, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) puts(all_worst < 1e-12 ? "error below 1e-12" : "wrong");
  fftw_destroy_plan(there);
  fftw_destroy_plan(back);
  fftw_free(data);
  fftw_mpi_cleanup();
  MPI_Finalize();
  return 0;
}
