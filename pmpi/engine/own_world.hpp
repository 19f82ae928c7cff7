// Messages between the drop-ins of the ranks, which no other call of the program's or of MPI's can take for its own.
#pragma once

#include <mpi.h>

#include <vector>

namespace gccl::pmpi {

// A communicator of the ranks of MPI_COMM_WORLD, for the drop-in alone. It makes no others later: of the communicators
// that the threads of a rank are making at the same time, Open MPI 4.1 goes on with the one that is made from the
// lowest. With one more that only some of the ranks make, they could wait in a circle.
MPI_Comm own_world();
// Collective. Says so where it waits for long: a rank without the drop-in never comes. The communicator returns errors
// instead of raising them.
void make_own_world();
void free_own_world();

// A tag on own_world() that no other rank and no other call of this rank gets, until all are used up.
int next_own_tag();
// Where the ranks of `comm` are in MPI_COMM_WORLD; MPI_UNDEFINED for those that are elsewhere.
std::vector<int> places_in_world(MPI_Comm comm, int size);

}  // namespace gccl::pmpi
