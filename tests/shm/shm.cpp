// Ports of the shared-memory transport from inside: cells that a peer has damaged, peers that die, memory that the
// machine does not have.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/schedule/layout.hpp"
#include "libgccl/transports/shm/pipe_program.hpp"
#include "libgccl/transports/shm/rank_file.hpp"
#include "libgccl/transports/shm/reserve.hpp"
#include "libgccl/transports/shm/segment.hpp"
#include "libgccl/transports/shm/shm_fast_path.hpp"
#include "libgccl/transports/shm/shm_port.hpp"
#include "tests/shm/memory_left.hpp"
#include "tests/shm/ports.hpp"
#include "tests/support/child.hpp"
#include "tests/support/short_memory.hpp"

// ---- The system's answer to reserving memory, as a test wants it ----

namespace {
std::atomic<long> interrupted_above{0};  // bytes; longer requests get EINTR, as under a timer that is faster than they
std::atomic<int> interruptions{0};
}  // namespace

extern "C" int posix_fallocate(int file, off_t at, off_t bytes) {
  using gccl::test::memory_is_full, gccl::test::reservations_left;
  if (memory_is_full || reservations_left == 0) return ENOSPC;
  if (reservations_left > 0) --reservations_left;
  if (interrupted_above > 0 && bytes > interrupted_above) {
    ++interruptions;
    return EINTR;
  }
  return ::fallocate(file, 0, at, bytes) == 0 ? 0 : errno;
}

using namespace gccl;
using namespace gccl::shm;
using namespace gccl::test;

