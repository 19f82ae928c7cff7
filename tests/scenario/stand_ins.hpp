// An engine that stands in where a test is not about what engines do.
#pragma once

#include "tests/scenario/played.hpp"

namespace gccl::test {

// Takes as many nanoseconds as the algorithm's name has letters, times the rank count of the first operation.
inline sim::Outcome by_name(const sim::Workload& w) {
  sim::Outcome o;
  const sim::SimulatedOperation& first = w.operations[0];
  o.time_ns = Nanos(first.algorithm->name.size() * first.ranks());
  o.begin_ns.assign(w.operations.size(), 0);
  o.end_ns.assign(w.operations.size(), o.time_ns);
  o.link_bytes.assign(w.cluster->links().size(), 0);
  o.messages = 1;
  return o;
}

inline const sim::Engines kByName{by_name, by_name};

inline Json result_of(const sim::Campaign& plan, const sim::Engines& engines = kByName, unsigned jobs = 3) {
  return sim::run_campaign(plan, engines, {.jobs = jobs, .progress = {}}).document;
}

}  // namespace gccl::test
