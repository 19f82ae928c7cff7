// The shared-memory transport from inside: pipes whose counts are near the limits of 32 bits, cells that nobody can
// have written, files of ranks that die, memory that the machine does not have.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/backends/shm/rank_file.hpp"
#include "libgccl/backends/shm/reserve.hpp"
#include "libgccl/backends/shm/segment.hpp"
#include "libgccl/backends/shm/shm_port.hpp"
#include "libgccl/communicator/program.hpp"
#include "libgccl/schedule/layout.hpp"

// ---- The system's answer to reserving memory, as a test wants it ----

namespace {
std::atomic<long> interrupted_above{0};  // bytes; longer requests get EINTR, as under a timer that is faster than they
std::atomic<bool> memory_is_full{false};
std::atomic<int> interruptions{0};
}  // namespace

extern "C" int posix_fallocate(int file, off_t at, off_t bytes) {
  if (memory_is_full) return ENOSPC;
  if (interrupted_above > 0 && bytes > interrupted_above) {
    ++interruptions;
    return EINTR;
  }
  return ::fallocate(file, 0, at, bytes) == 0 ? 0 : errno;
}

using namespace gccl;
using namespace gccl::shm;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

// ---- Pipes ----

struct Two_ends {
  Control control{};
  std::unique_ptr<Pipe> pipe = std::make_unique<Pipe>();
  Writer writer{&control, pipe.get()};
  Reader reader{&control, pipe.get()};

  void write_short(std::uint64_t value) {
    Cell* const c = writer.next();
    REQUIRE(c);
    c->kind = CellKind::inline_data;
    c->piece_bytes = sizeof value;
    std::memcpy(c->data, &value, sizeof value);
    writer.publish(c);
  }
  void read_short(std::uint64_t value) {
    const Cell* const c = reader.peek();
    REQUIRE(c);
    const std::byte* const at = reader.piece(*c, 0, sizeof value);
    REQUIRE(at);
    REQUIRE(std::memcmp(at, &value, sizeof value) == 0);
    reader.pop_inline();
  }
  // One message of 100 bytes through a chunk; false while no chunk is free.
  bool write_chunk(int value) {
    std::byte* const chunk = writer.next_chunk();
    if (!chunk) return false;
    Cell* const c = writer.next();
    REQUIRE(c);
    std::memset(chunk, value, 100);
    c->kind = CellKind::first;
    c->piece_bytes = 100;
    c->far.message_bytes = 100;
    c->far.place = 0;
    writer.use_chunk();
    writer.publish(c);
    return true;
  }
  void read_chunk(int value) {
    const Cell* const c = reader.peek();
    REQUIRE(c);
    const std::byte* const at = reader.piece(*c, 0, 100);
    REQUIRE(at);
    for (int i = 0; i < 100; ++i) REQUIRE(int(at[i]) == value);
    reader.pop_piece(100, 100);
  }
};

TEST_CASE("a pipe has chunks to give however many short messages came since the last one") {
  for (const std::uint64_t between : {1ull << 10, (1ull << 31) - 64, 1ull << 31, (1ull << 31) + 64, 3ull << 30,
                                      (1ull << 32) - 32, 1ull << 32, (1ull << 32) + 64, 1ull << 40}) {
    CAPTURE(between);
    Two_ends p;
    CHECK(p.writer.next() == nullptr);  // nothing is reserved yet
    CHECK(p.reader.peek() == nullptr);
    p.writer.opened(kReservedChunks);
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 8; ++i) {
        REQUIRE(p.write_chunk(i));
        p.read_chunk(i);
      }
      for (std::uint64_t i = 0; i < 32; ++i) {
        p.write_short(i);
        p.read_short(i);
      }
      p.writer.skip(between / kCells);
      p.reader.skip(between / kCells);
    }
    // All eight at once, and not one more until they are read.
    for (int i = 0; i < 8; ++i) REQUIRE(p.write_chunk(i));
    CHECK_FALSE(p.write_chunk(8));
    for (int i = 0; i < 8; ++i) p.read_chunk(i);
    CHECK(p.write_chunk(9));
  }
}