namespace {

struct Damage {
  const char* name;
  std::uint64_t bytes;
  void (*harm)(Cell&);
};
const Damage kDamages[] = {
    {"unknown kind, in a cell", 8,
     [](Cell& c) {
       c.kind = CellKind(7);
       c.far.message_bytes = 8;
     }},
    {"unknown kind, in a chunk", 1000, [](Cell& c) { c.kind = CellKind(200); }},
    {"an empty piece", 1000, [](Cell& c) { c.piece_bytes = 0; }},
    {"a longer piece", 1000, [](Cell& c) { c.piece_bytes = 65000; }},
    {"a place far away", 1000, [](Cell& c) { c.far.place = 1ull << 40; }},
    {"a later piece first", 20000, [](Cell& c) { c.kind = CellKind::more; }},
    {"a cell that says a chunk's length", 1000,
     [](Cell& c) {
       c.kind = CellKind::inline_data;
       c.piece_bytes = 1000;
     }},
};

TEST_CASE("what a peer has damaged is an error that names it, and nothing beyond the buffer is written") {
  for (const Damage& d : kDamages) {
    CAPTURE(d.name);
    TwoRanks two;
    std::vector<std::byte> out(d.bytes, std::byte(1)), in(d.bytes + 100000, std::byte(9));
    GCCL_Transfer sent = transfer(1, out.data(), d.bytes), received = transfer(0, in.data(), d.bytes);
    two.port[0]->send(&sent);
    d.harm(*two.next_cell(1));
    CHECK(two.port[1]->receive(&received) == 0);
    GCCL_Transfer* done[4];
    REQUIRE(two.port[1]->poll(done, 4) == -1);
    const GCCL_Fault& fault = two.port[1]->fault();
    CHECK(fault.result == GCCL_ERR_SYSTEM);
    CHECK(fault.peer == 0);
    CHECK_MESSAGE(has(fault.text, "what rank 0 wrote into shared memory for rank 1 is damaged"), fault.text);
    for (std::size_t i = 0; i < in.size(); ++i) REQUIRE(in[i] == std::byte(9));
  }
}

TEST_CASE("a compiled schedule believes a damaged cell as little") {
  const std::vector<Rank> nodes = {0, 0};
  const Layout layout = Layout::of(nodes);
  for (const Damage& d : kDamages) {
    CAPTURE(d.name);
    TwoRanks two;
    const Call call{.kind = Collective::broadcast, .count = d.bytes};
    const Algorithm* const algorithm = find_algorithm(Collective::broadcast, "binomial");
    REQUIRE(algorithm);
    std::vector<std::byte> out(d.bytes, std::byte(1)), in(d.bytes + 100000, std::byte(9));
    Elements elements;
    Replay replay[2];
    std::unique_ptr<PipeProgram> program[2];
    for (Rank r : {0u, 1u}) {
      program[r] = PipeProgram::compile(algorithm->make(call, layout.view(r), Share{}), 1, two.port[r].get());
      REQUIRE(program[r]);
      std::byte* const base = r == 0 ? out.data() : in.data();
      replay[r].begin(*program[r], Buffers{{nullptr, base, base, nullptr}}, elements, 42);
    }
    CHECK(replay[1].advance() == Program::Outcome::blocked);
    CHECK(replay[0].advance() == Program::Outcome::done);
    d.harm(*two.next_cell(1));
    CHECK(replay[1].advance() == Program::Outcome::failed);
    const GCCL_Fault fault = replay[1].fault();
    CHECK(fault.peer == 0);
    CHECK_MESSAGE(has(fault.text, "what rank 0 wrote into shared memory for rank 1 is damaged"), fault.text);
    for (std::size_t i = 0; i < in.size(); ++i) REQUIRE(in[i] == std::byte(9));
  }
}

TEST_CASE("a copy of more than 2^32 bytes within a rank is not compiled: its length would be cut short") {
  const std::vector<Rank> node = {0};
  const Layout layout = Layout::of(node);
  for (const std::uint64_t bytes : {(1ull << 32) - 1, 1ull << 32, (1ull << 32) + 8}) {
    CAPTURE(bytes);
    const Call call{.kind = Collective::allreduce, .count = bytes};
    const auto program = PipeProgram::compile(
        find_algorithm(Collective::allreduce, "ring")->make(call, layout.view(0), Share{}), 1, nullptr);
    REQUIRE(bool(program) == (bytes < 1ull << 32));
    if (!program) continue;
    REQUIRE(program->steps().size() == 1);
    CHECK(program->steps()[0].bytes == bytes);
  }
}

TEST_CASE("what a peer sent before it gave up is received, also by who has heard of that already") {
  TwoRanks two;
  const std::vector<std::byte> out(40000, std::byte(7));
  std::vector<std::byte> in[2] = {std::vector<std::byte>(40000), std::vector<std::byte>(40000)};
  GCCL_Transfer sent[2], received[3];
  for (GCCL_Transfer& t : sent) {
    t = transfer(1, const_cast<std::byte*>(out.data()), out.size());
    t.hints = GCCL_HINT_FRESH;  // through chunks: what a zero-copy send offers goes with its owner
    REQUIRE(two.port[0]->send(&t) == 1);
  }
  two.port[0]->abort({.result = GCCL_ERR_ABORTED, .peer = 0, .text = "enough"});
  REQUIRE(two.port[1]->poll(nullptr, 0) == -1);
  for (int i = 0; i < 2; ++i) {
    received[i] = transfer(0, in[i].data(), in[i].size());
    REQUIRE(two.port[1]->receive(&received[i]) == 0);
  }
  GCCL_Transfer* done[4];
  CHECK(two.port[1]->poll(done, 4) == 2);
  CHECK(received[0].result == GCCL_SUCCESS);
  CHECK(in[0] == out);
  CHECK(in[1] == out);
  received[2] = transfer(0, in[0].data(), 8);
  CHECK(two.port[1]->receive(&received[2]) == 0);
  CHECK(two.port[1]->poll(done, 4) == -1);
}

TEST_CASE("a damaged reason for giving up is an error all the same") {
  GCCL_Fault endless{.result = GCCL_ERR_ABORTED, .peer = 1, .text = {}};
  std::memset(endless.text, 'x', sizeof endless.text);
  const GCCL_Fault faults[] = {{.result = GCCL_SUCCESS, .peer = 1, .text = "all is well"},
                               {.result = 77777, .peer = 1, .text = "?"},
                               {.result = -1, .peer = 1, .text = "?"},
                               {.result = GCCL_ERR_ABORTED, .peer = 4000000000u, .text = "?"},
                               endless};
  for (const GCCL_Fault& f : faults) {
    CAPTURE(f.result);
    TwoRanks two;
    two.port[1]->abort(f);
    CHECK(two.port[0]->poll(nullptr, 0) == -1);
    const GCCL_Fault& heard = two.port[0]->fault();
    CHECK(heard.peer == 1);
    CHECK(std::strlen(heard.text) < sizeof heard.text);
    if (f.text[0] == 'x') {
      CHECK(heard.result == GCCL_ERR_ABORTED);
    } else {
      CHECK(heard.result == GCCL_ERR_REMOTE);
      CHECK_MESSAGE(has(heard.text, "rank 1 has given up"), heard.text);
    }
  }
}

TEST_CASE("no shared memory left for a message is an error that names both ranks; what is reserved goes on working") {
  for (const std::uint64_t bytes : {8ull, 1000ull, 20000ull}) {
    CAPTURE(bytes);
    TwoRanks two;
    std::vector<std::byte> data(bytes);
    GCCL_Transfer t = transfer(1, data.data(), bytes);
    memory_is_full = true;
    CHECK_FALSE(two.port[0]->put(*two.port[0]->end(1, 1, false), 42, data.data(), std::uint32_t(bytes)));
    const int now = two.port[0]->send(&t);
    GCCL_Transfer* done[4];
    const int polled = two.port[0]->poll(done, 4);
    memory_is_full = false;
    CHECK(now == 0);
    REQUIRE(polled == -1);
    const std::string text = two.port[0]->fault().text;
    CHECK(two.port[0]->fault().result == GCCL_ERR_SYSTEM);
    CHECK_MESSAGE(has(text, "rank 0 has no shared memory for messages to rank 1: No space left"), text);
    CHECK_MESSAGE(has(text, "/dev/shm is full"), text);
  }
  {  // nor any memory to say so in
    TwoRanks two;
    std::uint64_t value = 5;
    GCCL_Transfer t = transfer(1, &value, 8), *done[4];
    memory_is_full = true;
    denied = {.left = 0, .lasting = true};
    const int now = two.port[0]->send(&t), polled = two.port[0]->poll(done, 4);
    const bool met = std::exchange(denied, {}).met;
    memory_is_full = false;
    CHECK(met);
    CHECK(now == 0);
    REQUIRE(polled == -1);
    CHECK(two.port[0]->fault().result == GCCL_ERR_SYSTEM);
    CHECK(std::string(two.port[0]->fault().text) == "out of memory");
  }
  TwoRanks two;
  std::uint64_t value = 5, seen = 0;
  for (int i = 0; i < 100; ++i) {
    GCCL_Transfer t = transfer(1, &value, 8), u = transfer(0, &seen, 8);
    memory_is_full = i > 0;
    CHECK(two.port[0]->send(&t) == 1);
    CHECK(two.port[1]->receive(&u) == 1);
    CHECK(seen == value++);
  }
  memory_is_full = false;
}

TEST_CASE("the fast path receives no first piece of a longer message") {
  TwoRanks two;
  std::vector<std::byte> data(2 * kPieceBytes, std::byte(1)), in(kPieceBytes);
  GCCL_Transfer sent = transfer(1, data.data(), data.size()), received = transfer(0, in.data(), in.size());
  REQUIRE(two.port[0]->send(&sent) == 1);
  Backoff backoff(false);
  CHECK_FALSE(shm_fast_path(two.port[1].get())->receive(0, 0, received.signature, in.data(), kPieceBytes, &backoff));
  CHECK(two.port[1]->receive(&received) == 1);  // and as a transfer it is reported
  CHECK(received.result == GCCL_ERR_MISMATCH);
  CHECK(received.bytes_found == data.size());
}

TEST_CASE("a port counts what it reads of a long message while that is on its way") {
  TwoRanks two;
  std::vector<std::byte> data(24 << 20, std::byte(1)), in(data.size());
  GCCL_Transfer sent = transfer(1, data.data(), data.size()), received = transfer(0, in.data(), in.size());
  REQUIRE(two.port[0]->send(&sent) == 0);
  REQUIRE(two.port[1]->receive(&received) == 0);
  GCCL_Transfer* done = nullptr;
  std::uint64_t before = 0;
  int polls = 0;
  for (; two.port[1]->poll(&done, 1) == 0; ++polls) {
    two.port[0]->poll(&done, 1);
    CHECK(two.port[1]->moved_bytes() > before);
    before = two.port[1]->moved_bytes();
  }
  CHECK(polls > 0);
  CHECK(two.port[1]->moved_bytes() == data.size());
  CHECK(in == data);
}

TEST_CASE("a message that its sender takes back while a thread of the same process reads it is an error, no crash") {
  for (const bool consumed : {false, true}) {
    TwoRanks two;
    if (!(two.port[0]->end(1, 0, false)->writer.peer_ways() & kBySystem)) {
      MESSAGE("the system lets nobody read another process's memory");
      return;
    }
    constexpr std::size_t kBytes = 24 << 20;  // of which a poll reads a third
    void* const out = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(out != MAP_FAILED);
    std::vector<std::byte> in(kBytes);
    GCCL_Transfer sent = transfer(1, out, kBytes), received = transfer(0, in.data(), kBytes);
    if (consumed) received.consume = [](GCCL_Transfer*, const void*, std::uint64_t, std::uint64_t) {};
    REQUIRE(two.port[0]->send(&sent) == 0);
    REQUIRE(two.port[1]->receive(&received) == 0);
    GCCL_Transfer* done = nullptr;
    REQUIRE(two.port[1]->poll(&done, 1) == 0);
    REQUIRE(two.port[1]->moved_bytes() > 0);
    REQUIRE(::mprotect(out, kBytes, PROT_NONE) == 0);
    CHECK(two.port[1]->poll(&done, 1) == -1);
    CHECK(two.port[1]->fault().result == GCCL_ERR_SYSTEM);
    CHECK_MESSAGE(has(two.port[1]->fault().text, "rank 1 cannot read the memory of rank 0 or write to its own buffer"),
                  two.port[1]->fault().text);
    CHECK_MESSAGE(has(two.port[1]->fault().text, "GCCL_SHM_ZERO_COPY=0"), two.port[1]->fault().text);
    two.port[1]->cancel(&received);
    two.port[0]->cancel(&sent);
    ::munmap(out, kBytes);
  }
}

// ---- Two processes ----

struct AddressBytes {
  std::byte of[GCCL_BACKEND_ADDRESS_BYTES];
};

// The header of the only segment that this process has mapped.
Header* only_header() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (has(line, "/dev/shm/gccl-")) return reinterpret_cast<Header*>(std::stoull(line, nullptr, 16));
  return nullptr;
}

