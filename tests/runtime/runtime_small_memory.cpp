// Machines with little shared memory, as containers are (docker gives 64 MB): communicators go on with less of it, and
// over TCP once there is none.
#include <doctest/doctest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <cstdio>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/child.hpp"
#include "tests/support/own_namespace.hpp"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

// Gives this process, and those that it forks from now on, a /dev/shm of so many KiB. False where the system forbids
// it.
bool own_shared_memory(int kilobytes) {
  const std::string size = "size=" + std::to_string(kilobytes) + "k";
  return own_namespace(CLONE_NEWNS) && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", "/dev/shm", "tmpfs", 0, size.c_str()) == 0;
}

int value(int from, int to, std::size_t i) { return from * 1000003 + to * 1009 + int(i); }

// What is due in each place is worked out here, from who sends what to whom.
void call_all(GCCL_Comm c, int rank, int size, std::size_t n) {
  std::vector<int> in(n * std::size_t(size)), out(in.size(), -1), one(n), sum(n, -1);
  const auto expect_all = [&](const std::vector<int>& found, auto due, const char* call) {
    for (std::size_t i = 0; i < found.size(); ++i)
      if (found[i] != due(int(i / n), i % n)) return report(std::string(call) + ": element " + std::to_string(i));
  };
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(rank, int(i / n), i % n);
  RANK_SUCCESS(GCCL_Alltoall(in.data(), out.data(), n, GCCL_INT32, c));
  expect_all(
      out, [&](int from, std::size_t i) { return value(from, rank, i); }, "alltoall");
  for (int root = 0; root < size; ++root) {
    for (std::size_t i = 0; i < n; ++i) one[i] = rank == root ? value(root, 0, i) : -1;
    RANK_SUCCESS(GCCL_Broadcast(one.data(), n, GCCL_INT32, root, c));
    expect_all(
        one, [&](int, std::size_t i) { return value(root, 0, i); }, "broadcast");
  }
  for (std::size_t i = 0; i < n; ++i) one[i] = rank + int(i);
  RANK_SUCCESS(GCCL_Allgather(one.data(), out.data(), n, GCCL_INT32, c));
  expect_all(
      out, [](int from, std::size_t i) { return from + int(i); }, "allgather");
  RANK_SUCCESS(GCCL_Allreduce(one.data(), sum.data(), n, GCCL_INT32, GCCL_SUM, c));
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  GCCL_Request sent = GCCL_REQUEST_NULL;
  std::vector<int> got(n, -1);
  RANK_SUCCESS(GCCL_Isend(one.data(), n, GCCL_INT32, next, c, &sent));
  RANK_SUCCESS(GCCL_Recv(got.data(), n, GCCL_INT32, before, c));
  RANK_SUCCESS(GCCL_Wait(&sent));
  expect_all(
      got, [&](int, std::size_t i) { return before + int(i); }, "receive");
  expect_all(
      sum, [&](int, std::size_t i) { return size * (size - 1) / 2 + size * int(i); }, "allreduce");
}

// What each rank of the job does, `does(world, rank)`, must succeed in a /dev/shm of each of these sizes, in KiB.
template <class F>
void check_in(const std::vector<int>& sizes, const Job& job, F does) {
  const int code = gccl::test::Child([&] {
                     for (const int kilobytes : sizes) {
                       if (!own_shared_memory(kilobytes)) return 77;
                       const std::vector<End> ends = run(job, [&](int rank) {
                         GCCL_Comm world = begin();
                         if (!world) return;
                         RANK_SUCCESS(GCCL_Comm_set_timeout(world, 100000));
                         does(world, rank);
                         RANK_SUCCESS(GCCL_Finalize());
                       });
                       for (const End& e : ends)
                         if (!e.good()) {
                           std::fprintf(stderr, "%d KiB: %s\n", kilobytes, texts(ends).c_str());
                           return 1;
                         }
                       ::umount("/dev/shm");
                     }
                     return 0;
                   }).wait();
  if (WIFEXITED(code) && WEXITSTATUS(code) == 77) {
    MESSAGE("skipped: this system allows no mounts here");
    return;
  }
  CHECK(code == 0);
}

