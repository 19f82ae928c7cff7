// `gccl bench` under mpirun.
#include "cli/bench/run.hpp"
#include "libgccl/cluster/transport_model.hpp"
#include "libgccl/select/plan.hpp"
#include "libgccl/transports/mpi/mpi_communicator.hpp"

namespace gccl::bench {
namespace {

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
    const TransportModel& mpi = transport_model("mpi");
    return plan(call, v, mpi.costs_on(v, size_of(dtype)), mpi.tuning).algorithm;
  }
  std::string grounds() const override { return "auto: the plan by cost-models/transports/mpi.json, in one chunk"; }
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