// Rank 0 is the test, rank 1 a child of it, which ends without a word when it has done its part.
void with_peer(const std::function<void(Port&, Header& own)>& rank1, const std::function<void(Port&)>& rank0) {
  const std::uint32_t node[] = {0, 0}, world_rank[] = {0, 1};
  int there[2], back[2];
  REQUIRE(::pipe2(there, O_CLOEXEC) == 0);
  REQUIRE(::pipe2(back, O_CLOEXEC) == 0);
  const auto live = [&](std::uint32_t rank, int to, int from) -> std::string {
    const GCCL_Port_spec spec{.struct_bytes = sizeof spec,
                              .rank = rank,
                              .size = 2,
                              .channels = 2,
                              .communicator = 1,
                              .node = node,
                              .world_rank = world_rank,
                              .connect_timeout_ms = 0};
    Instance instance(process_environment());
    std::unique_ptr<Port> port;
    AddressBytes addresses[2] = {};
    std::uint8_t reaches[2] = {};
    if (const Status s = Port::open(instance, spec, &port, &addresses[rank]); !s.ok()) return s.text();
    Header* const own = only_header();
    if (!own || own->users != 1) return "no header";
    if (::write(to, &addresses[rank], sizeof addresses[0]) != ssize_t(sizeof addresses[0])) return "write";
    if (::read(from, &addresses[1 - rank], sizeof addresses[0]) != ssize_t(sizeof addresses[0])) return "read";
    if (const Status s = port->connect(spec, addresses, reaches); !s.ok()) return s.text();
    char both = 0;
    if (::write(to, &both, 1) != 1 || ::read(from, &both, 1) != 1) return "wait";
    port->connected();
    if (rank == 0) return rank0(*port), "";
    rank1(*port, *own);
    ::_exit(0);
  };
  const test::Child child([&] {
    std::fprintf(stderr, "%s\n", live(1, back[1], there[0]).c_str());
    return 1;
  });
  const std::string wrong = live(0, there[1], back[0]);
  CHECK_MESSAGE(wrong.empty(), wrong);
  for (const int fd : {there[0], there[1], back[0], back[1]}) ::close(fd);
}