TEST_CASE("cells, and memory that the peer reads, stay in order where the count passes 2^31 and 2^32") {
  for (const std::uint64_t start : {(1ull << 31) - 64, (1ull << 32) - 64, (1ull << 33) - 64}) {
    CAPTURE(start);
    Two_ends p;
    p.writer.opened(kReservedCells);
    p.writer.skip(start / kCells);
    p.reader.skip(start / kCells);
    std::uint64_t written = 0, read = 0;
    for (int round = 0; round < 20; ++round) {
      while (p.writer.next()) p.write_short(written++);
      CHECK(written - read == kCells);  // full at the very count
      CHECK_FALSE(p.writer.room(1));
      const std::uint64_t last = p.writer.written();
      while (p.reader.peek()) {
        CHECK(p.writer.read_up_to(last) == false);
        p.read_short(read++);
      }
      CHECK(written == read);
      CHECK(p.writer.read_up_to(last));
      CHECK(p.writer.room(kCells));
    }
  }
}

TEST_CASE("a cell that no writer can have written leads nowhere") {
  Two_ends p;
  p.writer.opened(kReservedChunks);
  Cell c{};
  const auto is = [&](int kind, std::uint32_t piece, std::uint64_t received, std::uint64_t bytes, std::uint64_t place) {
    c.kind = CellKind(kind);
    c.piece_bytes = std::uint16_t(piece);
    c.far.message_bytes = bytes;
    c.far.place = place;
    return p.reader.piece(c, received, bytes) != nullptr;
  };
  enum { in_cell, first, more, address };
  // What is right, from the layout in pipe.hpp: pieces of 8 KiB, chunks of 32 KiB, 48 bytes in a cell.
  CHECK(is(in_cell, 48, 0, 48, 0));
  CHECK(is(in_cell, 0, 0, 0, 0));
  CHECK(is(first, 49, 0, 49, 0));
  CHECK(is(first, 8192, 0, 10000, 0));
  CHECK(is(more, 1808, 8192, 10000, 8192));
  CHECK(is(more, 8192, 32768 + 8192, 100000, 8192));
  // What is not.
  CHECK_FALSE(is(in_cell, 49, 0, 49, 0));        // beyond the cell
  CHECK_FALSE(is(in_cell, 8, 0, 48, 0));         // short of the message
  CHECK_FALSE(is(in_cell, 48, 8192, 8240, 0));   // in the middle of a longer one
  CHECK_FALSE(is(first, 8, 0, 8, 0));            // short messages lie in their cell
  CHECK_FALSE(is(first, 65535, 0, 65535, 0));    // beyond a piece
  CHECK_FALSE(is(first, 0, 0, 10000, 0));        // would never end
  CHECK_FALSE(is(first, 8192, 0, 100, 0));       // beyond the message
  CHECK_FALSE(is(more, 8192, 0, 10000, 0));      // the first one is missing
  CHECK_FALSE(is(first, 1808, 8192, 10000, 0));  // a second one begins
  CHECK_FALSE(is(first, 100, 0, 100, 32768));    // beyond the chunk
  CHECK_FALSE(is(first, 100, 0, 100, ~0ull));
  CHECK_FALSE(is(more, 8192, 32768, 40960, 32768));
  CHECK_FALSE(is(address, 0, 0, 100000, 0));
  for (int kind = 4; kind < 300; kind += 37) CHECK_FALSE(is(kind, 100, 0, 100, 0));

  // Chunks that the writer has not reserved are not touched.
  Two_ends q;
  q.writer.opened(kReservedCells);
  c.far.place = 0;
  c.kind = CellKind::first;
  c.piece_bytes = 100;
  CHECK(q.reader.piece(c, 0, 100) == nullptr);
  q.writer.opened(kReservedBeginnings);
  CHECK(q.reader.piece(c, 0, 100) != nullptr);
  c.piece_bytes = 8192;
  CHECK(q.reader.piece(c, 0, 8192) == nullptr);
  q.writer.opened(kReservedChunks);
  CHECK(q.reader.piece(c, 0, 8192) != nullptr);
}

// ---- Ports ----

// Two ranks of this process.
struct Two_ranks {
  std::vector<std::uint32_t> node = {0, 0}, world_rank = {0, 1};
  Rank_files files[2];
  std::unique_ptr<Port> port[2];

