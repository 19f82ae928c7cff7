// Which ranks reach each other by MPI, and the communicator in which they do.
#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

#include "libgccl/transports/mpi/mpi_port.hpp"

namespace gccl::mpi {
namespace {

// What peers need to know; all zero for a rank without MPI.
struct Address {
  std::uint64_t job;         // which MPI_COMM_WORLD
  std::uint32_t world_size;  // of that
  std::uint32_t world_rank;
  bool same_world(const Address& other) const { return job == other.job && world_size == other.world_size; }
};
static_assert(sizeof(Address) <= GCCL_BACKEND_ADDRESS_BYTES);

// Starters give each MPI_COMM_WORLD a name of its own. Where one does not, its size and ranks must do.
std::uint64_t job() {
  for (const char* variable : {"PMIX_NAMESPACE", "PMI_KVS", "PMI_JOBID", "SLURM_STEP_ID"})
    if (const char* text = std::getenv(variable)) return std::hash<std::string_view>{}(text) | 1;
  return 1;
}

Address address_of(const void* addresses, std::uint32_t rank) {
  Address a;
  std::memcpy(&a, static_cast<const std::byte*>(addresses) + std::size_t(rank) * GCCL_BACKEND_ADDRESS_BYTES, sizeof a);
  return a;
}

}  // namespace

Port::Port(const Instance& instance, const GCCL_Port_spec& spec, void* address)
    : instance_(instance), rank_(spec.rank), channels_(spec.channels), place_(spec.size, -1) {
  int size = 0, rank = 0;
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const Address mine{job(), std::uint32_t(size), std::uint32_t(rank)};
  std::memcpy(address, &mine, sizeof mine);
}

bool Port::connect(const GCCL_Port_spec& spec, const void* addresses, std::uint8_t* reaches) {
  assert(spec.rank == rank_ && spec.size == place_.size() && spec.channels == channels_);  // those of open_port
  assert(ends_.empty());                                                                   // once
  const Address mine = address_of(addresses, rank_);
  std::vector<int> world;  // by place
  for (std::uint32_t r = 0; r < spec.size; ++r) {
    const Address theirs = address_of(addresses, r);
    if (!theirs.same_world(mine)) continue;
    // Programs that were started one by one are each rank 0 of a world of one.
    if (std::find(world.begin(), world.end(), int(theirs.world_rank)) != world.end()) {
      fail(GCCL_ERR_SYSTEM, r, "two ranks of the job are the same rank of MPI_COMM_WORLD; start them by mpirun");
      return false;
    }
    place_[r] = int(world.size());
    world.push_back(int(theirs.world_rank));
  }
  MPI_Group all = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
  PMPI_Comm_group(MPI_COMM_WORLD, &all);
  int code = PMPI_Group_incl(all, int(world.size()), world.data(), &group);
  if (code == MPI_SUCCESS) {
    // Other communicators that are made at the same time have another number. 32767 is the least that MPI grants.
    code = PMPI_Comm_create_group(MPI_COMM_WORLD, group, int(spec.communicator % 32767), &comm_);
    PMPI_Group_free(&group);
  }
  PMPI_Group_free(&all);
  if (failed(code, "MPI_Comm_create_group")) return false;
  PMPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);

  ends_.resize(world.size() * channels_ * 2);
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    ends_[i].peer = int(i / (channels_ * 2));
    ends_[i].tag = int(i / 2 % channels_);
    ends_[i].sends = i % 2 == 0;
  }
  for (std::uint32_t r = 0; r < spec.size; ++r)
    if (r != rank_ && place_[r] >= 0) reaches[r] = 1;

  MPI_Request request = MPI_REQUEST_NULL;
  if (failed(PMPI_Irecv(received_fault_.get(), int(sizeof *received_fault_), MPI_BYTE, MPI_ANY_SOURCE, int(channels_),
                        comm_, &request),
             "MPI_Irecv"))
    return false;
  requests_.push_back(request);
  flights_.push_back({.kind = Flight::Kind::fault});
  return true;
}

}  // namespace gccl::mpi
