#include "pmpi/engine/own_world.hpp"

#include <atomic>
#include <cstdint>
#include <numeric>

namespace gccl::pmpi {
namespace {

MPI_Comm world = MPI_COMM_NULL;

}  // namespace

MPI_Comm own_world() { return world; }

void make_own_world() {
  PMPI_Comm_dup(MPI_COMM_WORLD, &world);
  PMPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
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
