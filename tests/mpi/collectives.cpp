// Every algorithm on real elements over the backend "mpi". Run under mpirun; every rank runs the same cases in the same
// order, and no failure skips a call, so that ranks never wait for one that gave up. With GCCL_TEST_MPI_THREADS set to
// "serialized" or "multiple" MPI is initialised for several threads.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <malloc.h>
#include <mpi.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>

#include "cli/bench/job.hpp"
#include "libgccl/communicator/world.hpp"
#include "libgccl/transports/plugin.hpp"
#include "tests/mpi/expected.hpp"

namespace gccl::test {
namespace {

constexpr std::size_t kGuard = 64;  // bytes around each buffer that nobody may touch
constexpr unsigned char kPoison = 0xa5;

using bench::Job;

std::unique_ptr<Job> world;
bool threads = false;

// All ranks of `parent` over MPI.
GCCL_Config config_of(MPI_Comm* parent) {
  GCCL_Config config = GCCL_CONFIG_INIT;
  MPI_Comm_rank(*parent, &config.rank);
  MPI_Comm_size(*parent, &config.size);
  config.backends = "mpi";
  config.progress_thread = 0;
  config.allgather_context = parent;
  config.allgather = [](const void* mine, void* all, size_t bytes, void* comm) {
    return MPI_Allgather(mine, int(bytes), MPI_BYTE, all, int(bytes), MPI_BYTE, *static_cast<MPI_Comm*>(comm));
  };
  return config;
}

std::unique_ptr<Job> meet(MPI_Comm parent) {
  std::unique_ptr<Job> job;
  const Status s = Job::meet(config_of(&parent), "the test", &job);
  if (!s.ok()) MESSAGE(s.text());
  return job;
}

View view_of(const Job& job) { return job.layout().view(job.rank()); }

struct Case {
  const Algorithm* algorithm;
  Call call;
  Dtype dtype = Dtype::i32;
  Reduction op = Reduction::sum;
  Slicing slicing{};

