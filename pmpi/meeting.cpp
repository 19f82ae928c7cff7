#include "pmpi/meeting.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <numeric>

namespace gccl::pmpi {
namespace {

MPI_Comm world = MPI_COMM_NULL;
int tag_max = 32767;

}  // namespace

MPI_Comm own_world() { return world; }

void make_own_world() {
  PMPI_Comm_dup(MPI_COMM_WORLD, &world);
  PMPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  void* value = nullptr;
  int flag = 0;
  PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
  if (flag) tag_max = *static_cast<int*>(value);
}

Meeting::Meeting(MPI_Comm comm, int rank, int size) : rank_(rank), places_(static_cast<std::size_t>(size)) {
  std::vector<int> ranks(places_.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  MPI_Group group, all;
  PMPI_Comm_group(comm, &group);
  PMPI_Comm_group(world, &all);
  PMPI_Group_translate_ranks(group, size, ranks.data(), all, places_.data());
  PMPI_Group_free(&group);
  PMPI_Group_free(&all);
  for (const int place : places_) possible_ &= place != MPI_UNDEFINED;
}

int Meeting::choose_tag() const {
  // Two meetings whose messages could be confused have a pair of ranks in common, but differ in rank 0, or in its
  // count.
  constexpr unsigned kAtOnce = 4096;
  static std::atomic<unsigned> count{0};
  const std::uint64_t number = std::uint64_t(places_[0]) * kAtOnce + count.fetch_add(1) % kAtOnce;
  return int(number % (std::uint64_t(tag_max) + 1));
}

void Meeting::begin(const void* mine, void* all, std::size_t bytes) {
  all_ = static_cast<std::byte*>(all);
  bytes_ = bytes;
  spreading_ = false;
  const int n = int(bytes), size = int(places_.size());
  requests_.assign(rank_ == 0 ? places_.size() : 2, MPI_REQUEST_NULL);
  if (rank_ != 0) {
    PMPI_Irecv(all, n * size, MPI_BYTE, places_[0], tag_, world, &requests_[0]);
    PMPI_Isend(mine, n, MPI_BYTE, places_[0], tag_, world, &requests_[1]);
    return;
  }
  std::memcpy(all_, mine, bytes);
  for (std::size_t r = 1; r < places_.size(); ++r)
    PMPI_Irecv(all_ + r * bytes, n, MPI_BYTE, places_[r], tag_, world, &requests_[r]);
}

bool Meeting::arrived() {
  int flag = 0;
  PMPI_Testall(int(requests_.size()), requests_.data(), &flag, MPI_STATUSES_IGNORE);
  if (!flag) return false;
  if (rank_ != 0 || spreading_) return true;
  spreading_ = true;
  for (std::size_t r = 1; r < places_.size(); ++r)
    PMPI_Isend(all_, int(bytes_ * places_.size()), MPI_BYTE, places_[r], tag_, world, &requests_[r]);
  return arrived();
}

}  // namespace gccl::pmpi
