// Which things are joined, directly or over others: union-find.
#pragma once

#include <cstddef>
#include <numeric>
#include <vector>

namespace gccl::topology {

class Islands {
 public:
  explicit Islands(std::size_t things) : parent_(things) { std::iota(parent_.begin(), parent_.end(), 0); }

  void join(std::size_t a, std::size_t b) { parent_[root(a)] = root(b); }

  // The island of each of the first n things, numbered from 0 in order of their first members; *count: how many.
  std::vector<int> numbers(std::size_t n, int* count) {
    std::vector<int> number_of_root(parent_.size(), -1), numbers(n);
    *count = 0;
    for (std::size_t i = 0; i < n; ++i) {
      int& number = number_of_root[root(i)];
      if (number < 0) number = (*count)++;
      numbers[i] = number;
    }
    return numbers;
  }

 private:
  std::size_t root(std::size_t a) {
    while (parent_[a] != a) a = parent_[a] = parent_[parent_[a]];
    return a;
  }
  std::vector<std::size_t> parent_;
};

}  // namespace gccl::topology
