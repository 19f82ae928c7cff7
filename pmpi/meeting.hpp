// An all-gather that waits for nobody, between the ranks of an MPI communicator, in messages of our own.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace gccl::pmpi {

// A duplicate of MPI_COMM_WORLD that the program does not know, made in MPI_Init. MPI_COMM_NULL before, and where MPI
// was started by other means.
MPI_Comm own_world();
// Collective over MPI_COMM_WORLD.
void make_own_world();

// Messages, not collectives on a duplicate: making a duplicate waits for every rank, or (MPI_Comm_idup) holds up all
// others that the program makes meanwhile, in Open MPI 4.
class Meeting {
 public:
  // Of the ranks of `comm`; this one is `rank`. The tag must be theirs alone among the meetings of the time.
  Meeting(MPI_Comm comm, int rank, int size);
  // False when not all of them are in MPI_COMM_WORLD. Every rank finds the same.
  bool possible() const { return possible_; }
  // For rank 0: a tag that no other meeting of the time uses.
  int choose_tag() const;
  void use_tag(int tag) { tag_ = tag; }

  // Begins a round: `bytes` bytes from each rank, to each rank in `all`. One at a time.
  void begin(const void* mine, void* all, std::size_t bytes);
  // Carries it on. True when it is over.
  bool arrived();

 private:
  int rank_, tag_ = 0;
  bool possible_ = true;
  std::vector<int> places_;  // in own_world(), by rank
  std::vector<MPI_Request> requests_;
  bool spreading_ = false;  // rank 0 has everything and tells the others
  std::byte* all_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace gccl::pmpi