  std::string text() const {
    return std::string(name(call.kind)) + " " + std::string(algorithm->name) + " count " + std::to_string(call.count) +
           " root " + std::to_string(call.root) + (call.in_place ? " in place " : " out of place ") +
           std::string(name(dtype)) + " " + std::string(name(op)) + " shares " + std::to_string(slicing.shares) +
           " lanes " + std::to_string(slicing.lanes) + " window " + std::to_string(slicing.window);
  }
};

struct Guarded {
  Bytes bytes;
  explicit Guarded(std::size_t n) : bytes(n + 2 * kGuard, kPoison) {}
  unsigned char* data() { return bytes.data() + kGuard; }
  bool guards_hold() const {
    for (std::size_t i = 0; i < kGuard; ++i)
      if (bytes[i] != kPoison || bytes[bytes.size() - 1 - i] != kPoison) return false;
    return true;
  }
};

// What this rank gives and gets. The algorithms of a collective are tried one after the other on the same call: it is
// worked out for the first of them.
const std::pair<Bytes, Bytes>& given_and_due(const Case& k, Rank n, Rank r) {
  const auto key = std::tuple(k.call.kind, k.call.count, k.call.root, k.call.in_place, k.call.counts,
                              k.call.table ? *static_cast<const Count*>(k.call.table) : Count(0), k.dtype, k.op, n, r);
  static std::optional<std::remove_const_t<decltype(key)>> last;
  static std::pair<Bytes, Bytes> bytes;
  if (last != key) {
    bytes = {input_bytes(k.call, k.dtype, k.op, n, r), expected_bytes(k.call, k.dtype, k.op, n, r)};
    last = key;
  }
  return bytes;
}

// Empty when this rank's part of the call went as it must.
std::string fault(Job& comm, const Case& k) {
  const Rank n = comm.ranks(), r = comm.rank();
  const std::size_t each = size_of(k.dtype);
  const auto& [given, due] = given_and_due(k, n, r);
  Guarded input(input_count(k.call, n, r) * each), output(output_count(k.call, n, r) * each);
  const Region from = input_of(k.call, n, r), to = output_of(k.call, n, r);
  const auto at = [&](const Region& x) {
    return (x.buffer() == Buffer::input ? input : output).data() + x.offset() * each;
  };
  if (from.count * each != given.size() || to.count * each != due.size())
    return "the call's sizes are not the oracle's";
  std::copy(given.begin(), given.end(), at(from));
  const Bytes input_before = input.bytes;

  const Status s = comm.run(k.algorithm, k.call, k.dtype, k.op, input.data(), output.data(), k.slicing);
  if (!s.ok()) return s.text();
  if (!output.guards_hold()) return "it wrote beside the output";
  if (input.bytes != input_before) return "it changed the input";
  for (std::size_t i = 0; i < due.size(); ++i)
    if (at(to)[i] != due[i]) return "element " + std::to_string(i / each) + " is wrong";
  return {};
}

bool check(Job& comm, const Case& k) {
  const std::string f = fault(comm, k);
  if (!f.empty()) MESSAGE("rank ", comm.rank(), " of ", comm.ranks(), ": ", k.text(), ": ", f);
  return f.empty();
}

// Counts of blocks of different lengths, with zeros; in place alltoallv's must be symmetric.
Count skewed(const void* base, Rank from, Rank to) {
  return *static_cast<const Count*>(base) * ((from * 3 + to) % 4) / 2;
}
Count symmetric(const void* base, Rank from, Rank to) { return skewed(base, std::min(from, to), std::max(from, to)); }
CountOf counts_for(bool in_place) { return in_place ? symmetric : skewed; }

bool fits(const Case& k) { return k.algorithm->can(k.call, view_of(*world)); }

Slicing slicing_of(unsigned choice) {
  constexpr Slicing kChoices[] = {{1, 1, 8}, {2, 2, 2}, {3, 2, 2}, {5, 3, 8}, {4, 8, 32}};
  return kChoices[choice % std::size(kChoices)];
}

// Fewer cases where each takes longer (more ranks than cores) or where a near relative has had it.
bool sampled(const Algorithm& a, unsigned turn) {
  const unsigned one_in = (world->ranks() > 4 ? 3 : 1) * (a.variant ? 4 : 1);
  return hash_of(turn, 1, 2) % one_in == 0;
}

TEST_CASE("every algorithm leaves the right elements for every count, root and placement") {
  const Rank n = world->ranks();
  unsigned turn = 0;
  for (const Algorithm& a : algorithms()) {
    unsigned wrong = 0;
    for (Count count : {Count(0), Count(1), Count(3), Count(n), Count(n + 1), Count(1500)}) {
      if (a.kind == Collective::barrier && count) continue;
      for (Rank root : {Rank(0), Rank(n / 2), Rank(n - 1)}) {
        if (!has_root(a.kind) && root) continue;
        for (bool in_place : {false, true}) {
          const std::size_t types = dtypes().size();
          for (unsigned choice = 0; choice < 2; ++choice, ++turn) {
            const Call call{a.kind, count, root, in_place, counts_for(in_place), &count};
            const Case k{&a, call, dtypes()[(turn * 7 + turn / types) % types], Reduction(turn % 5),
                         slicing_of(turn / 2)};
            if (sampled(a, turn) && fits(k)) wrong += !check(*world, k);
          }
        }
      }
    }
    CHECK_MESSAGE(wrong == 0, name(a.kind), " ", a.name);
  }
}

TEST_CASE("every data type and operation is reduced exactly") {
  for (const Algorithm& a : algorithms()) {
    if (!reduces(a.kind) || a.variant) continue;
    unsigned wrong = 0;
    for (Dtype dtype : dtypes())
      for (unsigned op = 0; op < 5; ++op) {
        const Count count = 29;
        const Call call{a.kind, count, world->ranks() - 1, op % 2 == 1, skewed, &count};
        const Case k{&a, call, dtype, Reduction(op)};
        if (fits(k)) wrong += !check(*world, k);
      }
    CHECK_MESSAGE(wrong == 0, name(a.kind), " ", a.name);
  }
}

TEST_CASE("every data type is moved exactly") {
  for (const Algorithm& a : algorithms()) {
    if (reduces(a.kind) || a.variant) continue;
    unsigned wrong = 0;
    const Count base = 11;
    for (Dtype dtype : dtypes()) {
      const Case k{&a, Call{a.kind, base, 0, false, skewed, &base}, dtype};
      if (fits(k)) wrong += !check(*world, k);
    }
    CHECK_MESSAGE(wrong == 0, name(a.kind), " ", a.name);
  }
}

TEST_CASE("algorithms that look at nodes serve any placement of the ranks") {
  const Rank n = world->ranks();
  const std::unique_ptr<Job> comm = meet(MPI_COMM_WORLD);
  REQUIRE(comm);
  std::vector<Rank> scattered(n);
  for (Rank r = 0; r < n; ++r) scattered[r] = hash_of(r, n, 5) % 3;
  for (const Layout& layout : {Layout::regular(n, 2), Layout::regular(n, 3), Layout::of(scattered)}) {
    comm->use_layout(layout);
    for (const Algorithm& a : algorithms()) {
      if (a.name.find("hierarchical") == a.name.npos && a.name.find("torus") == a.name.npos) continue;
      unsigned wrong = 0;
      for (Count count : {Count(1), Count(50)})
        for (bool in_place : {false, true}) {
          const Case k{&a, Call{a.kind, count, n - 1, in_place, counts_for(in_place), &count}, Dtype::f32,
                       Reduction::avg, slicing_of(unsigned(count) + in_place)};
          if (a.can(k.call, view_of(*comm))) wrong += !check(*comm, k);
        }
      CHECK_MESSAGE(wrong == 0, name(a.kind), " ", a.name);
    }
  }
}

TEST_CASE("messages beyond the eager limit reduce and move right") {
  for (const Algorithm& a : algorithms()) {
    if (a.variant) continue;
    const Count count = 40000;
    const Case k{&a, Call{a.kind, count, 0, false, skewed, &count}, Dtype::bf16, Reduction::max, slicing_of(2)};
    if (fits(k)) CHECK(check(*world, k));
  }
}

TEST_CASE("long messages travel in fragments, more of them than are posted at a time") {
  // 5 MiB and some, so that the last fragment is short; and one byte more than the first part holds.
  for (const auto& [kind, algorithm, count] : {std::tuple{Collective::broadcast, "binomial", Count(1311111)},
                                               {Collective::allreduce, "recursive_doubling", 1311111},
                                               {Collective::broadcast, "chain", 2049},
                                               {Collective::reduce, "chain", 2049}}) {
    const Case k{find_algorithm(kind, algorithm), Call{kind, count}, Dtype::f32, Reduction::sum, {3, 2, 4}};
    CHECK(check(*world, k));
    CHECK(check(*world, {k.algorithm, k.call, Dtype::i32, Reduction::max}));
  }
}

TEST_CASE("communicators over some of the ranks, and more than one at a time") {
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, int(world->rank()) % 2, -int(world->rank()), &half);
  std::unique_ptr<Job> comm = meet(half);
  REQUIRE(comm);
  const Algorithm* ring = find_algorithm(Collective::allreduce, "ring");
  for (Count count = 0; count < 40; count += 3) {
    CHECK(check(*comm, {ring, Call{Collective::allreduce, count}, Dtype::f64}));
    CHECK(check(*world, {ring, Call{Collective::allreduce, count + 1}, Dtype::f16}));
  }
  comm.reset();
  MPI_Comm_free(&half);
}

TEST_CASE("shared memory first, MPI where it does not reach") {
  MPI_Comm parent = MPI_COMM_WORLD;
  GCCL_Config config = config_of(&parent);
  config.backends = "shm,mpi";
  std::unique_ptr<Job> comm;
  REQUIRE(Job::meet(config, "the test", &comm).ok());
  CHECK(check(*comm, {find_algorithm(Collective::allreduce, "ring"), Call{Collective::allreduce, 100}}));
}

// How the call ends, which fails on some rank. A rank whose peers agree hears of it later: it calls again, ten seconds
// long.
Status until_heard(const std::function<Status()>& call) {
  Status s = call();
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
       s.ok() && std::chrono::steady_clock::now() < end;)
    s = call();
  return s;
}

