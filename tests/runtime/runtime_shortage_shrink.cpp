// Memory runs short on a rank that shrinks a communicator: the others go on without it, whether it ends or lives on.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"
#include "tests/support/short_memory.hpp"

using namespace ranks;

namespace {

// A number that all ranks of a job change.
class SharedNumber {
 public:
  SharedNumber() {
    void* const memory = ::mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    number_ = new (memory) std::atomic<int>(0);
  }
  ~SharedNumber() { ::munmap(number_, sizeof(int)); }
  SharedNumber(const SharedNumber&) = delete;
  std::atomic<int>& operator*() const { return *number_; }

 private:
  std::atomic<int>* number_;
};

// A rank that has run short lives until so many calls of others have ended.
void outlive(const std::atomic<int>& ended, int expected) {
  for (int ms = 0; ended < expected && ms < 20000; ++ms) usleep(1000);
  RANK_CHECK(ended >= expected);
}

// The rank that runs short ends, or lives on; the others go on without it, or with it where it had what it needed.
TEST_CASE("any allocation of a rank that shrinks may fail") {
  const SharedNumber ended;  // calls of other ranks, in all runs
  int run = 0;
  // Where the others come `late` that rank tells them meanwhile what it waits in.
  for (const bool late : {false, true})
    for (const char* backends : {"shm", "tcp"})
      for (int left = 0; left < 1000; left = (late ? left * 2 : left * 4 / 3) + 1) {
        const int expected = *ended + 2;
        const bool lives = run++ % 2 == 0;
        check({.size = 3, .backends = backends}, [&](int rank) {
          without_leak_check();
          GCCL_Comm world = begin(), smaller = GCCL_COMM_NULL;
          std::uint64_t flags = 1;
          if (left % 2) RANK_SUCCESS(GCCL_Comm_agree(world, &flags));
          RANK_SUCCESS(GCCL_Barrier(world));
          if (rank == 1) denied = {.left = left, .lasting = left % 3 == 0};
          if (rank != 1 && late) usleep(200000);
          GCCL_Result result = GCCL_Comm_shrink(world, &smaller);
          denied.left = -1;
          if (rank != 1) ++*ended;
          if (rank == 1 && denied.met && result != GCCL_SUCCESS) {
            RANK_CHECK((result == GCCL_ERR_SYSTEM || result == GCCL_ERR_PEER_LOST));
            if (lives) outlive(*ended, expected);
            ::_exit(any_reported());
          }
          if (rank != 1 && (result == GCCL_ERR_REMOTE || result == GCCL_ERR_SYSTEM))
            result = GCCL_Comm_shrink(world, &smaller);
          if (result != GCCL_SUCCESS)
            return report(std::to_string(left) + ", " + std::to_string(result) + ": " + GCCL_Last_error());
          if (GCCL_Barrier(smaller) != GCCL_SUCCESS) RANK_CHECK(rank != 1);
          ::_exit(any_reported());
        });
      }
}

// What it knows of those that are lost needs memory, too.
TEST_CASE("the first allocations may fail of a rank that shrinks after a loss, and lives on") {
  const SharedNumber ended;
  for (const char* backends : {"shm", "tcp"})
    for (int left = 0; left < 4; ++left) {
      const int expected = *ended + 2;
      check({.size = 4, .backends = backends}, [&](int rank) {
        without_leak_check();
        GCCL_Comm world = begin(), smaller = GCCL_COMM_NULL;
        RANK_SUCCESS(GCCL_Barrier(world));
        if (rank == 3) ::_exit(any_reported());
        int x = 0;
        RANK_CHECK(GCCL_Recv(&x, 1, GCCL_INT32, 3, world) == GCCL_ERR_PEER_LOST);
        if (rank == 1) denied = {.left = left, .lasting = false};
        GCCL_Result result = GCCL_Comm_shrink(world, &smaller);
        denied.left = -1;
        if (rank != 1) ++*ended;
        if (rank == 1 && result != GCCL_SUCCESS) {
          RANK_CHECK(result == GCCL_ERR_SYSTEM);
          outlive(*ended, expected);
          ::_exit(any_reported());
        }
        if (rank != 1 && (result == GCCL_ERR_REMOTE || result == GCCL_ERR_SYSTEM))
          result = GCCL_Comm_shrink(world, &smaller);
        RANK_CHECK(result == GCCL_SUCCESS);
        ::_exit(any_reported());
      });
    }
}

}  // namespace