  GCCL_Port_spec spec(std::uint32_t rank) const {
    return {.struct_bytes = sizeof(GCCL_Port_spec),
            .rank = rank,
            .size = 2,
            .channels = 2,
            .communicator = 1,
            .node = node.data(),
            .world_rank = world_rank.data(),
            .connect_timeout_ms = 0};
  }
  Two_ranks() {
    std::vector<std::byte> addresses(2 * GCCL_BACKEND_ADDRESS_BYTES);
    for (std::uint32_t r : {0u, 1u}) {
      const Status s = Port::open(files[r], spec(r), &port[r], addresses.data() + r * GCCL_BACKEND_ADDRESS_BYTES);
      REQUIRE_MESSAGE(s.ok(), s.text());
    }
    for (std::uint32_t r : {0u, 1u}) {
      std::uint8_t reaches[2] = {};
      const Status s = port[r]->connect(spec(r), addresses.data(), reaches);
      REQUIRE_MESSAGE(s.ok(), s.text());
      REQUIRE(reaches[1 - r] == 1);
    }
    for (auto& p : port) p->connected();
  }
  // The cell that rank `to` reads next.
  Cell* next_cell(std::uint32_t to) {
    const Cell* const c = port[to]->end(1 - to, 0, true)->reader.peek();
    REQUIRE(c);
    return const_cast<Cell*>(c);
  }
};

GCCL_Transfer transfer(std::uint32_t peer, void* data, std::uint64_t bytes) {
  GCCL_Transfer t{};
  t.peer = peer;
  t.data = data;
  t.bytes = bytes;
  t.signature = 42;
  return t;
}

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
    Two_ranks two;
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
    Two_ranks two;
    const Call call{.kind = Collective::broadcast, .count = d.bytes};
    const Algorithm* const algorithm = find_algorithm(Collective::broadcast, "binomial");
    REQUIRE(algorithm);
    std::vector<std::byte> out(d.bytes, std::byte(1)), in(d.bytes + 100000, std::byte(9));
    Elements elements;
    Replay replay[2];
    std::unique_ptr<Program> program[2];
    for (Rank r : {0u, 1u}) {
      program[r] = Program::compile(algorithm->make(call, layout.view(r), Share{}), 1, 2, two.port[r].get());
      REQUIRE(program[r]);
      std::byte* const base = r == 0 ? out.data() : in.data();
      replay[r].begin(*program[r], two.port[r].get(), Memory{{nullptr, base, base, nullptr}}, elements, 42);
    }
    CHECK(replay[1].advance() == Replay::Outcome::blocked);
    CHECK(replay[0].advance() == Replay::Outcome::done);
    d.harm(*two.next_cell(1));
    CHECK(replay[1].advance() == Replay::Outcome::damaged);
    for (std::size_t i = 0; i < in.size(); ++i) REQUIRE(in[i] == std::byte(9));
  }
}

