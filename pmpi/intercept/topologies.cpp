// Open MPI 4.1 sends the edges of MPI_Dist_graph_create over the communicator that it is called on, with tags -50 and
// -51, and takes them from any rank. These are also the tags of the 24th and 25th of MPI's own non-blocking collectives
// there, of which it needs three for each communicator that is made from this one. The first message of those, from a
// rank that has its edges, is taken for edges by a rank that waits for some, and all hang. In plain MPI it depends on
// the communicators that the program has made before; with the drop-in it would depend on the drop-in's own, too. So
// these tags are used up first.
#include <mpi.h>

#ifdef OPEN_MPI
#include <vector>

#include "pmpi/engine/progress.hpp"

using namespace gccl::pmpi;

namespace {

constexpr int kTags = 25;

void use_up_tags(MPI_Comm comm) {
  std::vector<MPI_Request> requests(kTags, MPI_REQUEST_NULL);
  for (MPI_Request& request : requests) PMPI_Ibarrier(comm, &request);
  wait_for([&](int* flag) { return PMPI_Testall(kTags, requests.data(), flag, MPI_STATUSES_IGNORE); });
}

}  // namespace

extern "C" int MPI_Dist_graph_create(MPI_Comm comm, int n, const int nodes[], const int degrees[], const int targets[],
                                     const int weights[], MPI_Info info, int reorder, MPI_Comm* made) {
  // A wrong call may be that of one rank alone.
  const bool right = n >= 0 && made && (n == 0 || (nodes && degrees && targets && weights));
  Reason why;
  Communicator* const k = right ? find(comm, &why) : nullptr;
  if (k && k->me.size > 1 && !k->used_up_tags) {
    k->used_up_tags = true;
    use_up_tags(comm);
  }
  return PMPI_Dist_graph_create(comm, n, nodes, degrees, targets, weights, info, reorder, made);
}
#endif
