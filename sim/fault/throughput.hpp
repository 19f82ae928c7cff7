// How fast calls are after faults, beside those before: each with its like.
#pragma once

#include <map>
#include <vector>

#include "libgccl/schedule/types.hpp"

namespace gccl::sim {

// Kind: calls of one are alike.
template <class Kind>
class Throughput {
 public:
  void before(const Kind& kind, Nanos took) { all_[kind].before.push_back(took); }
  void after(const Kind& kind, Nanos took) { all_[kind].after.push_back(took); }

  // Operations a second after, in parts of those before, of the kinds that there are both before and after; -1: none.
  // `typical`: the mean, or the median, of some times.
  template <class Typical>
  double relative(Typical typical) const {
    double then = 0, now = 0;
    for (const auto& [kind, times] : all_) {
      if (times.before.empty() || times.after.empty()) continue;
      then += typical(times.before) * double(times.after.size());
      now += typical(times.after) * double(times.after.size());
    }
    return now > 0 ? then / now : -1;
  }

 private:
  struct Times {
    std::vector<Nanos> before, after;
  };
  std::map<Kind, Times> all_;
};

}  // namespace gccl::sim