// Until the port has failed; false after 30 seconds of nothing.
bool fails(Port& port) {
  GCCL_Transfer* done[4];
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
       std::chrono::steady_clock::now() < end;) {
    const int n = port.poll(done, 4);
    if (n < 0) return true;
    if (n > 0) return false;
  }
  return false;
}

TEST_CASE("a peer that dies while it says why it gives up is lost, whatever lies in its pipe") {
  std::vector<std::byte> data(1 << 20, std::byte(1)), in(1 << 20);
  with_peer(
      [&](Port& port, Header& own) {
        GCCL_Transfer t = transfer(0, data.data(), data.size());
        port.send(&t);
        own.fault_state = 1;
      },
      [&](Port& port) {
        while (!port.end(1, 0, true)->reader.peek()) ::usleep(1000);
        ::usleep(50000);
        GCCL_Transfer t = transfer(1, in.data(), in.size());
        port.receive(&t);
        REQUIRE(fails(port));
        CHECK(port.fault().result == GCCL_ERR_PEER_LOST);
        CHECK(port.fault().peer == 1);
        CHECK_MESSAGE(has(port.fault().text, "has died"), port.fault().text);
      });
}

TEST_CASE("what a peer has written before it died still arrives") {
  std::vector<std::byte> data(20000, std::byte(1)), in(20000);
  with_peer(
      [&](Port& port, Header&) {
        for (int i = 0; i < 3; ++i) {
          GCCL_Transfer t = transfer(0, data.data(), i == 1 ? 8 : data.size());
          port.send(&t);
        }
      },
      [&](Port& port) {
        while (!port.end(1, 0, true)->reader.peek()) ::usleep(1000);
        ::usleep(50000);
        shm::End* const waiting[] = {port.end(1, 0, true)};
        for (int i = 0; i < 3; ++i) {
          CHECK(port.healthy(waiting));
          GCCL_Transfer t = transfer(1, in.data(), i == 1 ? 8 : in.size());
          CHECK(port.receive(&t) == 1);
        }
        CHECK(std::count(in.begin(), in.end(), std::byte(1)) == std::ptrdiff_t(in.size()));
        bool healthy = true;  // as long as its process ends; now the pipe is empty
        for (int ms = 0; healthy && ms < 30000; ++ms) healthy = port.healthy(waiting) && ::usleep(1000) == 0;
        CHECK_FALSE(healthy);
        CHECK(port.fault().result == GCCL_ERR_PEER_LOST);
      });
}

