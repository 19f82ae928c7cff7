// What the C++ interface builds on communicators: streams, groups of parallel jobs, and processes that are several
// ranks.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>

#include "gccl/gccl.hpp"
#include "tests/support/ranks.hpp"

using namespace gccl;

TEST_CASE("streams carry out collectives of several communicators concurrently") {
  CHECK(on_ranks(3, [](int r) {
          const Communicator world = Communicator::init();
          std::vector<Communicator> comms;
          for (int i = 0; i < 4; ++i) comms.push_back(world.split(0));
          StreamPool pool(4);
          std::vector<std::future<int>> results;
          std::vector<StreamPool::Stream> streams;
          for (int i = 0; i < 4; ++i) streams.push_back(pool.stream(i));
          for (int round = 0; round < 20; ++round)
            for (std::size_t i = 0; i < 4; ++i) {
              // Each rank submits in another order.
              const std::size_t k = (i + std::size_t(r)) % 4;
              results.push_back(streams[k].submit([&comms, k, round, r] {
                std::vector<int> x(100, int(k) * 100 + round + r);
                comms[k].allreduce(x);
                return x[99] - 3 * (int(k) * 100 + round) - 3;
              }));
            }
          for (auto& f : results) MUST(f.get() == 0);
        }) == "");
}

TEST_CASE("process groups become communicators") {
  CHECK(on_ranks(6, [](int r) {
          const Communicator world = Communicator::init();
          const ProcessGroups groups = ProcessGroups::for_world(world.size(), 1, 1, 2);
          const auto c = ParallelCommunicators::create(world, groups);
          std::vector<int> dp(3), pp(2), all(6);
          c.dp.allgather(std::array{r}, dp);
          c.pp.allgather(std::array{r}, pp);
          c.pp_dp.allgather(std::array{r}, all);
          MUST(dp == groups.group(Parallel::dp, r));
          MUST(pp == groups.group(Parallel::pp, r));
          MUST(all == groups.group(Parallel::pp_dp, r));
          MUST(c.tp.size() == 1);
          bool refused = false;
          try {
            ProcessGroups(4, 1, 1, 1).split(world, Parallel::tp);
          } catch (const Error& e) {
            refused = e.result() == GCCL_ERR_INVALID_ARGUMENT;
          }
          MUST(refused);
        }) == "");
}

TEST_CASE("where ranks really are makes a topology, the same on all") {
  CHECK(on_ranks(3, [](int) {
          const Communicator world = Communicator::init();
          DeviceManager::bind(0);
          const Topology t = TopologyBuilder().add_ranks(world).build();
          MUST(t.nodes == 1);
          MUST(t.devices.size() == 3);
          MUST((t.groups(Locality::numa) == std::vector<std::vector<int>>{{0, 1, 2}}));
          MUST((t.groups(Locality::node) == std::vector<std::vector<int>>{{0, 1, 2}}));
        }) == "");
}

TEST_CASE("one process drives all ranks, in one thread and in several") {
  for (const int n : {1, 2, 4})
    CHECK(on_ranks(1, [n](int) {
            DistConfig dist;
            dist.config.size = n;
            for (int r = 0; r < n; ++r) dist.ranks.push_back(n - 1 - r);
            const CommunicationGroup group(dist);
            MUST(group.size() == n);
            MUST(group.local_size() == n);
            for (int r = 0; r < n; ++r) {
              MUST(group.infos()[std::size_t(r)].local_rank == r);
              MUST(group[r].rank() == n - 1 - r);
            }
            std::vector<std::vector<int>> x(std::size_t(n), std::vector<int>(1000, 1));
            group.grouped([&](int i, const Communicator& c) { c.allreduce(x[std::size_t(i)]); });
            for (const auto& v : x) MUST(v == std::vector<int>(1000, n));
            std::vector<int> halves(std::size_t(n), 0);
            group.in_parallel([&](int i, const Communicator& c) {
              const Communicator half = c.split(c.rank() % 2);
              std::vector<int> one = {1};
              half.allreduce(one);
              halves[std::size_t(i)] = one[0];
            });
            for (int i = 0; i < n; ++i) MUST(halves[std::size_t(i)] == (n - (n - 1 - i) % 2 + 1) / 2);
          }) == "");
}

