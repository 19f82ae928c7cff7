// Whether a process has one thread beside the library's own: what ends a wait that nobody else can end depends on it.
#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <thread>

#include "libgccl/base/process.hpp"
#include "tests/support/own_entries.hpp"

using namespace gccl;

TEST_CASE("a thread of the library's own does not count, from its start on and before it has run") {
  const std::size_t at_rest = test::first_threads();
  for (int i = 0; i < 1000; ++i) {
    CAPTURE(i);
    REQUIRE(test::comes_to("task", at_rest));  // the one before is still listed
    std::promise<void> end;
    std::thread own = own_thread([over = end.get_future().share()] { over.wait(); });
    const bool one = one_thread();
    end.set_value();
    own.join();
    REQUIRE(one == !test::kSanitizerThreads);
  }
}

TEST_CASE("another thread of the program's counts, also while the library starts and ends threads") {
  std::atomic<bool> stop{false};
  std::atomic<int> looks{0}, wrong{0};
  std::thread another([&] {
    for (; !stop; ++looks) wrong += one_thread();
  });
  for (int i = 0; i < 1000 || looks < 1000; ++i) own_thread([] {}).join();
  stop = true;
  another.join();
  CHECK(wrong == 0);
}
