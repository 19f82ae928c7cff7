// bench_simgrid_ring [ranks] [bytes]: a ring all-reduce on the SimGrid engine, over a star of 50 GB/s links.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "bench/ring.hpp"
#include "sim/engine/workload.hpp"

using namespace gccl;
using namespace gccl::sim;

int main(int argc, char** argv) {
  const unsigned long ranks = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 2048;
  const unsigned long long bytes = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1 << 20;
  if (ranks < 1 || ranks > 1'000'000) return std::fprintf(stderr, "ranks must be 1 to 1000000\n"), 2;
  const Star star = ring_star(Card(ranks));
  print_ring_star();

  Workload w;
  w.cluster = &star;
  w.cards.resize(ranks);
  std::iota(w.cards.begin(), w.cards.end(), 0);
  SimulatedOperation o;
  o.algorithm = find_algorithm(Collective::allreduce, "ring");
  o.call = {.kind = Collective::allreduce, .count = bytes / 4};
  o.layout = std::make_shared<Layout>(Layout::flat(Rank(ranks)));
  w.operations = {o};
  w.streams = {{{0}}};

  const Outcome out = run_simgrid(w);
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  std::printf("ranks %lu  bytes %llu  messages %llu  simulated %.3f us  wall %.2f s  %.2f M messages/s  peak %.0f MB\n",
              ranks, bytes, (unsigned long long)out.messages, double(out.time_ns) * 1e-3, out.wall_s,
              double(out.messages) / out.wall_s * 1e-6, double(usage.ru_maxrss) / 1024);
}
