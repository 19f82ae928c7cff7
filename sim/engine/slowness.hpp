// Which rank is slow: the time that its messages take, compared with that of all messages of the same size and kind.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "libgccl/schedule/types.hpp"

namespace gccl::sim {

class Slowness {
 public:
  explicit Slowness(std::size_t ranks) : ranks_(ranks) {}

  // A message of `bytes`, inside a node or not, took so long from its send until it was there.
  void message(Rank from, Rank to, Count bytes, bool inside, Nanos took) {
    std::vector<Sum>& sums = kinds_[{bytes, inside}];
    if (sums.empty()) sums.resize(ranks_);
    for (const Rank r : {from, to}) {
      sums[r].time += double(took);
      ++sums[r].messages;
    }
  }

  // The rank whose messages take longest, if they take 1.3 times as long as usual: a slow rank is one end of all of its
  // messages, and of few of any other's.
  std::optional<Rank> slowest() const {
    std::vector<double> took(ranks_, 0), usual(ranks_, 0);
    for (const auto& [kind, sums] : kinds_) {
      std::vector<double> means;
      for (const Sum& s : sums)
        if (s.messages) means.push_back(s.time / double(s.messages));
      std::nth_element(means.begin(), means.begin() + std::ptrdiff_t(means.size() / 2), means.end());
      const double median = means[means.size() / 2];
      for (std::size_t r = 0; r < ranks_; ++r) {
        took[r] += sums[r].time;
        usual[r] += double(sums[r].messages) * median;
      }
    }
    std::optional<Rank> worst;
    double most = kSlow;
    for (Rank r = 0; r < ranks_; ++r)
      if (usual[r] > 0 && took[r] / usual[r] > most) worst = r, most = took[r] / usual[r];
    return worst;
  }

 private:
  static constexpr double kSlow = 1.3;
  struct Sum {
    double time = 0;
    std::uint64_t messages = 0;
  };
  std::size_t ranks_;
  std::map<std::pair<Count, bool>, std::vector<Sum>> kinds_;
};

}  // namespace gccl::sim