TEST_CASE("calls that differ between ranks are an error on all of them, short or long") {
  if (world->ranks() < 2) return;
  const Algorithm* direct = find_algorithm(Collective::sendrecv, "direct");
  for (const Count count : {Count(5), Count(3000), Count(700000)}) {
    const std::unique_ptr<Job> comm = meet(MPI_COMM_WORLD);
    REQUIRE(comm);
    // Rank 1 gets less than it expects, in messages of their own length: nothing in MPI itself would object.
    const Count mine = comm->rank() == 1 ? count + 4 : count;
    std::vector<std::int64_t> in(mine), out(mine);
    const auto call = [&] {
      return comm->run(direct, Call{Collective::sendrecv, mine}, Dtype::i64, Reduction::sum, in.data(), out.data(), {});
    };
    const Status s = until_heard(call);
    CHECK_MESSAGE(s.text().find("sendrecv") != std::string::npos, s.text());
    CHECK(call().text() == s.text());
  }
}

TEST_CASE("a long message where short ones are due touches nothing but its own memory") {
  const std::unique_ptr<Job> comm = meet(MPI_COMM_WORLD);
  REQUIRE(comm);
  if (comm->ranks() < 2) return;
  // Rank 0's chunks are short and several are awaited at a time; rank 1's one message is long.
  const Algorithm* direct = find_algorithm(Collective::sendrecv, "direct");
  const Count count = comm->rank() == 0 ? 64 : 200000;
  std::vector<std::int64_t> in(count), out(count);
  const Slicing slicing = comm->rank() == 0 ? Slicing{8, 1, 8} : Slicing{1, 1, 8};
  CHECK(!until_heard([&] {
           return comm->run(direct, Call{Collective::sendrecv, count}, Dtype::i64, Reduction::sum, in.data(),
                            out.data(), slicing);
         }).ok());
}

