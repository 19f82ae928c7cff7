// What the policy shrink costs where nothing fails: all-reduces of f32 on two communicators of the same ranks, one with
// each policy, by turns, so that whatever else the machine does meets both alike. Prints the least time of a call over
// all rounds, in place and not.
//
//   gccl launch -n 2 -- bench_policy [ROUNDS]     with GCCL_BACKENDS=shm or tcp
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "gccl/gccl.hpp"

int main(int argc, char** argv) try {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 40;
  const gccl::Communicator world = gccl::Communicator::init();
  gccl::Communicator of[2] = {world.split(0), world.split(0)};  // GCCL_FAIL, GCCL_SHRINK
  of[1].set_on_failure(GCCL_SHRINK);
  if (world.rank() == 0) std::printf("bytes,in_place,fail_us,shrink_us,ratio\n");
  for (const std::size_t bytes : {8ul, 64ul << 10, 1ul << 20, 16ul << 20})
    for (const bool in_place : {false, true}) {
      std::vector<float> in(bytes / 4), out(bytes / 4);
      const int calls = bytes <= 8 ? 2000 : bytes < 1 << 20 ? 100 : bytes < 16 << 20 ? 10 : 2;
      double least[2] = {1e30, 1e30};
      for (int round = 0; round < 2 * rounds; ++round) {
        const int policy = round % 2;
        of[policy].barrier();
        const auto began = std::chrono::steady_clock::now();
        for (int i = 0; i < calls; ++i)
          if (in_place)
            of[policy].allreduce(out);
          else
            of[policy].allreduce(in, out);
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
        least[policy] = std::min(least[policy], took.count() / calls);
      }
      if (world.rank() == 0)
        std::printf("%zu,%d,%.4f,%.4f,%.3f\n", bytes, int(in_place), least[0], least[1], least[1] / least[0]);
      std::fflush(stdout);
    }
  return 0;
} catch (const gccl::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
