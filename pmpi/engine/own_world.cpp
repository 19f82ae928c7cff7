#include "pmpi/engine/own_world.hpp"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <numeric>

#include "pmpi/engine/progress.hpp"

namespace gccl::pmpi {
namespace {

constexpr double kQuietSeconds = 10;
MPI_Comm world = MPI_COMM_NULL;

void say_that_it_waits() {
  int rank = 0, size = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  std::fprintf(
      stderr,
      "gccl_pmpi: rank %d of %d: MPI_Init has waited %g seconds for the other ranks. It waits for ever for one "
      "without the drop-in, and for one in Fortran: start all ranks of the job with it, or none\n",
      rank, size, kQuietSeconds);
}

}  // namespace

MPI_Comm own_world() { return world; }

void make_own_world() {
  const double from = PMPI_Wtime();
  bool said = false;
  const auto finish = [&](MPI_Request request) {
    wait_for([&](int* flag) {
      if (!said && PMPI_Wtime() - from > kQuietSeconds) {
        said = true;
        say_that_it_waits();
      }
      return PMPI_Test(&request, flag, MPI_STATUS_IGNORE);
    });
  };
  MPI_Request request = MPI_REQUEST_NULL;
  PMPI_Comm_idup(MPI_COMM_WORLD, &world, &request);
  finish(request);
  PMPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  // A rank without the drop-in may have taken part in that, for a communicator of the program's.
  PMPI_Ibarrier(world, &request);
  finish(request);
}

void free_own_world() { PMPI_Comm_free(&world); }

int next_own_tag() {
  static std::atomic<std::int64_t> count{0};
  int rank = 0, size = 1, found = 0;
  void* highest = nullptr;
  PMPI_Comm_rank(world, &rank);
  PMPI_Comm_size(world, &size);
  PMPI_Comm_get_attr(world, MPI_TAG_UB, &highest, &found);
  const std::int64_t tags = found ? std::int64_t(*static_cast<const int*>(highest)) + 1 : 32768;
  return int((count.fetch_add(1) * size + rank) % tags);
}

std::vector<int> places_in_world(MPI_Comm comm, int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size)), places(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  MPI_Group group, all;
  PMPI_Comm_group(comm, &group);
  PMPI_Comm_group(MPI_COMM_WORLD, &all);
  PMPI_Group_translate_ranks(group, size, ranks.data(), all, places.data());
  PMPI_Group_free(&group);
  PMPI_Group_free(&all);
  return places;
}

}  // namespace gccl::pmpi