TEST_CASE("a rank that gives up ends the others' calls") {
  MPI_Comm parent = MPI_COMM_WORLD;
  const GCCL_Config config = config_of(&parent);
  std::unique_ptr<CommunicatorCore> comm;
  REQUIRE(create_world(&config, -1, &comm).ok());
  Work w;
  w.what.kind = std::uint8_t(Collective::barrier);
  w.call.kind = Collective::barrier;
  if (comm->rank() == 0) comm->abort(7);
  const Status s = comm->run(std::move(w));
  CHECK(s.code() == GCCL_ERR_ABORTED);
  CHECK_MESSAGE(s.text().find("rank 0 with code 7") != std::string::npos, s.text());
}

TEST_CASE("an abort by a thread that does not use MPI is reported by the thread that does, on any communicator") {
  MPI_Comm parent = MPI_COMM_WORLD;
  GCCL_Config config = config_of(&parent);
  config.timeout_ms = 20000;
  std::unique_ptr<CommunicatorCore> aborted, other;
  REQUIRE(create_world(&config, -1, &aborted).ok());
  REQUIRE(create_world(&config, -1, &other).ok());
  const auto barrier = [](CommunicatorCore& c) {
    Work w;
    w.what.kind = std::uint8_t(Collective::barrier);
    w.call.kind = Collective::barrier;
    return c.run(std::move(w));
  };
  if (aborted->rank() == 0) std::thread([&] { aborted->abort(7); }).join();
  // Rank 0 is only in the second barrier, and the others come to it once they have heard.
  if (aborted->rank() != 0) CHECK(barrier(*aborted).code() == GCCL_ERR_ABORTED);
  const Status s = barrier(*other);
  CHECK_MESSAGE(s.ok(), s.text());
}

