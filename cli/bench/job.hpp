// The ranks that `gccl bench` and `gccl calibrate` measure: a communicator over whatever backends carry it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libgccl/communicator/communicator_core.hpp"
#include "libgccl/elements/reduction.hpp"

namespace gccl::bench {

class Job {
 public:
  // All ranks meet. `config` as in GCCL_Init; `command` for what is said when one fails.
  static Status meet(const GCCL_Config& config, const char* command, std::unique_ptr<Job>* out);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  std::string backends() const { return comm_->world().bootstrap.backends; }
  Rank ranks() const { return comm_->size(); }
  Rank rank() const { return comm_->rank(); }
  const Layout& layout() const { return comm_->team().plans->layout(); }
  // The node of each rank; nodes are numbered from 0 in the order of their lowest ranks.
  const std::vector<Rank>& nodes() const { return comm_->members().node; }
  bool oversubscribed() const { return comm_->world().oversubscribed; }
  void use_layout(Layout layout) { comm_->use_layout(std::move(layout)); }
  // What "auto" stands for.
  Plan planned(const Call& call, Dtype dtype) { return comm_->planned(call, size_of(dtype)); }
  // Carries the call out. Without an algorithm: as planned, with its own slicing.
  Status run(const Algorithm* algorithm, const Call& call, Dtype dtype, Reduction op, const void* input, void* output,
             const Slicing& slicing);
  // These end the job when they fail.
  void barrier();
  // The same for ranks that wait for long, and leave the processor to the others meanwhile.
  void barrier_asleep();
  // A job of these ranks, in this order; null on the others.
  std::unique_ptr<Job> part(const std::vector<int>& ranks);
  // What `from` has, on every rank.
  void share(std::vector<double>& values, Rank from);
  void share(std::string& text, Rank from);
  double max_over_ranks(double value) { return over_ranks(value, GCCL_FLOAT64, GCCL_MAX); }
  std::uint64_t sum_over_ranks(std::uint64_t value) { return over_ranks(value, GCCL_UINT64, GCCL_SUM); }
  // Ends the job unless that is ok.
  void hold(const Status& s);
  // Ends every rank: they may be waiting for this one's messages.
  [[noreturn]] void abort();

 private:
  Job(std::unique_ptr<CommunicatorCore> comm, const char* command) : comm_(std::move(comm)), command_(command) {}
  template <class T>
  T over_ranks(T value, GCCL_Dtype dtype, GCCL_Op op);
  template <class Values>
  void share_as(Values& values, Dtype dtype, Rank from);

  std::unique_ptr<CommunicatorCore> comm_;
  const char* const command_;
  std::vector<std::size_t> sent_, received_;  // of an alltoallv in flight
};

}  // namespace gccl::bench
