// How fast calls are after faults, beside those before: each with its like.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "libgccl/schedule/call.hpp"

namespace gccl::sim {

class Throughput {
 public:
  void before(const Call& call, unsigned element_bytes, Nanos took) { of(call, element_bytes).before.push_back(took); }
  void after(const Call& call, unsigned element_bytes, Nanos took) { of(call, element_bytes).after.push_back(took); }

  // Operations a second after, in parts of those before, of the calls that there are both before and after; -1: none.
  // `typical`: the mean, or the median, of some times.
  template <class Typical>
  double relative(Typical typical) const {
    double then = 0, now = 0;
    for (const auto& [call, times] : all_) {
      if (times.before.empty() || times.after.empty()) continue;
      then += typical(times.before);
      now += typical(times.after);
    }
    return now > 0 ? then / now : -1;
  }

 private:
  struct Times {
    std::vector<Nanos> before, after;
  };
  Times& of(const Call& call, unsigned element_bytes) { return all_[{call.kind, call.count, element_bytes}]; }

  std::map<std::tuple<Collective, Count, unsigned>, Times> all_;
};

}  // namespace gccl::sim
