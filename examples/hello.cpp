// Two concurrent operations, a callback, and the groups of a tensor- and data-parallel job.
// Start with: gccl launch -n 4 -- ./hello_cpp
#include <cstdio>
#include <gccl/gccl.hpp>

int main() try {
  const gccl::Communicator world = gccl::Communicator::init();
  const int rank = world.rank(), size = world.size();

  std::vector<float> gradient(1000, float(rank + 1));
  std::vector<int> ranks(std::size_t(size), -1);
  bool complete = false;
  gccl::Request reduced = world.iallreduce(gradient).then([&](GCCL_Result) { complete = true; });  // in place
  world.allgather(std::array{rank}, ranks);
  reduced.wait();
  while (!complete) gccl::check(GCCL_Progress());
  if (gradient[999] != float(size * (size + 1) / 2) || ranks.back() != size - 1) return 1;

  const int tp = size % 2 == 0 ? 2 : 1;
  const auto groups = gccl::ProcessGroups::for_world(size, tp, 1, 1);
  const gccl::Communicator data_parallel = groups.split(world, gccl::Parallel::dp);
  std::vector<double> one = {1.0};
  data_parallel.allreduce(one, gccl::ReduceOp::sum);
  if (one[0] != size / tp) return 1;

  std::printf("rank %d of %d: the sum is %g\n", rank, size, gradient[0]);
} catch (const gccl::Error& e) {
  std::fprintf(stderr, "%s: %s\n", GCCL_Error_string(e.result()), e.what());
  return 1;
}
