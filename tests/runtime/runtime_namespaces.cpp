// Ranks in different process-id namespaces that share /dev/shm, as containers on one machine may: each is process 1 of
// its own, so a process id neither distinguishes them nor says whether they live. They say that they share memory by
// GCCL_HOST.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

bool allowed() {
  const bool is = gccl::test::Child([] { return in_pid_namespace([] {}) ? 0 : 1; }).wait() == 0;
  if (!is) MESSAGE("skipped: this system allows no process-id namespaces here");
  return is;
}

// All-reduces of every way through shared memory, in ordinary memory and GCCL_Mem_alloc's, checked.
void reduce_all(int rank, int size) {
  GCCL_Comm world = begin(), half = GCCL_COMM_NULL;
  if (!world) return;
  RANK_SUCCESS(GCCL_Comm_set_timeout(world, 60000));
  RANK_SUCCESS(GCCL_Comm_split(world, 0, -rank, &half));  // a communicator made when the files have no names any more
  for (GCCL_Comm c : {world, half})
    for (const std::size_t count : {4u, 300u, 5000u, 1000000u})
      for (const bool shared : {false, true}) {
        std::vector<double> ordinary(count), out(count, -1);
        void* p = ordinary.data();
        if (shared) RANK_SUCCESS(GCCL_Mem_alloc(&p, count * sizeof(double)));
        auto* const in = static_cast<double*>(p);
        for (std::size_t i = 0; i < count; ++i) in[i] = double(i % 1000) + 1000.0 * rank;
        RANK_SUCCESS(GCCL_Allreduce(in, out.data(), count, GCCL_FLOAT64, GCCL_SUM, c));
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count; ++i)
          wrong += out[i] != double(size) * double(i % 1000) + 500.0 * size * (size - 1);
        if (wrong > 0) report(std::to_string(wrong) + " of " + std::to_string(count) + " sums are wrong");
        if (shared) RANK_SUCCESS(GCCL_Mem_free(p));
      }
  RANK_SUCCESS(GCCL_Finalize());
}

TEST_CASE("ranks in process-id namespaces of their own sum rightly over shared memory") {
  if (!allowed()) return;
  // Forked ranks have the same addresses: a rank that read its own memory for a peer's would not notice. With one
  // descriptor more rank 0 has its file under the number under which others have that.
  for (const int apart : {1, 2, 3, 4})
    check({.size = 3, .environment = {{"GCCL_HOST", "one machine"}}}, [&](int rank) {
      if (rank == 0 && apart == 4) ::open("/dev/null", O_RDONLY);
      if (rank >= apart) return reduce_all(rank, 3);
      RANK_CHECK(in_pid_namespace([&] { reduce_all(rank, 3); }));
    });
}

TEST_CASE("a rank that ends in another process-id namespace is lost; one that lives is not") {
  if (!allowed()) return;
  check({.size = 3, .environment = {{"GCCL_HOST", "one machine"}}}, [](int rank) {
    // Rank 2 ends; rank 1 is late by more than any look around.
    const auto body = [rank] {
      GCCL_Comm world = begin();
      if (!world) return;
      RANK_SUCCESS(GCCL_Comm_set_timeout(world, 60000));
      RANK_SUCCESS(GCCL_Barrier(world));
      if (rank == 1) ::usleep(400000);
      RANK_SUCCESS(GCCL_Barrier(world));
      leave_before(world, 2);
      if (rank == 2) ::_exit(0);
      const GCCL_Result result = GCCL_Barrier(world);
      if (result != GCCL_ERR_PEER_LOST || !std::strstr(GCCL_Last_error(), "lost rank 2"))
        report("the barrier returned " + std::to_string(int(result)) + ": " + GCCL_Last_error());
      GCCL_Finalize();
    };
    RANK_CHECK(in_pid_namespace(body));
  });
}

}  // namespace
