// `gccl bench` under mpirun.
#include "cli/bench/run.hpp"
#include "libgccl/select/cheapest.hpp"
#include "libgccl/transports/mpi/mpi_communicator.hpp"

namespace gccl::bench {
namespace {

// Ranks that talk through shared memory, nodes that talk over a 100 Gbit/s network, as a guess where nothing has been
// measured: "auto" only has to be a sensible choice.
CostModel default_model(Rank ranks_per_node, unsigned element_bytes) {
  CostModel m;
  m.node = {1000, 0.2};
  m.net = {2500, 0.08};
  m.net_all = {2500, 0.08 * ranks_per_node};
  m.overhead_ns = 300;
  m.combine_ns_per_byte = 0.1;
  m.copy_ns_per_byte = 0.1;
  m.element_bytes = element_bytes;
  return m;
}

// MPI from here to the end of the scope.
class Session {
 public:
  Session() { MPI_Init(nullptr, nullptr); }
  ~Session() { MPI_Finalize(); }
  Session(const Session&) = delete;
};

class MpiCarrier final : public Carrier {
 public:
  Status open() { return MpiCommunicator::create(MPI_COMM_WORLD, &comm_); }

  std::string name() const override { return "mpi"; }
  Rank ranks() const override { return comm_->size(); }
  Rank rank() const override { return comm_->rank(); }
  const Layout& layout() const override { return comm_->layout(); }
  void use_layout(Layout layout) override { comm_->use_layout(std::move(layout)); }
  const Algorithm* choose(const Call& call, Dtype dtype) override {
    const View v = comm_->layout().view(0);
    return cheapest(call, v, default_model(v.rails, size_of(dtype)));
  }
  std::string grounds() const override {
    return "auto: the cheapest closed form for 1 us and 5 GB/s in a node, 2.5 us and 12.5 GB/s between nodes";
  }
  Status run(const Algorithm& a, const Call& call, Dtype dtype, Reduction op, const void* input, void* output,
             const Slicing& slicing, bool) override {
    return comm_->run(a, call, dtype, op, input, output, slicing);
  }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  double max_over_ranks(double value) override {
    double most = 0;
    MPI_Allreduce(&value, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
  }
  std::uint64_t sum_over_ranks(std::uint64_t value) override {
    std::uint64_t sum = 0;
    MPI_Allreduce(&value, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return sum;
  }
  [[noreturn]] void abort() override {
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
  }

 private:
  Session session_;
  std::unique_ptr<MpiCommunicator> comm_;
};

}  // namespace
}  // namespace gccl::bench

extern "C" int gccl_bench(const std::string&, const std::vector<std::string>& args, gccl::bench::Parse parse,
                          std::string* error) {
  gccl::bench::MpiCarrier carrier;
  if (const gccl::Status s = carrier.open(); !s.ok()) return *error = s.text(), 2;
  return gccl::bench::run(carrier, args, parse);
}
