// The measuring loop over MPI, built once for each implementation.
//   mpirun -n N bench_peer_openmpi --control SOCKET
#define OMPI_SKIP_MPICXX 1  // the C++ interface that MPI has removed
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include "bench/peers/loop.hpp"

namespace {

using namespace gccl::bench;

// Errors end the job with MPI's own message: MPI_ERRORS_ARE_FATAL is the default.
class MpiPeer final : public Peer {
 public:
  MpiPeer() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

  std::function<void()> bind(Kind kind, Buffers b) override {
    const int count = int(b.count);
    switch (kind) {
      case Kind::allreduce: return [=] { MPI_Allreduce(b.in, b.out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); };
      case Kind::allgather:
        return [=] { MPI_Allgather(b.in, count, MPI_FLOAT, b.out, count, MPI_FLOAT, MPI_COMM_WORLD); };
      case Kind::reduce_scatter:
        return [=] { MPI_Reduce_scatter_block(b.in, b.out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); };
      case Kind::broadcast: return [=] { MPI_Bcast(b.out, count, MPI_FLOAT, 0, MPI_COMM_WORLD); };
      case Kind::alltoall:
        return [=] { MPI_Alltoall(b.in, count, MPI_FLOAT, b.out, count, MPI_FLOAT, MPI_COMM_WORLD); };
      case Kind::barrier: return [] { MPI_Barrier(MPI_COMM_WORLD); };
      case Kind::pingpong:
        return [=, rank = rank_] {
          if (rank > 1) return;
          if (rank == 0) MPI_Send(b.out, count, MPI_FLOAT, 1, 1, MPI_COMM_WORLD);
          MPI_Recv(b.out, count, MPI_FLOAT, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          if (rank == 1) MPI_Send(b.out, count, MPI_FLOAT, 0, 1, MPI_COMM_WORLD);
        };
    }
    return {};
  }

 private:
  int rank_ = 0, size_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int status = 2;
  try {
    Control control(option(argc, argv, "control"));
    MpiPeer peer;
    status = serve(peer, control);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_peer (MPI): %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Finalize();
  return status;
}