struct Case {
  int ranks, megabytes, communicators;
  const char* zero_copy;
  bool becomes_full;  // so that the last communicators are served by TCP
  bool made_first;    // all communicators, while nothing is used
};

TEST_CASE("all ranks send to all on many communicators, in little shared memory") {
  // Before, the first of each ended with "no shared memory for messages".
  for (const Case& x :
       {Case{4, 2, 3, "1", false, false}, Case{4, 2, 24, "0", true, false}, Case{4, 2, 24, "1", true, true},
        Case{8, 12, 4, "0", false, false}, Case{8, 12, 14, "0", true, true}}) {
    CAPTURE(x.ranks);
    CAPTURE(x.megabytes);
    CAPTURE(x.communicators);
    CAPTURE(x.made_first);
    const Job job{.size = x.ranks, .backends = "shm,tcp", .environment = {{"GCCL_SHM_ZERO_COPY", x.zero_copy}}};
    check_in({x.megabytes * 1024}, job, [&](GCCL_Comm world, int rank) {
      std::vector<GCCL_Comm> all(std::size_t(x.communicators), GCCL_COMM_NULL);
      if (x.made_first)
        for (GCCL_Comm& c : all) RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
      for (GCCL_Comm& c : all) {
        if (!x.made_first) RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
        for (const std::size_t n : {2u, 25u, 1000u, 1250u, 5000u, 8191u, 50000u})
          if (c && !any_reported() && (x.communicators < 10 || n == 25 || n == 8191)) call_all(c, rank, x.ranks, n);
      }
      if (rank == 0) {
        struct statvfs left {};
        RANK_CHECK(::statvfs("/dev/shm", &left) == 0);
        RANK_CHECK(left.f_bavail < left.f_blocks / 2);                      // it was scarce
        if (x.becomes_full) RANK_CHECK(left.f_bavail < left.f_blocks / 4);  // too little for one more
      }
      for (GCCL_Comm c : all)  // those that were made while there was plenty, too
        if (!any_reported()) call_all(c, rank, x.ranks, 3000);
    });
  }
}

// Beside the ranks' own communicator pairs of them, which promise what others cannot see.
TEST_CASE("many communicators of pairs are made first and used later, in little shared memory") {
  check_in({4096}, {.size = 4, .backends = "shm,tcp"}, [](GCCL_Comm world, int rank) {
    std::vector<GCCL_Comm> all(60, GCCL_COMM_NULL);
    const auto of_pairs = [](std::size_t i) { return i % 20 != 0; };
    for (std::size_t i = 0; i < all.size(); ++i)
      RANK_SUCCESS(GCCL_Comm_split(world, of_pairs(i) ? rank / 2 : 0, 0, &all[i]));
    for (const bool pairs : {true, false})  // the large ones last
      for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i] && pairs == of_pairs(i) && !any_reported())
          call_all(all[i], pairs ? rank % 2 : rank, pairs ? 2 : 4, 3000);
  });
}

// Of what one exchange connects (the ranks' own communicator and its watch), some have room and others have none.
TEST_CASE("however little shared memory there is, communicators begin and calls are right") {
  std::vector<int> sizes;
  for (int kilobytes = 8; kilobytes <= 600; kilobytes += kilobytes < 300 ? 12 : 60) sizes.push_back(kilobytes);
  check_in(sizes, {.size = 3, .backends = "shm,tcp"}, [](GCCL_Comm world, int rank) {
    GCCL_Comm part = GCCL_COMM_NULL;
    RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &part));
    for (GCCL_Comm c : {world, part})
      if (c && !any_reported()) call_all(c, rank, 3, 3000);
  });
}

}  // namespace