TEST_CASE("a receive that comes after its send was cancelled reads nothing of the sender's memory") {
  const Rank n = world->ranks(), r = world->rank();
  if (n < 2) return;
  const GCCL_Backend* backend = nullptr;
  void *library = nullptr, *instance = nullptr, *port = nullptr;
  REQUIRE(load_plugin("mpi", "", &backend, &library).ok());
  char text[GCCL_BACKEND_TEXT_BYTES] = "";
  GCCL_Backend_environment environment{};
  environment.struct_bytes = sizeof environment;
  environment.rank = std::uint32_t(r);
  environment.size = std::uint32_t(n);
  environment.host = environment.secret = environment.address = "";
  environment.log = [](int, const char*) {};
  GCCL_Port_spec spec{};
  spec.struct_bytes = sizeof spec;
  spec.rank = std::uint32_t(r);
  spec.size = std::uint32_t(n);
  spec.channels = 1;
  spec.communicator = 4242;
  std::vector<std::uint32_t> node(n, 0), world_rank(n);
  std::iota(world_rank.begin(), world_rank.end(), 0u);
  spec.node = node.data();
  spec.world_rank = world_rank.data();
  Bytes mine(GCCL_BACKEND_ADDRESS_BYTES), all(mine.size() * n);
  std::vector<std::uint8_t> reaches(n);
  REQUIRE(backend->open(&environment, &instance, text) == GCCL_SUCCESS);
  REQUIRE(backend->open_port(instance, &spec, &port, mine.data(), text) == GCCL_SUCCESS);
  MPI_Allgather(mine.data(), int(mine.size()), MPI_BYTE, all.data(), int(mine.size()), MPI_BYTE, MPI_COMM_WORLD);
  REQUIRE(backend->connect_port(port, &spec, all.data(), reaches.data(), text) == GCCL_SUCCESS);

  // Where the receive reads nevertheless, rank 1 crashes in the second barrier.
  GCCL_Transfer t{};
  t.bytes = 3000000;
  t.signature = 7;
  t.grain = 1;
  t.peer = 1 - std::uint32_t(r);
  GCCL_Transfer* done[1];
  t.data = mmap(nullptr, t.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(t.data != MAP_FAILED);
  const auto* const data = static_cast<const unsigned char*>(t.data);
  if (r == 1) {
    std::fill_n(static_cast<unsigned char*>(t.data), t.bytes, kPoison);
    CHECK(backend->send(port, &t) == 0);
    CHECK(backend->poll(port, done, 1) == 0);
    backend->cancel(port, &t);
    munmap(t.data, t.bytes);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (r == 0) {
    CHECK(backend->receive(port, &t) == 0);
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(30);
         std::chrono::steady_clock::now() < end;)
      CHECK(backend->poll(port, done, 1) == 0);
    CHECK(std::all_of(data, data + t.bytes, [](unsigned char x) { return x == 0; }));
    backend->cancel(port, &t);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (r != 1) munmap(t.data, t.bytes);
  backend->close_port(port);
  backend->close(instance);
}

// The others come late: the messages that rank 0 could send until then take 32 MiB.
TEST_CASE("a rank that runs ahead of the others takes little memory") {
  const std::unique_ptr<Job> comm = meet(MPI_COMM_WORLD);
  REQUIRE(comm);
  if (comm->ranks() < 2) return;
  const Algorithm* chain = find_algorithm(Collective::broadcast, "chain");
  constexpr int kCalls = 4000;
  constexpr Count kCount = 2000;  // of 4 bytes: they go with the first part
  std::vector<std::int32_t> data(kCount), out(kCount);
  std::size_t most = 0;
  int wrong = 0;
  const std::size_t before = mallinfo2().uordblks;
  if (comm->rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  for (int i = 0; i < kCalls; ++i) {
    if (comm->rank() == 0) std::fill(data.begin(), data.end(), i);
    wrong +=
        !comm->run(chain, Call{Collective::broadcast, kCount}, Dtype::i32, Reduction::sum, data.data(), out.data(), {})
             .ok();
    wrong += comm->rank() != 0 && (out.front() != i || out.back() != i);
    most = std::max(most, mallinfo2().uordblks);
  }
  CHECK(wrong == 0);
  CHECK(most - before < (8u << 20));
}

TEST_CASE("a second thread works where MPI lets it, and is refused where not") {
  const std::unique_ptr<Job> comm = meet(MPI_COMM_WORLD);
  REQUIRE(comm);
  if (comm->ranks() < 2) return;
  const Algorithm* ring = find_algorithm(Collective::allreduce, "ring");
  const Call call{Collective::allreduce, 4};
  std::int32_t in[4] = {1, 2, 3, 4}, out[4] = {};
  Status s;
  std::thread([&] { s = comm->run(ring, call, Dtype::i32, Reduction::sum, in, out, {}); }).join();
  if (threads) {
    CHECK_MESSAGE(s.ok(), s.text());
    CHECK(out[3] == 4 * std::int32_t(comm->ranks()));
  } else {
    CHECK_MESSAGE(s.text().find("MPI_THREAD_SERIALIZED") != std::string::npos, s.text());
  }
}

}  // namespace
}  // namespace gccl::test

int main(int argc, char** argv) {
  const char* const wanted = std::getenv("GCCL_TEST_MPI_THREADS");
  int rank = 0, level = 0;
  MPI_Init_thread(&argc, &argv,
                  !wanted            ? MPI_THREAD_FUNNELED
                  : wanted[0] == 's' ? MPI_THREAD_SERIALIZED
                                     : MPI_THREAD_MULTIPLE,
                  &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  gccl::test::threads = level >= MPI_THREAD_SERIALIZED;
  int failed = 1;
  if ((gccl::test::world = gccl::test::meet(MPI_COMM_WORLD))) {
    doctest::Context context(argc, argv);
    if (rank != 0) context.setOption("minimal", true);  // one summary is enough; failures show from everywhere
    failed = context.run();
    gccl::test::world.reset();
  }
  MPI_Finalize();
  return failed;
}
