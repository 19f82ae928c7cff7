// Where shared memory is scarce pipes make do with less of it, and messages are the same.
#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/base/splitmix.hpp"
#include "libgccl/schedule/layout.hpp"
#include "libgccl/transports/shm/pipe_program.hpp"
#include "tests/shm/memory_left.hpp"
#include "tests/shm/ports.hpp"

using namespace gccl;
using namespace gccl::shm;
using namespace gccl::test;

namespace {

// So much is left while it lives.
struct Left {
  explicit Left(int thousandths) { thousandths_left = thousandths; }
  ~Left() { thousandths_left = 1000; }
};

// Memory is read by nobody but its process, so that long messages go through chunks.
struct WithoutFetching {
  WithoutFetching() { ::setenv("GCCL_SHM_ZERO_COPY", "0", 1); }
  ~WithoutFetching() { ::unsetenv("GCCL_SHM_ZERO_COPY"); }
};

constexpr int kPlenty = 1000, kLessThanHalf = 300, kLessThanAnEighth = 100;

Reserved reserved(TwoRanks& two) { return two.port[0]->end(1, 0, false)->writer.reserved(); }

void exchange(TwoRanks& two, std::size_t bytes, std::uint64_t seed) {
  CAPTURE(bytes);
  CAPTURE(seed);
  splitmix::Generator random(seed);
  std::vector<std::byte> data(bytes), in(bytes, std::byte(77));
  for (std::byte& b : data) b = std::byte(random.next());
  GCCL_Transfer sent = transfer(1, data.data(), bytes), received = transfer(0, in.data(), bytes);
  GCCL_Transfer* done[4];
  bool is_sent = two.port[0]->send(&sent) == 1, is_received = two.port[1]->receive(&received) == 1;
  for (int polls = 0; !is_sent || !is_received; ++polls) {
    REQUIRE(polls < 1000);
    if (!is_sent) is_sent = two.port[0]->poll(done, 4) == 1;
    if (!is_received) is_received = two.port[1]->poll(done, 4) == 1;
  }
  REQUIRE(received.result == GCCL_SUCCESS);
  REQUIRE(data == in);
}

}  // namespace

TEST_CASE("messages of any length pass through whatever there is of a pipe, also while it grows") {
  const WithoutFetching alone;
  for (const int left : {kPlenty, kLessThanHalf, kLessThanAnEighth}) {
    CAPTURE(left);
    const Left now(left);
    TwoRanks two;
    for (const std::size_t bytes :
         {0, 8, 48, 49, 4095, 4096, 4097, 8192, 8193, 12288, 20000, 32767, 32768, 32769, 100001, 1000000})
      for (std::uint64_t seed = 1; seed <= 3; ++seed) exchange(two, bytes, seed);
    CHECK(reserved(two) == (left == kPlenty         ? kReservedChunks
                            : left == kLessThanHalf ? kReservedAllBeginnings
                                                    : kReservedOneBeginning));
    for (const int later : {kLessThanHalf, kPlenty}) {  // it is looked for in time
      thousandths_left = std::max(left, later);
      for (std::uint64_t seed = 0; seed < 100; ++seed) exchange(two, 5000 + seed * 100, seed);
    }
    CHECK(reserved(two) == kReservedChunks);
  }
}

TEST_CASE("where less than half of shared memory is left, all pipes of 8 ranks take 3 MB; of an eighth, one") {
  constexpr Rank n = 8;
  for (const int left : {kLessThanHalf, kLessThanAnEighth}) {
    CAPTURE(left);
    const Left now(left);
    Ranks ranks(n);
    std::vector<std::byte> data(20000);
    std::vector<GCCL_Transfer> sent;
    sent.reserve(n * n);
    for (Rank r = 0; r < n; ++r)
      for (Rank to = 0; to < n; ++to)
        if (to != r) ranks.port[r]->send(&sent.emplace_back(transfer(to, data.data(), data.size())));
    std::uint64_t bytes = 0;
    for (Rank r = 0; r < n; ++r) {
      std::shared_ptr<RankFile> file;
      REQUIRE(ranks.instance[r].files.mine(&file).ok());
      struct stat st;
      REQUIRE(::fstat(file->descriptor(), &st) == 0);
      bytes += std::uint64_t(st.st_blocks) * 512;
    }
    CHECK(bytes < (left == kLessThanHalf ? 3'000'000 : 1'100'000));
  }
}