TEST_CASE("a copy of more than 2^32 bytes within a rank is not compiled: its length would be cut short") {
  const std::vector<Rank> node = {0};
  const Layout layout = Layout::of(node);
  for (const std::uint64_t bytes : {(1ull << 32) - 1, 1ull << 32, (1ull << 32) + 8}) {
    CAPTURE(bytes);
    const Call call{.kind = Collective::allreduce, .count = bytes};
    const auto program = Program::compile(
        find_algorithm(Collective::allreduce, "ring")->make(call, layout.view(0), Share{}), 1, 1, nullptr);
    REQUIRE(bool(program) == (bytes < 1ull << 32));
    if (!program) continue;
    REQUIRE(program->steps.size() == 1);
    CHECK(program->steps[0].bytes == bytes);
  }
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
    Two_ranks two;
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
    Two_ranks two;
    std::vector<std::byte> data(bytes);
    GCCL_Transfer t = transfer(1, data.data(), bytes);
    memory_is_full = true;
    CHECK(two.port[0]->put(*two.port[0]->end(1, 1, false), 42, data.data(), std::uint32_t(bytes)) ==
          Port::Put::no_memory);
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
  Two_ranks two;
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

// ---- Two processes ----

struct Address_bytes {
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
    Rank_files files;
    std::unique_ptr<Port> port;
    Address_bytes addresses[2] = {};
    std::uint8_t reaches[2] = {};
    if (const Status s = Port::open(files, spec, &port, &addresses[rank]); !s.ok()) return s.text();
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
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::fprintf(stderr, "%s\n", live(1, back[1], there[0]).c_str());
    ::_exit(1);
  }
  const std::string wrong = live(0, there[1], back[0]);
  CHECK_MESSAGE(wrong.empty(), wrong);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
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
        for (int i = 0; i < 3; ++i) {
          CHECK(port.healthy(port.end(1, 0, true)));
          GCCL_Transfer t = transfer(1, in.data(), i == 1 ? 8 : in.size());
          CHECK(port.receive(&t) == 1);
        }
        CHECK(std::count(in.begin(), in.end(), std::byte(1)) == std::ptrdiff_t(in.size()));
        CHECK_FALSE(port.healthy(port.end(1, 0, true)));  // and the pipe is empty
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
  std::unique_ptr<Two_ranks> two = std::make_unique<Two_ranks>();
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

// ---- Files of ranks ----

std::string path_of(const std::string& name) { return "/dev/shm/" + name; }
bool exists(const std::string& name) { return ::access(path_of(name).c_str(), F_OK) == 0; }

// A process that has a rank's file, does as it is told and then waits to be killed.
struct Owner {
  pid_t pid = -1;
  std::string name;
  explicit Owner(const std::function<void(Rank_file&)>& then) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::shared_ptr<Rank_file> file;
      if (!Rank_file::create(&file).ok()) ::_exit(1);
      if (::write(ends[1], file->name().data(), file->name().size()) < 0) ::_exit(1);
      ::close(ends[1]);
      then(*file);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    char text[64];
    const ssize_t n = ::read(ends[0], text, sizeof text);
    REQUIRE(n > 0);
    name.assign(text, std::size_t(n));
    ::close(ends[0]);
  }
  // The process ends, as a zombie at first.
  void kill() {
    ::kill(pid, SIGKILL);
    siginfo_t info;
    ::waitid(P_PID, id_t(pid), &info, WEXITED | WNOWAIT);
  }
  ~Owner() {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
};

TEST_CASE("a rank's file tells that its process lives, until it ends") {
  Owner owner([](Rank_file&) {});
  std::shared_ptr<Rank_file> file;
  const Status s = Rank_file::open(owner.name, &file);
  REQUIRE_MESSAGE(s.ok(), s.text());
  CHECK_FALSE(file->mine());
  CHECK(file->alive());
  owner.kill();  // nobody has waited for it yet
  CHECK_FALSE(file->alive());
}

TEST_CASE("a child that a rank forked does not keep it alive") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  Owner owner([&](Rank_file&) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, 0);
      char wait;
      ::close(ends[1]);
      if (::read(ends[0], &wait, 1) < 0) ::_exit(1);  // until the test has ended
      ::_exit(0);
    }
  });
  ::close(ends[0]);
  std::shared_ptr<Rank_file> file;
  REQUIRE(Rank_file::open(owner.name, &file).ok());
  CHECK(file->alive());
  owner.kill();
  CHECK_FALSE(file->alive());
  ::close(ends[1]);
}

TEST_CASE("a rank whose main thread has ended lives on in the others") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  Owner owner([&](Rank_file&) {
    pthread_t other;
    ::pthread_create(
        &other, nullptr,
        [](void*) -> void* {
          for (;;) ::pause();
        },
        nullptr);
    ::syscall(SYS_exit, 0);  // this thread alone
  });
  ::close(ends[1]);
  ::close(ends[0]);
  std::shared_ptr<Rank_file> file;
  REQUIRE(Rank_file::open(owner.name, &file).ok());
  // Until /proc calls it a zombie, which it is not.
  for (char state = 0; state != 'Z';) {
    std::ifstream stat("/proc/" + std::to_string(owner.pid) + "/stat");
    std::string text;
    REQUIRE(std::getline(stat, text));
    state = text[text.rfind(')') + 2];
    ::usleep(1000);
  }
  CHECK(file->alive());
  owner.kill();
  CHECK_FALSE(file->alive());
}

