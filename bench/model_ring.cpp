// The model engine's speed on one all-reduce over a star of 50 GB/s links.
//   bench_model_ring [ranks] [bytes] [algorithm] [ranks per node]
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "bench/ring.hpp"
#include "sim/engine/workload.hpp"

int main(int argc, char** argv) {
  using namespace gccl;
  const Rank ranks = argc > 1 ? Rank(std::atoi(argv[1])) : 2048;
  const Count bytes = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1 << 20;
  const char* algorithm = argc > 3 ? argv[3] : "ring";
  const Rank per_node = argc > 4 ? Rank(std::atoi(argv[4])) : ranks;

  const Star cluster = sim::ring_star(ranks);
  sim::print_ring_star();
  sim::SimulatedOperation operation;
  operation.algorithm = find_algorithm(Collective::allreduce, algorithm);
  if (!operation.algorithm) return std::fprintf(stderr, "no algorithm %s\n", algorithm), 2;
  operation.call = {.kind = Collective::allreduce, .count = bytes / 4};
  operation.layout = std::make_shared<Layout>(Layout::regular(ranks, per_node));
  sim::Workload workload;
  workload.cluster = &cluster;
  workload.cards.resize(ranks);
  std::iota(workload.cards.begin(), workload.cards.end(), 0);
  workload.operations.push_back(operation);
  workload.streams = {{{0}}};

  const sim::Outcome out = sim::run_model(workload);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "engine=model algorithm=%s ranks=%u bytes=%llu messages=%llu simulated_us=%.3f wall_s=%.3f messages_per_s=%.3g "
      "rss_MB=%ld\n",
      algorithm, ranks, (unsigned long long)bytes, (unsigned long long)out.messages, double(out.time_ns) / 1e3,
      out.wall_s, double(out.messages) / out.wall_s, usage.ru_maxrss / 1024);
}
