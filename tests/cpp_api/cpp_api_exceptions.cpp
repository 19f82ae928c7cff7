// Exceptions in programs that use the C++ interface: no rank waits for one that will not come, and what has ended
// stays.
#include <doctest/doctest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "gccl/gccl.hpp"
#include "tests/support/ranks.hpp"

using namespace gccl;

namespace {

struct Own : std::runtime_error {
  Own() : std::runtime_error("of the program's own") {}
};

// Rank 1 leaves by an exception from f(world); the others' barrier must end as aborted. Well under the limit of 60 s.
std::string leaves(const std::function<void(const Communicator&)>& f) {
  const auto ends = ranks::run({.size = 3, .limit_s = 60}, [&](int rank) {
    bool own = false;
    const GCCL_Result result = result_of([&] {
      try {
        const Communicator world = Communicator::init();
        if (rank == 1) f(world);
        world.barrier();
      } catch (const Own&) {
        own = true;
      }
    });
    MUST(own == (rank == 1));
    MUST((rank == 1 || result == GCCL_ERR_ABORTED));
  });
  for (const ranks::End& e : ends)
    if (!e.good()) return ranks::texts(ends);
  return "";
}

TEST_CASE("an exception with requests in flight aborts, and hangs no rank") {
  CHECK(leaves([](const Communicator& world) {
          std::vector<float> x(4);
          const Request r = world.irecv(x, 0);
          throw Own();
        }) == "");
  CHECK(leaves([](const Communicator& world) {
          std::vector<float> x(1 << 20), y(1 << 20);
          std::vector<Request> requests;
          requests.push_back(world.irecv(x, 0));
          requests.push_back(world.irecv(y, 2));
          throw Own();
        }) == "");
  // Moved into an object that was there before.
  CHECK(leaves([](const Communicator& world) {
          std::vector<float> x(4);
          Request outer;
          outer = world.irecv(x, 0);
          throw Own();
        }) == "");
}

TEST_CASE("an exception inside grouped() aborts what has begun, and hangs no rank") {
  CHECK(leaves([](const Communicator& world) {
          std::vector<float> x(4);
          grouped([&] {
            world.recv(x, 0);
            throw Own();
          });
        }) == "");
  CHECK(leaves([](const Communicator& world) {
          std::vector<float> x(1 << 20);
          grouped([&] {
            grouped([&] {
              world.recv(x, 2);
              throw Own();
            });
          });
        }) == "");
}

TEST_CASE("an exception inside an inner grouped() aborts no communicator of the outer one's calls") {
  CHECK(on_ranks(2, [](int rank) {
          const Communicator world = Communicator::init(), other = world.split(0);
          std::vector<int> x(1), y(1);
          if (rank == 0) {
            const auto outer = [&] {
              world.recv(x, 1);
              try {
                grouped([&] {
                  other.recv(y, 1);
                  throw Own();
                });
              } catch (const Own&) {
              }
            };
            MUST(result_of([&] { grouped(outer); }) == GCCL_ERR_ABORTED);
            MUST(x[0] == 5);
          } else {
            MUST(result_of([&] { other.recv(y, 0); }) == GCCL_ERR_ABORTED);
            x[0] = 5;
            world.send(x, 0);
          }
          world.barrier();
        }) == "");
}

TEST_CASE("operations that end while an exception is in flight are waited for, not aborted") {
  CHECK(on_ranks(2, [](int rank) {
          const Communicator world = Communicator::init();
          std::vector<int> sum(1, rank + 1);
          struct Cleanup {
            const Communicator& world;
            std::vector<int>& sum;
            ~Cleanup() { const Request r = world.iallreduce(sum); }
          };
          try {
            const Cleanup cleanup{world, sum};
            throw Own();
          } catch (const Own&) {
          }
          MUST(sum[0] == 3);
          world.barrier();
          // Complete before the exception: nothing to abort.
          try {
            const Request r = world.ibarrier();
            world.barrier();
            throw Own();
          } catch (const Own&) {
          }
          world.barrier();
        }) == "");
}

TEST_CASE("a request that is destroyed after its communicator was aborted has ended") {
  CHECK(on_ranks(2, [](int) {
          std::vector<float> x(4);
          try {
            Request r;
            const Communicator world = Communicator::init();
            r = world.irecv(x, 1 - world.rank());
            throw Own();
          } catch (const Own&) {
          }
        }) == "");
}

TEST_CASE("exceptions of callbacks and reductions are errors of the calls") {
  CHECK(on_ranks(2, [](int) {
          const Communicator world = Communicator::init();
          std::string text;
          bool second = false;
          Request r = world.ibarrier();
          r.then([](GCCL_Result) { throw Own(); }).then([&](GCCL_Result) { second = true; });
          MUST(result_of([&] { r.wait(); }, &text) == GCCL_ERR_INVALID_USAGE);
          MUST(text.find("of the program's own") != text.npos);
          MUST(second);
          world.barrier();
          const Communicator other = world.split(0);
          const CustomOp<int> op([](int, int) -> int { throw Own(); });
          std::vector<int> v(100, 1);
          MUST(result_of(
                   [&] {
                     other.allreduce(v, op);
                     other.barrier();
                   },
                   &text) == GCCL_ERR_INVALID_USAGE);
          MUST(text.find("of the program's own") != text.npos);
          world.barrier();
        }) == "");
}

}  // namespace
