// What `gccl bench` measures: any backend that carries out schedules between real ranks.
#pragma once

#include <string>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/base/status.hpp"
#include "libgccl/cost/slicing.hpp"
#include "libgccl/elements/reduction.hpp"
#include "libgccl/schedule/layout.hpp"

namespace gccl::bench {

class Carrier {
 public:
  virtual ~Carrier() = default;
  virtual std::string name() const = 0;
  virtual Rank ranks() const = 0;
  virtual Rank rank() const = 0;
  virtual const Layout& layout() const = 0;
  virtual void use_layout(Layout layout) = 0;
  // What "auto" stands for, and on what grounds.
  virtual const Algorithm* choose(const Call& call, Dtype dtype) = 0;
  virtual std::string grounds() const = 0;
  // Carries the call out. `as_chosen`: with the slicing that goes with choose() rather than this one.
  virtual Status run(const Algorithm& algorithm, const Call& call, Dtype dtype, Reduction op, const void* input,
                     void* output, const Slicing& slicing, bool as_chosen) = 0;
  virtual void barrier() = 0;
  virtual double max_over_ranks(double value) = 0;
  virtual std::uint64_t sum_over_ranks(std::uint64_t value) = 0;
  // Ends every rank: they may be waiting for this one's messages.
  [[noreturn]] virtual void abort() = 0;
};

}  // namespace gccl::bench
