// The measuring loop over GCCL's C interface. Rank, size and store come from the environment, as `gccl launch` sets it:
//   gccl launch -n N -- bench_peer_gccl --control SOCKET [--memory gccl]
// With --memory gccl the buffers are GCCL_Mem_alloc's.
#include "gccl/gccl.h"

#include "bench/peers/loop.hpp"

namespace {

using namespace gccl::bench;

inline void must(GCCL_Result result, const char* call) {
  if (result == GCCL_SUCCESS) return;
  std::fprintf(stderr, "bench_peer_gccl: %s: %s: %s\n", call, GCCL_Error_string(result), GCCL_Last_error());
  std::exit(3);
}

class GcclPeer final : public Peer {
 public:
  explicit GcclPeer(bool own_memory) : own_memory_(own_memory) {
    must(GCCL_Init(&world_, nullptr), "GCCL_Init");
    must(GCCL_Comm_rank(world_, &rank_), "GCCL_Comm_rank");
    must(GCCL_Comm_size(world_, &size_), "GCCL_Comm_size");
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override {
    must(GCCL_Barrier(world_), "GCCL_Barrier");
    called_ = true;
  }

  float* allocate(std::size_t bytes) override {
    void* p = nullptr;
    if (own_memory_) must(GCCL_Mem_alloc(&p, bytes), "GCCL_Mem_alloc");
    return static_cast<float*>(p);
  }
  void release(float* p) override { must(GCCL_Mem_free(p), "GCCL_Mem_free"); }

  std::function<void()> bind(Kind kind, Buffers b) override {
    const GCCL_Comm comm = world_;
    switch (kind) {
      case Kind::allreduce:
        return [=] { must(GCCL_Allreduce(b.in, b.out, b.count, GCCL_FLOAT32, GCCL_SUM, comm), "GCCL_Allreduce"); };
      case Kind::allgather:
        return [=] { must(GCCL_Allgather(b.in, b.out, b.count, GCCL_FLOAT32, comm), "GCCL_Allgather"); };
      case Kind::reduce_scatter:
        return [=] {
          must(GCCL_Reduce_scatter(b.in, b.out, b.count, GCCL_FLOAT32, GCCL_SUM, comm), "GCCL_Reduce_scatter");
        };
      case Kind::broadcast:
        return [=] { must(GCCL_Broadcast(b.out, b.count, GCCL_FLOAT32, 0, comm), "GCCL_Broadcast"); };
      case Kind::alltoall:
        return [=] { must(GCCL_Alltoall(b.in, b.out, b.count, GCCL_FLOAT32, comm), "GCCL_Alltoall"); };
      case Kind::barrier: return [=] { must(GCCL_Barrier(comm), "GCCL_Barrier"); };
      case Kind::pingpong:
        return [=, rank = rank_] {
          if (rank > 1) return;
          if (rank == 0) must(GCCL_Send(b.out, b.count, GCCL_FLOAT32, 1, comm), "GCCL_Send");
          must(GCCL_Recv(b.out, b.count, GCCL_FLOAT32, 1 - rank, comm), "GCCL_Recv");
          if (rank == 1) must(GCCL_Send(b.out, b.count, GCCL_FLOAT32, 0, comm), "GCCL_Send");
        };
    }
    return {};
  }

  // GCCL's figures are always on; one that counted nothing would make the comparison unfair.
  bool counted() const {
    if (!called_) return true;
    GCCL_Metrics metrics{};
    metrics.struct_bytes = sizeof metrics;
    must(GCCL_Get_performance_metrics(world_, &metrics), "GCCL_Get_performance_metrics");
    for (const GCCL_Call_metrics& kind : metrics.calls)
      if (kind.name && kind.calls > 0) return true;
    return false;
  }

 private:
  GCCL_Comm world_ = GCCL_COMM_NULL;
  int rank_ = 0, size_ = 1;
  bool called_ = false;
  bool own_memory_;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    Control control(option(argc, argv, "control"));
    GcclPeer peer(option(argc, argv, "memory") == "gccl");
    int status = serve(peer, control);
    if (!peer.counted()) {
      std::fprintf(stderr, "bench_peer_gccl: the performance metrics are empty\n");
      status = 3;
    }
    must(GCCL_Finalize(), "GCCL_Finalize");
    return status;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_peer_gccl: %s\n", error.what());
    return 2;
  }
}
