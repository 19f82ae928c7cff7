#include "cli/bench/job.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "libgccl/communicator/splitting.hpp"
#include "libgccl/communicator/world.hpp"

namespace gccl::bench {

Status Job::meet(const GCCL_Config& config, const char* command, std::unique_ptr<Job>* out) {
  std::unique_ptr<CommunicatorCore> comm;
  if (Status s = create_world(&config, -1, &comm); !s.ok()) return s;
  out->reset(new Job(std::move(comm), command));
  return {};
}

Job::~Job() {
  if (const Status s = comm_->leaving().leave(); !s.ok()) std::fprintf(stderr, "%s: %s\n", command_, s.text().c_str());
}

Status Job::run(const Algorithm* algorithm, const Call& call, Dtype dtype, Reduction op, const void* input,
                void* output, const Slicing& slicing) {
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
  if (algorithm) {
    w.algorithm = algorithm;
    w.slicing = slicing;
  }
  return comm_->run(std::move(w));
}

void Job::barrier() {
  Work w;
  w.what.kind = std::uint8_t(Collective::barrier);
  w.call.kind = Collective::barrier;
  hold(comm_->run(std::move(w)));
}

void Job::barrier_asleep() {
  Work w;
  w.what.kind = std::uint8_t(Collective::barrier);
  w.call.kind = Collective::barrier;
  Operation* op = nullptr;
  const std::int64_t limit_ms = comm_->timeout_ms();
  comm_->set_timeout(GCCL_TIMEOUT_NONE);  // what the others do meanwhile is many calls
  Status s = comm_->start(std::move(w), &op);
  while (s.ok() && op && !CommunicatorCore::test(op, &s)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  comm_->set_timeout(limit_ms);
  hold(s);
}

std::unique_ptr<Job> Job::part(const std::vector<int>& ranks) {
  std::unique_ptr<CommunicatorCore> comm;
  hold(create_from(*comm_, ranks, &comm));
  return comm ? std::unique_ptr<Job>(new Job(std::move(comm), command_)) : nullptr;
}

template <class Values>
void Job::share_as(Values& values, Dtype dtype, Rank from) {
  values.resize(over_ranks(std::uint64_t(rank() == from ? values.size() : 0), GCCL_UINT64, GCCL_MAX));
  hold(run(nullptr, {.kind = Collective::broadcast, .count = values.size(), .root = from, .in_place = true}, dtype,
           Reduction::sum, values.data(), values.data(), {}));
}
void Job::share(std::vector<double>& values, Rank from) { share_as(values, Dtype::f64, from); }
void Job::share(std::string& text, Rank from) { share_as(text, Dtype::u8, from); }

template <class T>
T Job::over_ranks(T value, GCCL_Dtype dtype, GCCL_Op op) {
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
template double Job::over_ranks(double, GCCL_Dtype, GCCL_Op);
template std::uint64_t Job::over_ranks(std::uint64_t, GCCL_Dtype, GCCL_Op);

void Job::hold(const Status& s) {
  if (s.ok()) return;
  std::fprintf(stderr, "%s: %s\n", command_, s.text().c_str());
  abort();
}

void Job::abort() {
  comm_->abort(1);
  std::exit(1);
}

}  // namespace gccl::bench
