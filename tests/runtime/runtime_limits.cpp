// Limits of a process for memory, the length of files and threads: an error on every rank, and nothing stays behind.
// That for open files: runtime_descriptors.cpp.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GCCL_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GCCL_TEST_SANITIZED 1
#endif
#endif

using namespace ranks;

namespace {

// While it lives the process may map `bytes` more than now.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t bytes) {
    std::ifstream statm("/proc/self/statm");
    std::size_t pages = 0;
    statm >> pages;
    getrlimit(RLIMIT_AS, &before_);
    rlimit l = before_;
    l.rlim_cur = pages * std::size_t(sysconf(_SC_PAGESIZE)) + bytes;
    RANK_CHECK(setrlimit(RLIMIT_AS, &l) == 0);
  }
  ~MemoryLimit() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

// Whether any of this process's open files in /dev/shm has a name.
bool any_has_a_name() {
  for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string file = std::filesystem::read_symlink(fd, gone).string();
    if (file.starts_with("/dev/shm/gccl-") && !file.ends_with("(deleted)")) return true;
  }
  return false;
}

void no_more_threads() {
  without_leak_check();
  if (getuid() == 0 && setuid(65534) != 0) report("setuid");  // the limit is not for root
  const rlimit l{1, 1};
  RANK_CHECK(setrlimit(RLIMIT_NPROC, &l) == 0);
}

#ifndef GCCL_TEST_SANITIZED  // the sanitizers' own memory has no room under such a limit
TEST_CASE("a call that finds no memory is an error on every rank") {
  constexpr std::size_t kCount = 16000000;
  for (const bool blocking : {true, false})
    for (const char* backends : {"shm", "tcp"})
      // Which keeps as much as it sends in memory of its own.
      check({.size = 2, .backends = backends, .environment = {{"GCCL_ALGORITHM", "alltoall=bruck"}}}, [&](int rank) {
        GCCL_Comm world = begin(), c = GCCL_COMM_NULL;
        RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
        std::vector<float> a(kCount, 1), b(kCount);
        std::optional<MemoryLimit> limit;
        if (rank == 0) limit.emplace(8 << 20);
        GCCL_Result result = GCCL_SUCCESS;
        GCCL_Request request = GCCL_REQUEST_NULL;
        if (blocking) {
          result = GCCL_Alltoall(a.data(), b.data(), kCount / 2, GCCL_FLOAT32, c);
        } else {
          result = GCCL_Ialltoall(a.data(), b.data(), kCount / 2, GCCL_FLOAT32, c, &request);
          if (result == GCCL_SUCCESS) result = GCCL_Wait(&request);
        }
        RANK_CHECK(request == GCCL_REQUEST_NULL);
        if (result == GCCL_SUCCESS) result = GCCL_Barrier(c);  // who has sent all hears at the next call
        RANK_CHECK(result == GCCL_ERR_SYSTEM);
        if (!says("out of memory")) report(std::string("the text is: ") + GCCL_Last_error());
        RANK_CHECK(says("rank 0"));
        RANK_CHECK(GCCL_Barrier(c) == GCCL_ERR_SYSTEM);
        GCCL_Comm_free(&c);
        limit.reset();
        float one = 1, sum = 0;
        RANK_SUCCESS(GCCL_Allreduce(&one, &sum, 1, GCCL_FLOAT32, GCCL_SUM, world));
        RANK_CHECK(sum == 2);
        RANK_SUCCESS(GCCL_Finalize());
      });
}

TEST_CASE("shared memory that cannot be mapped is an error that names the limit, and not a full /dev/shm") {
  check({.size = 2, .backends = "shm"}, [](int) {
    GCCL_Comm world = begin(), c = GCCL_COMM_NULL;
    if (!world) return;
    void* memory = nullptr;
    {
      const MemoryLimit limit(1 << 20);
      expect(GCCL_Mem_alloc(&memory, 4 << 20), GCCL_ERR_SYSTEM, "Mem_alloc");
      expect_text("ulimit -v", "Mem_alloc");
      expect(GCCL_Comm_split(world, 0, 0, &c), GCCL_ERR_SYSTEM, "split");
    }
    expect_text("ulimit -v", "split");
    RANK_CHECK(!says("/dev/shm is full"));
    GCCL_Finalize();
  });
}
#endif