TEST_CASE("schedules are compiled as far as their messages fit into what there is, and run the same") {
  constexpr Rank n = 4;
  const std::vector<Rank> nodes(n);
  const Layout layout = Layout::of(nodes);
  for (const int left : {kPlenty, kLessThanHalf, kLessThanAnEighth})
    for (const Collective kind : {Collective::broadcast, Collective::alltoall})
      for (const Count bytes : {Count(40), Count(4096), Count(4097), Count(32767)}) {
        CAPTURE(left);
        CAPTURE(int(kind));
        CAPTURE(bytes);
        const Left now(left);
        Ranks ranks(n);
        const Call call{.kind = kind, .count = bytes};
        const Algorithm* const algorithm = find_algorithm(kind, kind == Collective::broadcast ? "direct" : "pairwise");
        REQUIRE(algorithm);
        std::unique_ptr<PipeProgram> program[n];
        for (Rank r = 0; r < n; ++r)
          program[r] = PipeProgram::compile(algorithm->make(call, layout.view(r), Share{}), 1, ranks.port[r].get());
        const bool fits = left != kLessThanAnEighth || bytes <= 4096;
        for (Rank r = 0; r < n; ++r)  // a broadcast's receivers need none
          REQUIRE((program[r] != nullptr) == (fits || (kind == Collective::broadcast && r != 0)));
        if (!fits) continue;
        Elements elements;
        for (int round = 0; round < 20; ++round) {
          std::vector<std::vector<std::byte>> in(n), out(n);
          std::vector<Replay> replay(n);
          for (Rank r = 0; r < n; ++r) {
            in[r].assign(kind == Collective::alltoall ? n * bytes : bytes, std::byte(0));
            for (std::size_t i = 0; i < in[r].size(); ++i) in[r][i] = std::byte(round + 7 * r + 31 * (i / bytes) + i);
            out[r].assign(in[r].size(), std::byte(200));
            if (kind == Collective::broadcast && r == 0) out[r] = in[r];
            replay[r].begin(*program[r], Buffers{{nullptr, in[r].data(), out[r].data(), nullptr}}, elements, 42);
          }
          std::vector<bool> over(n);
          for (int turns = 0; std::ranges::count(over, true) < n; ++turns) {
            REQUIRE(turns < 100);
            for (Rank r = 0; r < n; ++r)
              if (!over[r]) over[r] = replay[r].advance() == Program::Outcome::done;
          }
          for (Rank r = 0; r < n; ++r)
            for (std::size_t i = 0; i < out[r].size(); ++i) {
              const bool all = kind == Collective::alltoall;
              const std::byte right = all ? in[i / bytes][r * bytes + i % bytes] : in[0][i];
              if (out[r][i] != right) FAIL("rank " << r << ", byte " << i << ", round " << round);
            }
        }
      }
}

TEST_CASE("a communicator that comes where shared memory is scarce has what it cannot do without, or is not served") {
  std::vector<std::uint32_t> node(3), world_rank{0, 1, 2};
  const GCCL_Port_spec spec{.struct_bytes = sizeof(GCCL_Port_spec),
                            .rank = 1,
                            .size = 3,
                            .channels = 2,
                            .communicator = 1,
                            .node = node.data(),
                            .world_rank = world_rank.data(),
                            .connect_timeout_ms = 0};
  Instance instance(process_environment());
  std::vector<std::byte> address(GCCL_BACKEND_ADDRESS_BYTES);
  std::unique_ptr<Port> port;
  const Left now(kLessThanHalf);
  int granted = 0;
  for (;; ++granted) {
    REQUIRE(granted < 100);
    reservations_left = granted;
    const Status s = Port::open(instance, spec, &port, address.data());
    reservations_left = -1;
    if (s.ok()) break;
    CHECK_MESSAGE(has(s.text(), "No space left on device"), s.text());
    CHECK(s.code() == GCCL_ERR_SYSTEM);
  }
  // The file's mark and the segment; cells and the beginning of a chunk for two ranks on two channels.
  CHECK(granted == 2 + 2 * 2 * 2);
  port.reset();
  TwoRanks two;
  memory_is_full = true;
  exchange(two, 100000, 1);
  memory_is_full = false;
}

TEST_CASE("what communicators may still take of the least is promised, and theirs no more when they have it or end") {
  for (const std::uint32_t channels : {1u, 2u, 5u}) {
    CAPTURE(channels);
    std::vector<std::uint32_t> node(2), world_rank{0, 1};
    Instance instance[2]{Instance(process_environment()), Instance(process_environment())};
    GCCL_Port_spec spec{.struct_bytes = sizeof(GCCL_Port_spec),
                        .rank = 0,
                        .size = 2,
                        .channels = channels,
                        .communicator = 1,
                        .node = node.data(),
                        .world_rank = world_rank.data(),
                        .connect_timeout_ms = 0};
    std::vector<std::byte> addresses(2 * GCCL_BACKEND_ADDRESS_BYTES);
    std::unique_ptr<Port> port[2];
    const auto promised = [&](Rank r) {
      std::shared_ptr<RankFile> file;
      REQUIRE(instance[r].files.mine(&file).ok());
      return file->promised.load();
    };
    for (spec.rank = 0; spec.rank < 2; ++spec.rank)
      REQUIRE(Port::open(instance[spec.rank], spec, &port[spec.rank],
                         addresses.data() + spec.rank * GCCL_BACKEND_ADDRESS_BYTES)
                  .ok());
    for (spec.rank = 0; spec.rank < 2; ++spec.rank) {
      std::uint8_t reaches[2] = {};
      REQUIRE(port[spec.rank]->connect(spec, addresses.data(), reaches).ok());
    }
    const std::uint32_t kinds = channels == 1 ? 1 : 2;  // the first channel, and the last one
    CHECK(promised(0) == kinds * 8192);
    for (std::uint32_t c = 0; c < channels; ++c) {
      REQUIRE(port[0]->reserve(*port[0]->end(1, c, false), kReservedOneBeginning));
      REQUIRE(port[0]->reserve(*port[0]->end(1, c, false), kReservedChunks));
    }
    CHECK(promised(0) == 0);
    CHECK(promised(1) == kinds * 8192);
    port[1].reset();
    CHECK(promised(1) == 0);
  }
}