TEST_CASE("one thread that is several ranks can neither make nor free communicators in a group, and hears why") {
  CHECK(on_ranks(1, [](int) {
          DistConfig dist;
          dist.config.size = 2;
          dist.ranks = {0, 1};
          const CommunicationGroup group(dist);
          std::vector<Communicator> halves(2);
          std::string text;
          const auto split = [&](int i, const Communicator& c) { halves[std::size_t(i)] = c.split(0); };
          MUST(result_of([&] { group.grouped(split); }, &text) == GCCL_ERR_INVALID_USAGE);
          MUST(text.find("in_parallel") != text.npos);
          TopologyBuilder builder;
          const auto look = [&](int, const Communicator& c) { builder.add_ranks(c); };
          MUST(result_of([&] { group.grouped(look); }, &text) == GCCL_ERR_INVALID_USAGE);
          MUST(text.find("add_ranks() was called in a group") != text.npos);
          MUST(result_of([&] { grouped([&] { const CommunicationGroup inner(dist); }); }, &text) ==
               GCCL_ERR_INVALID_USAGE);
          MUST(text.find("in a group of calls") != text.npos);
          group.in_parallel(split);
          // A destructor, which cannot throw, ends the communicator. The group says why.
          const auto drop = [&](int i, const Communicator&) { halves[std::size_t(i)] = {}; };
          MUST(result_of([&] { group.grouped(drop); }, &text) == GCCL_ERR_INVALID_USAGE);
          MUST(text.find("GCCL_Comm_free was called in a group") != text.npos);
        }) == "");
}

TEST_CASE("two processes drive two ranks each; an exception in one of them ends all") {
  CHECK(on_ranks(2, [](int process) {
          DistConfig dist;
          dist.config.size = 4;
          dist.ranks = {process, process + 2};
          const CommunicationGroup group(dist);
          std::vector<int> sum(2);
          group.in_parallel([&](int i, const Communicator& c) {
            std::vector<int> x = {c.rank()};
            c.allreduce(x);
            sum[std::size_t(i)] = x[0];
          });
          MUST((sum == std::vector<int>{6, 6}));
          bool thrown = false;
          try {
            group.in_parallel([&](int, const Communicator& c) {
              if (c.rank() == 3) throw std::runtime_error("rank 3's own");
              c.barrier();
            });
          } catch (const std::exception&) {
            thrown = true;
          }
          MUST(thrown);
        }) == "");
}

TEST_CASE("ranks meet through the caller's own all-gather") {
  struct Board {
    std::atomic<int> arrived, left;
    std::byte data[3][1 << 16];
  };
  auto* const board =
      static_cast<Board*>(mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  REQUIRE(board != MAP_FAILED);
  CHECK(on_ranks(3, [board](int r) {
          unsetenv("GCCL_STORE");
          Config config;
          config.rank = r;
          config.size = 3;
          int round = 0;
          config.allgather = [&](std::span<const std::byte> mine, std::byte* all) {
            if (mine.size() > sizeof board->data[0]) return false;
            std::memcpy(board->data[r], mine.data(), mine.size());
            ++round;
            for (++board->arrived; board->arrived < 3 * round;) std::this_thread::yield();
            for (std::size_t i = 0; i < 3; ++i) std::memcpy(all + i * mine.size(), board->data[i], mine.size());
            for (++board->left; board->left < 3 * round;) std::this_thread::yield();
            return true;
          };
          const Communicator world = Communicator::init(config);
          std::vector<int> x = {1};
          world.allreduce(x);
          MUST(x[0] == 3);
        }) == "");
  munmap(board, sizeof(Board));
}