TEST_CASE("a limit for the length of files is an error where shared memory needs longer ones, and no signal") {
  for (const rlim_t limit : {8192, 100000, 1000000})  // the store's own files are shorter
    for (const std::string backends : {"shm", "shm,tcp"})
      check({.size = 2, .backends = backends}, [&](int) {
        rlimit before{};
        getrlimit(RLIMIT_FSIZE, &before);
        const rlimit l{limit, before.rlim_max};
        RANK_CHECK(setrlimit(RLIMIT_FSIZE, &l) == 0);
        GCCL_Comm world = GCCL_COMM_NULL;
        const GCCL_Result result = GCCL_Init(&world, nullptr);
        void* memory = nullptr;
        const GCCL_Result allocated = GCCL_Mem_alloc(&memory, 4 << 20);
        const bool reported = says("ulimit -f");
        // What is reported is written to a file.
        setrlimit(RLIMIT_FSIZE, &before);
        expect(allocated, GCCL_ERR_SYSTEM, "Mem_alloc");
        RANK_CHECK(reported);
        if (backends == "shm") {
          RANK_CHECK(result == GCCL_ERR_SYSTEM);
          return;
        }
        RANK_SUCCESS(result);
        RANK_CHECK(!any_has_a_name());
        std::vector<float> a(1 << 18, 1), b(a.size());
        RANK_SUCCESS(GCCL_Allreduce(a.data(), b.data(), a.size(), GCCL_FLOAT32, GCCL_SUM, world));
        RANK_CHECK(b.back() == 2);
        RANK_SUCCESS(GCCL_Finalize());
      });
}

TEST_CASE("without threads to be had, starting is an error, and no thread stays behind") {
  check({.size = 1, .backends = "shm"}, [](int) {
    no_more_threads();
    GCCL_Comm world = GCCL_COMM_NULL;
    GCCL_Config config = GCCL_CONFIG_INIT;
    config.progress_thread = 1;
    RANK_CHECK(GCCL_Init(&world, &config) == GCCL_ERR_SYSTEM);
    RANK_CHECK(says("progress thread"));
    RANK_CHECK(world == GCCL_COMM_NULL);
    config.backends = "tcp";
    config.progress_thread = 0;
    RANK_CHECK(GCCL_Init(&world, &config) == GCCL_ERR_SYSTEM);
    RANK_CHECK(says("thread"));
    config.backends = "shm";
    config.size = 3;
    GCCL_Comm worlds[3];
    const int ranks[] = {0, 1, 2};
    RANK_CHECK(GCCL_Init_ranks(worlds, ranks, 3, &config) == GCCL_ERR_SYSTEM);
    RANK_CHECK(says("3 ranks"));
    // Nothing of all that stands in the way.
    config.size = 1;
    RANK_SUCCESS(GCCL_Init(&world, &config));
    RANK_SUCCESS(GCCL_Barrier(world));
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("ranks that agree or shrink go on without one that finds no thread for it, while that lives") {
  for (const char* backends : {"shm", "tcp"})
    for (const bool agrees : {true, false})
      check({.size = 3, .backends = backends}, [=](int rank) {
        GCCL_Comm world = begin(), smaller = GCCL_COMM_NULL;
        if (rank == 1) no_more_threads();
        std::uint64_t flags = 1;
        const GCCL_Result result = agrees ? GCCL_Comm_agree(world, &flags) : GCCL_Comm_shrink(world, &smaller);
        if (rank == 1) {
          RANK_CHECK(result == GCCL_ERR_SYSTEM);
          RANK_CHECK(says("thread"));
        } else {
          RANK_CHECK(result == (agrees ? GCCL_ERR_PEER_LOST : GCCL_SUCCESS));
          if (agrees) RANK_CHECK(says("lost rank 1"));
          if (smaller) RANK_SUCCESS(GCCL_Barrier(smaller));
        }
        RANK_SUCCESS(GCCL_Barrier(world));  // it has not ended, and can do everything else
        if (rank == 1) RANK_CHECK(GCCL_Comm_agree(world, &flags) == GCCL_ERR_SYSTEM);
        if (smaller) RANK_SUCCESS(GCCL_Comm_free(&smaller));
        ::_exit(any_reported());
      });
}

}  // namespace
