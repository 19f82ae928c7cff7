// What several peers read in one place: chunks that all pipes of a rank have in common, and memory that it stages.
#include <doctest/doctest.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/schedule/layout.hpp"
#include "libgccl/transports/shared_memory.hpp"
#include "libgccl/transports/shm/pipe_program.hpp"
#include "tests/shm/memory_left.hpp"
#include "tests/shm/ports.hpp"

// As the system's, or of a machine so much of whose shared memory is taken.
extern "C" int fstatvfs(int file, struct statvfs* to) noexcept {
  struct statfs all {};
  if (::fstatfs(file, &all) != 0) return -1;
  *to = {};
  to->f_frsize = (unsigned long)all.f_bsize;
  to->f_blocks = 8000000;
  to->f_bavail = gccl::test::thousandths_left * 8000;
  return 0;
}

// As the system's, or of one that lets nobody read another process's memory, for this reason.
static int reading_is_refused = 0;
extern "C" ssize_t process_vm_readv(pid_t pid, const iovec* here, unsigned long heres, const iovec* there,
                                    unsigned long theres, unsigned long flags) noexcept {
  if (!reading_is_refused) return ::syscall(SYS_process_vm_readv, pid, here, heres, there, theres, flags);
  errno = reading_is_refused;
  return -1;
}

using namespace gccl;
using namespace gccl::shm;
using namespace gccl::test;

TEST_CASE("what goes to several peers is written once, and not written over before all have read it") {
  constexpr Rank n = 4;
  const std::vector<Rank> nodes(n);
  const Layout layout = Layout::of(nodes);
  for (const Count bytes : {Count(1000), Count(32767)}) {
    CAPTURE(bytes);
    Ranks ranks(n);
    const Call call{.kind = Collective::broadcast, .count = bytes};
    const Algorithm* const algorithm = find_algorithm(Collective::broadcast, "direct");
    REQUIRE(algorithm);
    Elements elements;
    std::unique_ptr<PipeProgram> program[n];
    std::vector<std::vector<std::byte>> buffer(n, std::vector<std::byte>(bytes));
    for (Rank r = 0; r < n; ++r)
      program[r] = PipeProgram::compile(algorithm->make(call, layout.view(r), Share{}), 1, ranks.port[r].get());
    const auto begin = [&](Rank r, int value) {
      buffer[r].assign(bytes, std::byte(value));
      Replay replay;
      replay.begin(*program[r], Buffers{{nullptr, buffer[r].data(), buffer[r].data(), nullptr}}, elements, 42);
      return replay;
    };
    int sent = 0;
    Replay root;
    const auto send_more = [&] {
      for (;; ++sent) {
        if (!root.program) root = begin(0, sent);
        if (root.advance() != Program::Outcome::done) return;
        root = {};
      }
    };
    const auto read = [&](Rank r, int value) {
      Replay replay = begin(r, 255);
      REQUIRE(replay.advance() == Program::Outcome::done);
      REQUIRE(std::ranges::count(buffer[r], std::byte(value)) == std::ptrdiff_t(bytes));
    };
    send_more();
    CHECK(sent == 8);
    CHECK(root.awaited().peer == 1);
    CHECK(!root.awaited().receives);
    GCCL_Fault fault{};
    CHECK(root.healthy(&fault));
    for (int round = 0; round < 40; ++round) {  // a rank reads all before another reads the first
      for (Rank r = 1; r < n; ++r) {
        send_more();
        CHECK(sent == 8 * (round + 1));
        for (int i = 0; i < 8; ++i) read(r, (8 * round + i) % 256);
      }
      send_more();
      CHECK(sent == 8 * (round + 2));
    }
  }
}

