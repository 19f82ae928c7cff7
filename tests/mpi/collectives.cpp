// Every algorithm on real elements over MPI. Run under mpirun; every rank runs the same cases in the same order, and no
// failure skips a call, so that ranks never wait for one that gave up.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "libgccl/transports/mpi/mpi_communicator.hpp"
#include "tests/mpi/expected.hpp"

namespace gccl::test {
namespace {

constexpr std::size_t kGuard = 64;  // bytes around each buffer that nobody may touch
constexpr unsigned char kPoison = 0xa5;

std::unique_ptr<MpiCommunicator> world;

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

// Empty when this rank's part of the call went as it must.
std::string fault(MpiCommunicator& comm, const Case& k) {
  const Rank n = comm.size(), r = comm.rank();
  const std::size_t each = size_of(k.dtype);
  const Bytes given = input_bytes(k.call, k.dtype, k.op, n, r), due = expected_bytes(k.call, k.dtype, k.op, n, r);
  Guarded input(input_count(k.call, n, r) * each), output(output_count(k.call, n, r) * each);
  const Region from = input_of(k.call, n, r), to = output_of(k.call, n, r);
  const auto at = [&](const Region& x) {
    return (x.buffer == Buffer::input ? input : output).data() + x.offset * each;
  };
  if (from.count * each != given.size() || to.count * each != due.size())
    return "the call's sizes are not the oracle's";
  std::copy(given.begin(), given.end(), at(from));
  const Bytes input_before = input.bytes;

  const Status s = comm.run(*k.algorithm, k.call, k.dtype, k.op, input.data(), output.data(), k.slicing);
  if (!s.ok()) return s.text();
  if (!output.guards_hold()) return "it wrote beside the output";
  if (input.bytes != input_before) return "it changed the input";
  for (std::size_t i = 0; i < due.size(); ++i)
    if (at(to)[i] != due[i]) return "element " + std::to_string(i / each) + " is wrong";
  return {};
}

bool check(MpiCommunicator& comm, const Case& k) {
  const std::string f = fault(comm, k);
  if (!f.empty()) MESSAGE("rank ", comm.rank(), " of ", comm.size(), ": ", k.text(), ": ", f);
  return f.empty();
}

// Counts of blocks of unlike length, with zeros; in place alltoallv's must be symmetric.
Count skewed(const void* base, Rank from, Rank to) {
  return *static_cast<const Count*>(base) * ((from * 3 + to) % 4) / 2;
}
Count symmetric(const void* base, Rank from, Rank to) { return skewed(base, std::min(from, to), std::max(from, to)); }
CountOf counts_for(bool in_place) { return in_place ? symmetric : skewed; }

bool fits(const Case& k) { return k.algorithm->can(k.call, world->view()); }

Slicing slicing_of(unsigned choice) {
  constexpr Slicing kChoices[] = {{1, 1, 8}, {2, 2, 2}, {3, 2, 2}, {5, 3, 8}, {4, 8, 32}};
  return kChoices[choice % std::size(kChoices)];
}

// Fewer cases where each takes longer (more ranks than cores) or where a near relative has had it.
bool sampled(const Algorithm& a, unsigned turn) {
  const unsigned one_in = (world->size() > 4 ? 3 : 1) * (a.variant ? 4 : 1);
  return mix(turn, 1, 2) % one_in == 0;
}

TEST_CASE("every algorithm leaves the right elements for every count, root and placement") {
  const Rank n = world->size();
  unsigned turn = 0;
  for (const Algorithm& a : algorithms()) {
    unsigned wrong = 0;
    for (Count count : {Count(0), Count(1), Count(2), Count(3), Count(n), Count(n + 1), Count(97), Count(1500)}) {
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
        const Call call{a.kind, count, world->size() - 1, op % 2 == 1, skewed, &count};
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
  const Rank n = world->size();
  std::unique_ptr<MpiCommunicator> comm;
  REQUIRE(MpiCommunicator::create(MPI_COMM_WORLD, &comm).ok());
  std::vector<Rank> scattered(n);
  for (Rank r = 0; r < n; ++r) scattered[r] = mix(r, n, 5) % 3;
  for (const Layout& layout : {Layout::regular(n, 2), Layout::regular(n, 3), Layout::of(scattered)}) {
    comm->use_layout(layout);
    for (const Algorithm& a : algorithms()) {
      if (a.name.find("hierarchical") == a.name.npos && a.name.find("torus") == a.name.npos) continue;
      unsigned wrong = 0;
      for (Count count : {Count(1), Count(50)})
        for (bool in_place : {false, true}) {
          const Case k{&a, Call{a.kind, count, n - 1, in_place, counts_for(in_place), &count}, Dtype::f32,
                       Reduction::avg, slicing_of(unsigned(count) + in_place)};
          if (a.can(k.call, comm->view())) wrong += !check(*comm, k);
        }
      CHECK_MESSAGE(wrong == 0, name(a.kind), " ", a.name);
    }
  }
}

TEST_CASE("long messages travel in pieces") {
  std::unique_ptr<MpiCommunicator> comm;
  REQUIRE(MpiCommunicator::create(MPI_COMM_WORLD, &comm).ok());
  for (std::size_t bytes : {std::size_t(1), std::size_t(100), std::size_t(4096)}) {
    comm->use_message_bytes_max(bytes);
    for (const Algorithm& a : algorithms()) {
      if (a.variant) continue;
      const Count count = bytes == 4096 ? 4000 : 37;  // pieces end inside an element, too
      const Case k{&a, Call{a.kind, count, 0, false, skewed, &count}, Dtype::f32, Reduction::sum, slicing_of(1)};
      if (fits(k)) CHECK(check(*comm, k));
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

TEST_CASE("communicators over some of the ranks work side by side") {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  std::unique_ptr<MpiCommunicator> comm;
  REQUIRE(MpiCommunicator::create(half, &comm).ok());
  const Algorithm* ring = find_algorithm(Collective::allreduce, "ring");
  for (Count count = 0; count < 40; count += 3) {
    CHECK(check(*comm, {ring, Call{Collective::allreduce, count}, Dtype::f64}));
    CHECK(check(*world, {ring, Call{Collective::allreduce, count + 1}, Dtype::f16}));
  }
  comm.reset();
  MPI_Comm_free(&half);
}

TEST_CASE("wrong arguments come back as errors and leave the communicator usable") {
  const Algorithm* ring = find_algorithm(Collective::allreduce, "ring");
  const Call good{Collective::allreduce, 4};
  std::int32_t in[4] = {1, 2, 3, 4}, out[4] = {};
  const auto text = [&](const Call& c, const void* i, void* o, Slicing s = {}) {
    return world->run(*ring, c, Dtype::i32, Reduction::sum, i, o, s).text();
  };
  CHECK(text(good, nullptr, out) == "allreduce ring: no input buffer");
  CHECK(text(good, in, nullptr) == "allreduce ring: no output buffer");
  CHECK(text(good, in, in + 3) == "allreduce ring: input and output overlap; set in_place and pass one of them");
  CHECK(text(Call{Collective::allgather, 4}, in, out) == "allgather ring: the algorithm is for allreduce");
  CHECK(text(Call{Collective::allreduce, 4, 99}, in, out).find("root 99 of") != std::string::npos);
  CHECK(text(Call{Collective::allreduce, Count(1) << 63}, in, out) == "allreduce ring: count is too large");
  CHECK(text(good, in, out, {0, 1, 8}) == "allreduce ring: shares and lanes must be at least 1");
  CHECK(text(good, in, out, {1, 0, 8}) == "allreduce ring: shares and lanes must be at least 1");
  CHECK(text(good, in, out, {1, 1, 1}) == "allreduce ring: window must be 2 to 32");
  CHECK(text(good, in, out, {1, 1, 33}) == "allreduce ring: window must be 2 to 32");
  CHECK(text(good, in, out, {Count(1) << 40, Count(1) << 40, 8}).find("more lanes than MPI has tags") !=
        std::string::npos);
  CHECK(text(good, in, out) == "");
  CHECK(out[3] == 4 * std::int32_t(world->size()));
}

TEST_CASE("calls that differ between ranks are an error, not a wrong answer") {
  if (world->size() < 2) return;
  std::unique_ptr<MpiCommunicator> comm;
  REQUIRE(MpiCommunicator::create(MPI_COMM_WORLD, &comm).ok());
  const Algorithm* direct = find_algorithm(Collective::sendrecv, "direct");
  if (!direct) return;
  // Rank 1 gets less than it expects, in a message of its own length: nothing in MPI itself would object.
  const Count count = comm->rank() == 1 ? 9 : 5;
  std::int64_t in[9] = {}, out[9] = {};
  const Status s = comm->run(*direct, Call{Collective::sendrecv, count}, Dtype::i64, Reduction::sum, in, out);
  if (comm->rank() == 1) CHECK(s.text().find("a message of 40 bytes came where 72 were due") == 0);
  if (comm->rank() == 2 % comm->size()) CHECK(s.text().find("MPI_ERR_TRUNCATE") != std::string::npos);
  if (!s.ok())
    CHECK(comm->run(*direct, Call{Collective::sendrecv, 5}, Dtype::i64, Reduction::sum, in, out).text() == s.text());
}

}  // namespace
}  // namespace gccl::test

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int failed = 1;
  if (gccl::test::world = nullptr; gccl::MpiCommunicator::create(MPI_COMM_WORLD, &gccl::test::world).ok()) {
    doctest::Context context(argc, argv);
    if (rank != 0) context.setOption("minimal", true);  // one summary is enough; failures show from everywhere
    failed = context.run();
    gccl::test::world.reset();
  }
  MPI_Finalize();
  return failed;
}
