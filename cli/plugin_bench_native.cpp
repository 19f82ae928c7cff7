// `gccl bench` under gccl launch, torchrun or any starter that GCCL_Init knows.
#include <cstdio>
#include <cstdlib>

#include "cli/bench/run.hpp"
#include "libgccl/communicator/world.hpp"

namespace gccl::bench {
namespace {

class NativeCarrier final : public Carrier {
 public:
  explicit NativeCarrier(std::unique_ptr<Communicator> c) : comm_(std::move(c)) {}
  ~NativeCarrier() override {
    if (const Status s = comm_->leave(); !s.ok()) std::fprintf(stderr, "gccl bench: %s\n", s.text().c_str());
  }

  std::string name() const override { return comm_->world().start.backends; }
  Rank ranks() const override { return comm_->size(); }
  Rank rank() const override { return comm_->rank(); }
  const Layout& layout() const override { return comm_->layout(); }
  void use_layout(Layout layout) override { comm_->use_layout(std::move(layout)); }
  const Algorithm* choose(const Call& call, Dtype dtype) override { return comm_->chosen(call, size_of(dtype)); }
  std::string grounds() const override { return "auto: the communicator's own choice, with its own shares and lanes"; }
  Status run(const Algorithm& a, const Call& call, Dtype dtype, Reduction op, const void* input, void* output,
             const Slicing& slicing, bool as_chosen) override {
    Work w;
    w.what = {.kind = std::uint8_t(call.kind),
              .dtype = GCCL_Dtype(dtype),
              .op = reduces(call.kind) ? GCCL_Op(op) : -1,
              .root = call.root,
              .count = call.count};
    const Status s = elements_of(w.what.dtype, w.what.op == -1 ? std::nullopt : std::optional(w.what.op), &w.elements);
    if (!s.ok()) return s;
    w.call = call;
    if (call.kind == Collective::alltoallv) {  // as from GCCL_Alltoallv: the communicator compares them among the ranks
      sent_.clear();
      received_.clear();
      for (Rank r = 0; r < ranks(); ++r) {
        sent_.push_back(call.between(rank(), r));
        received_.push_back(call.between(r, rank()));
      }
      w.lengths = std::make_unique<Lengths>();
      w.lengths->me = rank();
      w.lengths->send_counts = sent_.data();
      w.lengths->recv_counts = received_.data();
    }
    w.memory.base[std::size_t(Buffer::input)] = static_cast<std::byte*>(const_cast<void*>(input));
    w.memory.base[std::size_t(Buffer::output)] = static_cast<std::byte*>(output);
    if (!as_chosen) {
      w.algorithm = &a;
      w.slicing = slicing;
    }
    return comm_->run(std::move(w));
  }
  void barrier() override {
    Work w;
    w.what.kind = std::uint8_t(Collective::barrier);
    w.call.kind = Collective::barrier;
    hold(comm_->run(std::move(w)));
  }
  double max_over_ranks(double value) override { return over_ranks(value, GCCL_FLOAT64, GCCL_MAX); }
  std::uint64_t sum_over_ranks(std::uint64_t value) override { return over_ranks(value, GCCL_UINT64, GCCL_SUM); }
  [[noreturn]] void abort() override {
    comm_->abort(1);
    std::exit(1);
  }

 private:
  template <class T>
  T over_ranks(T value, GCCL_Dtype dtype, GCCL_Op op) {
    T result{};
    Work w;
    w.what = {.kind = std::uint8_t(Collective::allreduce), .dtype = dtype, .op = op, .count = 1};
    hold(elements_of(dtype, op, &w.elements));
    w.call = {.kind = Collective::allreduce, .count = 1};
    w.memory.base[std::size_t(Buffer::input)] = reinterpret_cast<std::byte*>(&value);
    w.memory.base[std::size_t(Buffer::output)] = reinterpret_cast<std::byte*>(&result);
    hold(comm_->run(std::move(w)));
    return result;
  }
  void hold(const Status& s) {
    if (s.ok()) return;
    std::fprintf(stderr, "gccl bench: %s\n", s.text().c_str());
    abort();
  }

  std::unique_ptr<Communicator> comm_;
  std::vector<std::size_t> sent_, received_;  // of an alltoallv in flight
};

}  // namespace
}  // namespace gccl::bench

extern "C" int gccl_bench(const std::string& backends, const std::vector<std::string>& args, gccl::bench::Parse parse,
                          std::string* error) {
  GCCL_Config config = GCCL_CONFIG_INIT;
  if (!backends.empty()) config.backends = backends.c_str();
  std::unique_ptr<gccl::Communicator> c;
  if (const gccl::Status s = gccl::create_world(&config, -1, &c); !s.ok()) return *error = s.text(), 2;
  gccl::bench::NativeCarrier carrier(std::move(c));
  return gccl::bench::run(carrier, args, parse);
}
