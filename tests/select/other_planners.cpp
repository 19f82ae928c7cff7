// What Open MPI and NCCL would choose, and the rows that stand for it.
#include "libgccl/select/others/other_planners.hpp"

#include <doctest/doctest.h>

#include <sstream>

#include "libgccl/schedule/layout.hpp"
#include "libgccl/select/others/openmpi_rules.hpp"

using namespace gccl;

namespace {

// Open MPI's default decision for a commutative all-reduce: below so many ranks; bytes -> algorithm below them, the
// last one otherwise.
constexpr const char* kPublished = R"(
4    8:4 4096:3 8192:4 16384:3 65536:4 262144:5 6
8    16:4 8192:3 6
16   8192:3 6
32   64:5 4096:3 6
64   128:5 6
128  262144:3 6
256  131072:2 262144:3 6
512  4096:2 6
2048 2048:2 16384:3 6
4096 2048:2 4096:5 16384:3 6
9999 2048:2 16384:5 32768:3 6
)";

OtherChoice openmpi(Collective kind, Rank ranks, Count bytes) {
  const Layout layout = Layout::flat(ranks);
  return openmpi_choice({.kind = kind, .count = bytes}, layout.view(0), 1);
}
std::string row(const OtherChoice& c) { return c.algorithm ? std::string(c.algorithm->name) : "none"; }

NcclMachine h100(unsigned nodes) {
  NcclMachine m;
  m.architecture = NcclArchitecture::hopper;
  m.nodes = nodes, m.ranks = 8 * nodes;
  m.graph = m.tree = m.nvls = {8, 48, 48};
  m.simple_tree = nodes > 1, m.same_channels = nodes == 1;
  return m;
}
OtherChoice nccl(Collective kind, unsigned nodes, Count bytes) {
  const Layout layout = Layout::regular(8 * nodes, 8);
  return nccl_choice({.kind = kind, .count = bytes}, layout.view(0), 1, h100(nodes));
}

}  // namespace

TEST_CASE("every line of Open MPI's table for all-reduce holds at its borders") {
  std::istringstream lines(kPublished);
  std::string line;
  Rank from = 1;
  unsigned checked = 0;
  while (std::getline(lines, line)) {
    if (line.empty()) continue;
    std::istringstream words(line);
    Rank below = 0;
    words >> below;
    for (const Rank ranks : {from, below - 1}) {
      CAPTURE(ranks);
      std::istringstream steps(line.substr(line.find(' ')));
      double begin = 0;
      std::string step;
      while (steps >> step) {
        const std::size_t colon = step.find(':');
        const int id = std::stoi(colon == std::string::npos ? step : step.substr(colon + 1));
        const double end = colon == std::string::npos ? 1e15 : std::stod(step);
        CAPTURE(begin);
        CHECK(openmpi_algorithm(Collective::allreduce, ranks, begin).id == id);
        CHECK(openmpi_algorithm(Collective::allreduce, ranks, end - 1).id == id);
        begin = end;
        checked += 2;
      }
    }
    from = below;
  }
  CHECK(checked == 2 * 2 * 35);
}

TEST_CASE("Open MPI's rules for other collectives hold at some of their borders") {
  const auto name = [](Collective kind, Rank ranks, double bytes) {
    return openmpi_algorithm(kind, ranks, bytes).name;
  };
  CHECK(name(Collective::alltoall, 64, 1023) == "modified_bruck");
  CHECK(name(Collective::alltoall, 64, 262143) == "linear");
  CHECK(name(Collective::alltoall, 64, 262144) == "pairwise");
  CHECK(name(Collective::allgather, 31, 1e9) == "recursive_doubling");
  CHECK(name(Collective::allgather, 32, 65535) == "neighbor");
  CHECK(name(Collective::allgather, 32, 65536) == "ring");
  CHECK(name(Collective::broadcast, 31, 4095) == "knomial");
  CHECK(name(Collective::broadcast, 31, 1048576) == "scatter_allgather");
  CHECK(name(Collective::reduce, 15, 8191) == "binary");
  CHECK(name(Collective::reduce, 15, 8192) == "binomial");
  CHECK(name(Collective::reduce_scatterv, 63, 524288) == "ring");
  CHECK(name(Collective::reduce_scatter, 4096, 262143) == "basic_linear");
  CHECK(name(Collective::barrier, 63, 0) == "recursive_doubling");
  CHECK(name(Collective::barrier, 64, 0) == "bruck");
  CHECK(name(Collective::gather, 300, 2048) == "basic_linear");
  CHECK(name(Collective::scatter, 64, 512) == "linear_nb");
  CHECK(name(Collective::allgatherv, 64, 255) == "default");
  CHECK(name(Collective::alltoallv, 100, 0) == "pairwise");
  CHECK(name(Collective::sendrecv, 4, 8) == "");
}

