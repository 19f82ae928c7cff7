// Every collective of gccl.h over the backend "mpi", on ranks that mpirun starts: the cases and the checks of the other
// transports (tests/runtime/runtime_collectives.cpp). All ranks run the same cases, and no failure skips a call, so
// that ranks never wait for one that gave up.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <mpi.h>

#include <cstdio>
#include <string>

#include "tests/support/rank_call.hpp"

using namespace ranks;

namespace {

GCCL_Comm world = GCCL_COMM_NULL;

void check_case(const CallCase& c, GCCL_Comm comm, bool non_blocking) {
  int rank = -1, size = -1;
  GCCL_Comm_rank(comm, &rank);
  GCCL_Comm_size(comm, &size);
  const std::string wrong = outcome(c, comm, rank, size, non_blocking);
  if (!wrong.empty()) FAIL_CHECK(wrong);
}

TEST_CASE("every collective, type, operation and place") {
  int size = 0;
  REQUIRE(GCCL_Comm_size(world, &size) == GCCL_SUCCESS);
  each_case(size, [](const CallCase& c, std::uint64_t number) {
    check_case(c, world, number % 3 == 0);
    return true;
  });
}

TEST_CASE("random cases beyond the eager limit, on a reversed communicator and on halves") {
  int rank = 0, size = 0;
  REQUIRE(GCCL_Comm_rank(world, &rank) == GCCL_SUCCESS);
  REQUIRE(GCCL_Comm_size(world, &size) == GCCL_SUCCESS);
  for (const int parts : {1, 2}) {
    GCCL_Comm part = GCCL_COMM_NULL;
    REQUIRE(GCCL_Comm_split(world, rank % parts, -rank, &part) == GCCL_SUCCESS);
    int members = 0;
    REQUIRE(GCCL_Comm_size(part, &members) == GCCL_SUCCESS);
    Random random(2026);
    for (int i = 0; i < 60; ++i) check_case(random_case(random, members, 1 << 20), part, i % 2 == 0);
    CHECK(GCCL_Comm_free(&part) == GCCL_SUCCESS);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int rank = 0, failed = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  GCCL_Config config = GCCL_CONFIG_INIT;
  config.backends = "mpi";
  if (GCCL_Init(&world, &config) == GCCL_SUCCESS) {
    doctest::Context context(argc, argv);
    if (rank != 0) context.setOption("minimal", true);  // one summary is enough; failures show from everywhere
    failed = context.run();
    if (GCCL_Finalize() != GCCL_SUCCESS) failed = 1;
  } else {
    std::fprintf(stderr, "GCCL_Init: %s\n", GCCL_Last_error());
  }
  MPI_Finalize();
  return failed;
}
