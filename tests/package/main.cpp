// A program outside the repository: counts the steps of a ring all-reduce on rank 0 of 5.
#include <cstdio>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/schedule/layout.hpp"

int main() {
  using namespace gccl;
  const Algorithm* ring = find_algorithm(Collective::allreduce, "ring");
  Schedule s = sliced(ring, {.kind = Collective::allreduce, .count = 100}, Layout::flat(5).view(0), 1, 0, 1);
  int steps = 0;
  while (s.next()) ++steps;
  std::printf("%d steps\n", steps);
  return steps == 16 ? 0 : 1;  // 2 (n-1) sends and as many receives
}