TEST_CASE("every choice of Open MPI has a row, and says how that differs") {
  CHECK(row(openmpi(Collective::allreduce, 64, 1000)) == "recursive_doubling");
  CHECK(openmpi(Collective::allreduce, 64, 1000).note.empty());
  CHECK(row(openmpi(Collective::allreduce, 64, 1 << 20)) == "rabenseifner");
  const OtherChoice segmented = openmpi(Collective::allreduce, 32, 64), apart = openmpi(Collective::allreduce, 256, 64);
  CHECK(openmpi(Collective::allreduce, 32, 100).theirs == "segmented_ring");
  CHECK(row(openmpi(Collective::allreduce, 32, 100)) == "ring");
  CHECK(segmented.protocol.empty());
  CHECK(row(openmpi(Collective::allreduce, 32, 32)) == "ring");
  const OtherChoice few = openmpi(Collective::allreduce, 32, 31);
  CHECK(few.theirs == "segmented_ring");
  CHECK(row(few) == "recursive_doubling");
  CHECK(few.note == "with fewer elements than ranks Open MPI's falls back to recursive_doubling");
  CHECK(row(apart) == "binomial_tree");
  CHECK(apart.note == "a reduce, then a broadcast, each by its own rules");
  CHECK(row(openmpi(Collective::allgather, 16, 8)) == "recursive_doubling");
  CHECK(row(openmpi(Collective::allgather, 17, 8)) == "bruck");
  CHECK(row(openmpi(Collective::allgather, 33, 2048)) == "ring");
  CHECK(openmpi(Collective::sendrecv, 4, 8).note == "Open MPI has no rule for this collective: planned by GCCL");
  for (std::size_t k = 0; k < collective_names().size(); ++k)
    for (const Rank ranks : {2u, 3u, 7u, 8u, 16u, 33u, 64u, 100u, 200u, 300u, 700u, 1500u, 3000u, 5000u})
      for (Count bytes = 1; bytes < (1 << 24); bytes *= 2) {
        if (Collective(k) == Collective::sendrecv) continue;
        const OtherChoice c = openmpi(Collective(k), ranks, bytes);
        CAPTURE(collective_names()[k]);
        CAPTURE(c.theirs);
        CAPTURE(ranks);
        // A direct broadcast of many ranks is no row that GCCL would use.
        CHECK((c.algorithm || (ranks > 32 && c.theirs == "basic_linear")));
        CHECK(!c.theirs.empty());
      }
}

TEST_CASE("NCCL's choice is a row and a protocol, or the next that GCCL has") {
  CHECK(nccl(Collective::allreduce, 2, 1024).theirs == "tree, LL");
  CHECK(row(nccl(Collective::allreduce, 2, 1024)) == "tree");
  CHECK(nccl(Collective::allreduce, 2, 1024).protocol == "LL");
  const OtherChoice ring = nccl(Collective::broadcast, 1, 1 << 30);
  CHECK(ring.theirs == "ring, Simple");
  CHECK(row(ring) == "chain");
  CHECK(ring.note.empty());
  const OtherChoice multicast = nccl(Collective::allreduce, 2, 1 << 30);
  CHECK(multicast.theirs == "nvls_tree, Simple");
  REQUIRE(multicast.algorithm != nullptr);
  if (multicast.algorithm->name != "nvls_tree") {
    CHECK(multicast.algorithm->name == "ring");
    CHECK(multicast.note == "no such row: the next that NCCL would choose and GCCL has is ring, Simple");
  }
  const OtherChoice none = nccl(Collective::barrier, 2, 0);
  CHECK(none.algorithm == nullptr);
  CHECK(none.theirs.empty());
  CHECK(none.note == "NCCL has no algorithms to choose from here: planned by GCCL");
}

TEST_CASE("NCCL's all-to-all, gather and scatter are grouped sends and receives, whatever their size") {
  const std::pair<Collective, std::string_view> rows[] = {{Collective::alltoall, "pairwise"},
                                                          {Collective::alltoallv, "pairwise"},
                                                          {Collective::gather, "linear"},
                                                          {Collective::scatter, "linear"}};
  for (const auto& r : rows)
    for (const Count bytes : {64u, 1000000u, 1000000000u}) {
      const OtherChoice c = nccl(r.first, 2, bytes);
      CHECK(row(c) == r.second);
      CHECK(c.theirs == "send/recv");
      CHECK(c.protocol.empty());
    }
}

// All-gathers count one rank's block, NCCL the whole.
TEST_CASE("NCCL's choice for blocks goes by all of them") {
  const Layout layout = Layout::regular(16, 8);
  NcclMachine m = h100(2);
  const auto protocol = [&](Count block) {
    return nccl_choice({.kind = Collective::allgather, .count = block}, layout.view(0), 4, m).protocol;
  };
  for (Count block = 1; block < (1 << 22); block *= 2)
    CHECK(protocol(block) ==
          kNcclProtocols[std::size_t(nccl_ranking(Collective::allgather, m, double(block) * 64).at(0).protocol)]);
}