// ---- Reserving ----

TEST_CASE("reserving goes on where signals interrupt it, however short the time between them") {
  const int file = ::memfd_create("gccl-test", MFD_CLOEXEC);
  REQUIRE(file >= 0);
  for (const long limit : {4096L, 100000L, 1L << 20}) {
    interruptions = 0;
    interrupted_above = limit;
    CHECK(reserve(file, 0, 40 << 20) == 0);
    interrupted_above = 0;
    CHECK(interruptions > 0);
    struct stat st;
    REQUIRE(::fstat(file, &st) == 0);
    CHECK(st.st_blocks * 512 == 40 << 20);
    release(file, 0, 40 << 20);
    REQUIRE(::fstat(file, &st) == 0);
    CHECK(st.st_blocks == 0);
  }
  ::close(file);
  interrupted_above = 4096;
  void* p = nullptr;
  CHECK(allocate_shared(3 << 20, &p).ok());
  std::unique_ptr<TwoRanks> two = std::make_unique<TwoRanks>();
  interrupted_above = 0;
  CHECK(free_shared(p).ok());
}

TEST_CASE("more shared memory than the machine has is refused at once") {
  for (const std::size_t bytes : {std::size_t(1) << 45, std::size_t(1) << 60}) {
    void* p = nullptr;
    const Status s = allocate_shared(bytes, &p);
    CHECK(s.code() == GCCL_ERR_SYSTEM);
    CHECK_MESSAGE(has(s.text(), "bytes of shared memory: the machine has "), s.text());
    CHECK(p == nullptr);
  }
}

}  // namespace