TEST_CASE("what is staged is read in the sender's segment, with no right to read its memory, and not beyond its end") {
  constexpr std::size_t bytes = 100000;
  ::setenv("GCCL_SHM_ZERO_COPY", "0", 1);
  TwoRanks two;
  ::unsetenv("GCCL_SHM_ZERO_COPY");
  CHECK(two.port[0]->staging(0) == nullptr);
  CHECK(two.port[0]->staging((1 << 20) + 1) == nullptr);
  thousandths_left = 500;
  CHECK(two.port[0]->staging(bytes) == nullptr);
  thousandths_left = 1000;
  std::byte* const staged = two.port[0]->staging(2 * bytes);
  REQUIRE(staged);
  CHECK(two.port[0]->staging(bytes) == staged);
  std::vector<std::byte> in(bytes);
  GCCL_Transfer* done[4];
  for (const std::size_t at : {std::size_t(0), bytes}) {
    std::memset(staged + at, int(at / bytes) + 1, bytes);
    GCCL_Transfer sent = transfer(1, staged + at, bytes), received = transfer(0, in.data(), bytes);
    REQUIRE(two.port[0]->send(&sent) == 0);
    CHECK(two.next_cell(1)->kind == CellKind::address);
    if (two.port[1]->receive(&received) == 0) REQUIRE(two.port[1]->poll(done, 4) == 1);
    CHECK(std::ranges::count(in, std::byte(at / bytes + 1)) == std::ptrdiff_t(bytes));
    REQUIRE(two.port[0]->poll(done, 4) == 1);
  }
  GCCL_Transfer sent = transfer(1, staged, bytes), received = transfer(0, in.data(), bytes);
  REQUIRE(two.port[0]->send(&sent) == 0);
  two.next_cell(1)->far.shared.offset = bytes + 1;
  CHECK(two.port[1]->receive(&received) == 0);
  CHECK(two.port[1]->poll(done, 4) == -1);
  CHECK(two.port[1]->fault().result == GCCL_ERR_SYSTEM);
  CHECK_MESSAGE(has(two.port[1]->fault().text, "damaged"), two.port[1]->fault().text);
}

TEST_CASE("memory is read unless GCCL_SHM_ZERO_COPY is the number 0, however that is written") {
  const auto reads = [](const char* value) { return Instance([value](const char*) { return value; }).zero_copy; };
  for (const char* off : {"0", "00", "-0"}) CHECK_MESSAGE(!reads(off), off);
  for (const char* on : {"1", "01", ""}) CHECK_MESSAGE(reads(on), on);
  CHECK(reads(nullptr));
}

// Which the system gives up before its locks.
TEST_CASE("a peer whose process has no memory any more is lost, also where its file is locked yet") {
  constexpr std::size_t bytes = 100000;
  TwoRanks two;
  std::vector<std::byte> out(bytes), in(bytes);
  GCCL_Transfer sent = transfer(1, out.data(), bytes), received = transfer(0, in.data(), bytes);
  CHECK(two.port[0]->send(&sent) == 0);
  REQUIRE(two.next_cell(1)->kind == CellKind::address);
  reading_is_refused = ESRCH;
  CHECK(two.port[1]->receive(&received) == 0);
  GCCL_Transfer* done[4];
  CHECK(two.port[1]->poll(done, 4) == -1);
  reading_is_refused = 0;
  CHECK(two.port[1]->fault().result == GCCL_ERR_PEER_LOST);
  CHECK_MESSAGE(has(two.port[1]->fault().text, "has died"), two.port[1]->fault().text);
  two.port[1]->cancel(&received);
  two.port[0]->cancel(&sent);
}

TEST_CASE("with no right to read memory what the peer allocated is mapped; where it cannot be, that is an error") {
  constexpr std::size_t bytes = 100000;
  void* allocated = nullptr;
  REQUIRE(allocate_shared(bytes, &allocated).ok());
  std::memset(allocated, 3, bytes);
  std::vector<std::byte> ordinary(bytes, std::byte(4)), in(bytes);
  enum { mapped, copied, another_file, no_allocation };
  for (const int how : {mapped, copied, another_file, no_allocation}) {
    CAPTURE(how);
    reading_is_refused = EPERM;
    TwoRanks two;
    CHECK(two.port[0]->end(1, 0, false)->writer.peer_ways() == kMapped);
    void* const from = how == copied ? ordinary.data() : allocated;
    GCCL_Transfer sent = transfer(1, from, bytes), received = transfer(0, in.data(), bytes);
    GCCL_Transfer* done[4];
    const bool over = two.port[0]->send(&sent) == 1;
    CHECK((two.next_cell(1)->kind == CellKind::address) == (how != copied));
    if (how == another_file) ++two.next_cell(1)->far.shared.inode;
    if (how == no_allocation) two.next_cell(1)->far.shared.number = 0;
    int ended = two.port[1]->receive(&received);
    if (ended == 0) ended = two.port[1]->poll(done, 4);
    reading_is_refused = 0;
    if (how == mapped || how == copied) {
      CHECK(ended == 1);
      CHECK(std::memcmp(in.data(), from, bytes) == 0);
      if (!over) CHECK(two.port[0]->poll(done, 4) == 1);
      continue;
    }
    CHECK(ended == -1);
    const GCCL_Fault& fault = two.port[1]->fault();
    CHECK(fault.result == GCCL_ERR_SYSTEM);
    CHECK_MESSAGE(has(fault.text, how == another_file ? "rank 1 cannot map the memory of rank 0: another file is there"
                                                      : "damaged"),
                  fault.text);
    two.port[1]->cancel(&received);
    two.port[0]->cancel(&sent);
  }
  CHECK(free_shared(allocated).ok());
}