TEST_CASE("files that killed processes left are removed by the next one; nobody else's are") {
  Owner living([](Rank_file&) {});
  std::string left[3];
  for (std::string& name : left) {
    Owner owner([](Rank_file&) {});
    name = owner.name;
    CHECK(exists(name));
    owner.kill();  // another job that starts on this machine may remove it before this test does
  }
  // Of another library's making, or at its very beginning: not ours to judge.
  char strange_name[64];
  std::snprintf(strange_name, sizeof strange_name, "gccl-%032x", unsigned(::getpid()));
  const std::string strange = strange_name;
  const int fd = ::open(path_of(strange).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  REQUIRE(fd >= 0);
  ::close(fd);
  std::shared_ptr<Rank_file> mine, second;
  REQUIRE(Rank_file::create(&mine).ok());
  REQUIRE(Rank_file::create(&second).ok());
  for (const std::string& name : left) CHECK_FALSE(exists(name));
  CHECK(exists(living.name));
  CHECK(exists(mine->name()));
  CHECK(exists(second->name()));
  CHECK(exists(strange));
  ::unlink(path_of(strange).c_str());
  // The first one's lock is still there after the second has looked around.
  const pid_t child = ::fork();
  if (child == 0) {
    const int file = ::open(path_of(mine->name()).c_str(), O_RDWR);
    struct flock l {};
    l.l_type = F_WRLCK;
    l.l_len = 1;
    ::_exit(::fcntl(file, F_GETLK, &l) == 0 && l.l_type != F_UNLCK && l.l_pid == ::getppid() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}

// A process that opens a neighbour's segment, looks into it, and has it until it is told to let go.
struct Neighbour_process {
  struct Place {
    char name[40];
    std::uint64_t offset, id;
  };
  pid_t pid = -1;
  int to = -1, from = -1;
  Neighbour_process() {
    int there[2], back[2];
    REQUIRE(::pipe2(there, O_CLOEXEC) == 0);
    REQUIRE(::pipe2(back, O_CLOEXEC) == 0);
    pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      ::close(there[1]);
      Place p{};
      if (::read(there[0], &p, sizeof p) != ssize_t(sizeof p)) ::_exit(1);
      std::shared_ptr<Rank_file> file;
      std::shared_ptr<Segment> segment, other;
      const bool good = Rank_file::open(p.name, &file).ok() && Segment::open(file, p.offset, p.id, 20, &segment).ok() &&
                        segment->pipe(4)->chunks[0][0] == std::byte(1) &&
                        !Segment::open(file, p.offset, p.id + 1, 20, &other).ok() &&
                        !Segment::open(file, p.offset + (1 << 26), p.id, 20, &other).ok();
      if (::write(back[1], good ? "y" : "n", 1) != 1) ::_exit(1);
      char wait;
      if (::read(there[0], &wait, 1) < 0) ::_exit(1);
      segment.reset();
      ::_exit(0);
    }
    ::close(there[0]);
    ::close(back[1]);
    to = there[1];
    from = back[0];
  }
  char opens(const Rank_file& file, const Segment& segment) {
    Place p{.name = {}, .offset = segment.offset(), .id = segment.id()};
    std::snprintf(p.name, sizeof p.name, "%s", file.name().c_str());
    REQUIRE(::write(to, &p, sizeof p) == ssize_t(sizeof p));
    char said = 0;
    return ::read(from, &said, 1) == 1 ? said : char(0);
  }
  int let_go() {
    REQUIRE(::write(to, "", 1) == 1);
    ::close(to);
    int status = 0;
    ::waitpid(pid, &status, 0);
    ::close(from);
    return status;
  }
};

TEST_CASE("memory of segments is given back by the last who uses it, and taken again") {
  Neighbour_process neighbours[5];  // before the file: a child would know it as its own
  std::shared_ptr<Rank_file> file;
  REQUIRE(Rank_file::create(&file).ok());
  const auto kib = [&] {
    struct stat st;
    REQUIRE(::fstat(file->descriptor(), &st) == 0);
    return st.st_blocks / 2;
  };
  const auto before = kib();
  std::uint64_t furthest = 0;
  for (Neighbour_process& neighbour : neighbours) {
    std::shared_ptr<Segment> mine, next;
    REQUIRE(Segment::create(file, 20, &mine).ok());
    CHECK(kib() - before < 16);  // header and controls alone
    CHECK(mine->reserve_pipe(3, kReservedBeginnings) == 0);
    CHECK(mine->reserve_pipe(4, kReservedChunks) == 0);
    CHECK(kib() - before > 256);
    mine->pipe(4)->cells[0].sequence = 5;
    mine->pipe(4)->chunks[0][0] = std::byte(1);
    CHECK(neighbour.opens(*file, *mine) == 'y');
    const std::uint64_t offset = mine->offset();
    mine.reset();
    CHECK(kib() - before > 256);  // the neighbour still reads
    REQUIRE(Segment::create(file, 20, &next).ok());
    CHECK(next->offset() != offset);
    next.reset();
    CHECK(neighbour.let_go() == 0);
    CHECK(kib() == before);
    REQUIRE(Segment::create(file, 20, &next).ok());
    REQUIRE(next->reserve_pipe(4, kReservedChunks) == 0);
    CHECK(next->pipe(4)->cells[0].sequence == 0);
    CHECK(next->pipe(4)->chunks[0][0] == std::byte(0));
    furthest = std::max(furthest, next->offset());
  }
  CHECK(furthest <= 2 * (std::uint64_t(20) * sizeof(Pipe) + (1 << 20)));  // the file does not grow
}

}  // namespace
