// GCCL_Mem_alloc: every collective in such memory, memory that comes and goes, and requests that cannot be met.
#include <doctest/doctest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/rank_call.hpp"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

class SharedMemory final : public std::pmr::memory_resource {
  void* do_allocate(std::size_t bytes, std::size_t) override {
    void* p = nullptr;
    if (GCCL_Mem_alloc(&p, bytes) != GCCL_SUCCESS) throw std::bad_alloc();
    return p;
  }
  void do_deallocate(void* p, std::size_t, std::size_t) override { RANK_SUCCESS(GCCL_Mem_free(p)); }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

// How many pieces of such memory this process has mapped, its own and others'.
int mapped() {
  std::ifstream maps("/proc/thread-self/maps");
  int n = 0;
  for (std::string line; std::getline(maps, line);) n += line.find("memfd:gccl") != std::string::npos;
  return n;
}

TEST_CASE("every collective in shared memory, in ordinary memory, and in one on each side") {
  for (const char* zero_copy : {"1", "0"})
    for (const int size : {1, 2, 3, 5})
      check({.size = size, .environment = {{"GCCL_SHM_ZERO_COPY", zero_copy}}}, [&](int rank) {
        GCCL_Comm world = begin();
        if (!world) return;
        SharedMemory shared_memory;
        Random shared(std::uint64_t(size) + 40);
        for (const Kind kind : kKinds)
          for (const std::size_t count : {9000u, 70001u, 1300000u}) {
            const auto place = Place(shared.below(4));
            const CallCase x{.kind = kind,
                             .dtype = shared.below(2) ? GCCL_FLOAT32 : GCCL_INT16,
                             .op = GCCL_SUM,
                             .count = count / (size > 2 ? 4 : 1),
                             .root = int(shared.below(std::uint64_t(size))),
                             .place = place,
                             .seed = shared.next()};
            const bool ordinary = (shared.next() >> rank) % 4 == 0;
            RankCall call(x, rank, size, ordinary ? std::pmr::get_default_resource() : &shared_memory);
            RANK_SUCCESS(call.run(world));
            if (const std::string wrong = call.verify(); !wrong.empty()) report(describe(x, size) + ": " + wrong);
          }
        RANK_SUCCESS(GCCL_Finalize());
      });
}

TEST_CASE("memory that is freed and allocated again is read as it is now, and mappings do not pile up") {
  check({.size = 3}, [](int rank) {
    GCCL_Comm world = begin();
    if (!world) return;
    constexpr std::size_t count = 200000;
    std::vector<std::int32_t> all(3 * count);
    int most = 0;
    for (int round = 0; round < 60; ++round) {
      void* p = nullptr;
      RANK_SUCCESS(GCCL_Mem_alloc(&p, count * sizeof(std::int32_t)));
      if (!p) return;
      auto* const mine = static_cast<std::int32_t*>(p);
      RANK_CHECK(reinterpret_cast<std::uintptr_t>(p) % 4096 == 0);
      RANK_CHECK(std::all_of(mine, mine + count, [](std::int32_t x) { return x == 0; }));
      for (std::size_t i = 0; i < count; ++i) mine[i] = std::int32_t(i) * 3 + rank + 1000 * round;
      RANK_SUCCESS(GCCL_Allgather(mine, all.data(), count, GCCL_INT32, world));
      bool right = true;
      for (int r = 0; r < 3; ++r)
        for (std::size_t i = 0; i < count; ++i)
          right = right && all[std::size_t(r) * count + i] == std::int32_t(i) * 3 + r + 1000 * round;
      RANK_CHECK(right);
      RANK_SUCCESS(GCCL_Barrier(world));
      most = std::max(most, mapped());
      RANK_SUCCESS(GCCL_Mem_free(p));
    }
    // At most: one's own, and of each peer the present piece.
    RANK_CHECK(most >= 3);
    RANK_CHECK(most <= 4);
    RANK_SUCCESS(GCCL_Finalize());
    RANK_CHECK(mapped() == 0);
  });
}

TEST_CASE(
    "what a rank frees its peers let go of with its next large message, from whatever memory; they keep the rest") {
  check({.size = 2}, [](int rank) {
    GCCL_Comm world = begin();
    if (!world) return;
    constexpr std::size_t count = 1 << 20;
    std::vector<std::int32_t> all(2 * count), ordinary(count, 100 + rank);
    void* p[3] = {};
    const auto gathered = [&](void* from, int value) {
      std::fill_n(static_cast<std::int32_t*>(from), count, value + rank);
      RANK_SUCCESS(GCCL_Allgather(from, all.data(), count, GCCL_INT32, world));
      RANK_CHECK(std::count(all.begin(), all.end(), value) == std::ptrdiff_t(count));
      RANK_CHECK(std::count(all.begin(), all.end(), value + 1) == std::ptrdiff_t(count));
    };
    for (int i = 0; i < 3; ++i) {
      RANK_SUCCESS(GCCL_Mem_alloc(&p[i], count * sizeof(std::int32_t)));
      if (!p[i]) return;
      gathered(p[i], 10 * i);
    }
    RANK_CHECK(mapped() == 6);
    RANK_SUCCESS(GCCL_Mem_free(p[1]));
    gathered(p[0], 30);
    RANK_CHECK(mapped() == 4);
    RANK_SUCCESS(GCCL_Mem_alloc(&p[1], count * sizeof(std::int32_t)));  // most likely with the descriptor of before
    gathered(p[1], 40);
    RANK_CHECK(mapped() == 6);
    RANK_SUCCESS(GCCL_Mem_free(p[1]));
    RANK_SUCCESS(GCCL_Mem_free(p[2]));
    gathered(ordinary.data(), 50);
    RANK_CHECK(mapped() == 2);
    RANK_SUCCESS(GCCL_Finalize());
    RANK_SUCCESS(GCCL_Mem_free(p[0]));
    RANK_CHECK(mapped() == 0);
  });
}

// As seccomp profiles of containers do.
void refuse_reading_of_other_processes() {
  sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{.len = 4, .filter = steps};
  RANK_CHECK(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  RANK_CHECK(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

TEST_CASE("shared memory is read directly, also where the system refuses to read other processes' ordinary memory") {
  for (const bool refused : {false, true}) {
    CAPTURE(refused);
    const Job job{.size = 2, .environment = {{"GCCL_LOG", "2"}}};
    const std::vector<End> ends = run(job, [refused](int rank) {
      if (refused) refuse_reading_of_other_processes();
      GCCL_Comm world = begin();
      if (!world) return;
      constexpr std::size_t count = 1 << 20;
      std::vector<std::int32_t> ordinary(count), all(2 * count);
      void* p = nullptr;
      RANK_SUCCESS(GCCL_Mem_alloc(&p, count * sizeof(std::int32_t)));
      if (!p) return;
      for (void* from : {static_cast<void*>(ordinary.data()), p}) {
        std::fill_n(static_cast<std::int32_t*>(from), count, 7 + rank);
        // Messages between two ranks, of which the first is the shortest that is read directly, and a collective.
        for (const std::size_t n : {count / 8, count}) {
          std::fill(all.begin(), all.end(), 0);
          if (rank == 0)
            RANK_SUCCESS(GCCL_Send(from, n, GCCL_INT32, 1, world));
          else
            RANK_SUCCESS(GCCL_Recv(all.data(), n, GCCL_INT32, 0, world));
          RANK_CHECK(std::count(all.begin(), all.end(), 7) == (rank == 0 ? 0 : std::ptrdiff_t(n)));
          RANK_CHECK(mapped() == (from == p && rank == 1 ? 2 : 1));
        }
        RANK_SUCCESS(GCCL_Allgather(from, all.data(), count, GCCL_INT32, world));
        RANK_CHECK(std::count(all.begin(), all.end(), 7) == std::ptrdiff_t(count));
        RANK_CHECK(std::count(all.begin(), all.end(), 8) == std::ptrdiff_t(count));
        RANK_CHECK(mapped() == (from == p ? 2 : 1));
      }
      RANK_SUCCESS(GCCL_Finalize());
      RANK_SUCCESS(GCCL_Mem_free(p));
    });
    for (const End& e : ends) {
      CHECK_MESSAGE(e.good(), texts(ends));
      if (refused)
        CHECK_MESSAGE(e.text.find("ranks cannot read each other's memory: rank") != std::string::npos, e.text);
    }
  }
}

TEST_CASE("memory of a rank whose main thread has ended is read as any other's") {
  for (const bool refused : {false, true})
    check({.size = 2}, [refused](int rank) {
      if (refused) refuse_reading_of_other_processes();
      GCCL_Comm world = begin();
      if (!world) return;
      const auto communicate = [=] {
        constexpr std::size_t count = 3000000;
        std::vector<std::int32_t> ordinary(count), all(2 * count);
        void* p = nullptr;
        RANK_SUCCESS(GCCL_Mem_alloc(&p, count * sizeof(std::int32_t)));
        if (!p) return;
        GCCL_Comm other = GCCL_COMM_NULL;
        RANK_SUCCESS(GCCL_Comm_split(world, 0, rank, &other));
        for (GCCL_Comm comm : {world, other})
          for (void* from : {static_cast<void*>(ordinary.data()), p}) {
            auto* const values = static_cast<std::int32_t*>(from);
            std::fill_n(values, count, 7 + rank);
            RANK_SUCCESS(GCCL_Allgather(values, all.data(), count, GCCL_INT32, comm));
            RANK_CHECK(std::count(all.begin(), all.end(), 7) == std::ptrdiff_t(count));
            RANK_CHECK(std::count(all.begin(), all.end(), 8) == std::ptrdiff_t(count));
            RANK_CHECK(from != p || mapped() == 2);
            RANK_SUCCESS(GCCL_Allreduce(GCCL_IN_PLACE, values, count, GCCL_INT32, GCCL_SUM, comm));
            RANK_CHECK(std::count(values, values + count, 15) == std::ptrdiff_t(count));
          }
        RANK_SUCCESS(GCCL_Finalize());
        RANK_SUCCESS(GCCL_Mem_free(p));
      };
      if (rank == 0) without_main_thread(communicate);
      communicate();
    });
}

TEST_CASE("communicators share what they have mapped, and let go of it") {
  check({.size = 2}, [](int rank) {
    GCCL_Comm world = begin(), other = GCCL_COMM_NULL;
    if (!world) return;
    RANK_SUCCESS(GCCL_Comm_split(world, 0, rank, &other));
    constexpr std::size_t count = 100000;
    void* p = nullptr;
    RANK_SUCCESS(GCCL_Mem_alloc(&p, count * sizeof(float)));
    std::vector<float> all(2 * count);
    for (GCCL_Comm c : {world, other, world}) RANK_SUCCESS(GCCL_Allgather(p, all.data(), count, GCCL_FLOAT32, c));
    RANK_CHECK(mapped() == 2);
    RANK_SUCCESS(GCCL_Comm_free(&other));
    RANK_CHECK(mapped() == 2);
    RANK_SUCCESS(GCCL_Finalize());
    RANK_CHECK(mapped() == 1);
    RANK_SUCCESS(GCCL_Mem_free(p));
    RANK_CHECK(mapped() == 0);
  });
}

TEST_CASE("requests that cannot be met are refused in words") {
  void* p = &p;
  CHECK(GCCL_Mem_alloc(nullptr, 10) == GCCL_ERR_INVALID_ARGUMENT);
  CHECK(std::string(GCCL_Last_error()).find("ptr is null") != std::string::npos);
  CHECK(GCCL_Mem_alloc(&p, 0) == GCCL_ERR_INVALID_ARGUMENT);
  CHECK(p == nullptr);
  CHECK(std::string(GCCL_Last_error()).find("bytes is 0: expected 1 to") != std::string::npos);
  CHECK(GCCL_Mem_alloc(&p, SIZE_MAX) == GCCL_ERR_INVALID_ARGUMENT);
  int own = 0;
  CHECK(GCCL_Mem_free(&own) == GCCL_ERR_INVALID_ARGUMENT);
  CHECK(std::string(GCCL_Last_error()).find("not what GCCL_Mem_alloc gave") != std::string::npos);
  CHECK(GCCL_Mem_free(nullptr) == GCCL_SUCCESS);
  CHECK(GCCL_Mem_alloc(&p, 1) == GCCL_SUCCESS);
  CHECK(GCCL_Mem_free(p) == GCCL_SUCCESS);
  CHECK(GCCL_Mem_free(p) == GCCL_ERR_INVALID_ARGUMENT);
}

}  // namespace
