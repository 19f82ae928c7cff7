// SimGridNetwork: what holds for all networks that share links, and what is SimGrid's own.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <csignal>

#include "sim/simgrid/network.hpp"

using namespace gccl;
using namespace gccl::sim;

namespace {
using SharedNet = SimGridNetwork;
}  // namespace

#include "tests/engine/sharing_cases.hpp"

TEST_CASE("more time than SimGrid's clock resolves in nanoseconds is an error, not a wait for ever") {
  const Star slow(3, 1e-6, 0);  // 1 KB/s
  const std::vector<Sent> weeks = {{0, 1, 4'000'000'000}}, months = {{0, 1, 5'000'000'000}, {0, 2, 7}, {2, 1, 7'000}};
  CHECK(play(slow, weeks)[0] == Nanos(4'000'000) * 1'000'000'000);
  CHECK_THROWS_WITH_AS(play(slow, months), doctest::Contains("48 days"), std::runtime_error);
}

TEST_CASE("a process gets one SimGrid, and a second one is refused") {
  const auto refused = test::in_child([] {
    const Star star(2, 10, 100);
    std::vector<int> out;
    for (int i = 0; i < 3; ++i) {
      try {
        SimGridNetwork network(star);
        network.send(message(0, {0, 1, 1000, 0}));  // still in flight when the network goes
        out.push_back(0);
      } catch (const std::logic_error&) {
        out.push_back(1);
      }
    }
    return out;
  });
  CHECK(refused == std::vector<int>{0, 1, 1});
}

TEST_CASE("SimGrid prints nothing and leaves the signal handlers alone") {
  const auto seen = test::in_child([] {
    std::FILE* file = std::tmpfile();
    const int out = dup(1), err = dup(2);
    dup2(fileno(file), 1);
    dup2(fileno(file), 2);
    {
      const Star star(2, 10, 100);
      SimGridNetwork network(star);
      std::vector<EventId> due;
      network.send(message(0, {0, 1, 1000, 0}));
      while (network.next(due)) {
      }
    }
    std::fflush(nullptr);
    dup2(out, 1);
    dup2(err, 2);
    struct stat s;
    fstat(fileno(file), &s);
    std::vector<long> seen = {long(s.st_size)};
    for (int number : {SIGINT, SIGSEGV, SIGBUS}) {
      struct sigaction now;
      sigaction(number, nullptr, &now);
      // doctest's own handlers may be there; SimGrid's for crashes are of the three-argument kind with SA_RESETHAND.
      seen.push_back((now.sa_flags & int(SA_RESETHAND)) != 0);
    }
    return seen;
  });
  CHECK(seen == std::vector<long>{0, 0, 0, 0});
}
