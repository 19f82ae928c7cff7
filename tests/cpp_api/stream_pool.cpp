// Queues of functions with priorities.
#include "gccl/stream_pool.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>

using gccl::StreamPool;
using namespace std::chrono_literals;

namespace {

// Keeps one thread of a pool busy until it is opened.
struct Gate {
  std::promise<void> opened;
  std::shared_future<void> open = opened.get_future().share();
};

}  // namespace

TEST_CASE("the functions of a stream run one after the other in their order, whatever the concurrency") {
  for (const unsigned concurrency : {1u, 2u, 5u}) {
    StreamPool pool(concurrency);
    std::vector<StreamPool::Stream> streams;
    std::vector<std::vector<int>> order(8);
    std::vector<std::atomic<int>> inside(8);
    std::atomic<bool> overlapped{false};
    for (int s = 0; s < 8; ++s) streams.push_back(pool.stream(s % 3));
    for (int i = 0; i < 500; ++i)
      for (std::size_t s = 0; s < 8; ++s)
        streams[s].submit([&, s, i] {
          if (inside[s].fetch_add(1) != 0) overlapped = true;
          order[s].push_back(i);
          inside[s].fetch_sub(1);
        });
    pool.wait_idle();
    CHECK(!overlapped);
    for (const auto& o : order) {
      REQUIRE(o.size() == 500);
      CHECK(std::is_sorted(o.begin(), o.end()));
    }
  }
}

TEST_CASE("a stream's next function waits for the one that runs, even when a thread is free") {
  StreamPool pool(2);
  Gate gate;
  std::atomic<bool> second{false};
  auto stream = pool.stream();
  stream.submit([&] { gate.open.wait(); });
  std::this_thread::sleep_for(10ms);  // it runs now
  auto done = stream.submit([&] { second = true; });
  CHECK(done.wait_for(20ms) == std::future_status::timeout);
  CHECK(!second);
  gate.opened.set_value();
  done.get();
  CHECK(second);
}

TEST_CASE("waiting functions go by priority, then by submission") {
  StreamPool pool(1);
  Gate gate;
  std::promise<void> begun;
  pool.submit(0, [&] {
    begun.set_value();
    gate.open.wait();
  });
  begun.get_future().wait();  // or the worker would begin with something more urgent
  std::vector<int> order;
  for (const int i : {10, 30, 20, 31, 11, 21}) pool.submit(i / 10, [&order, i] { order.push_back(i); });
  gate.opened.set_value();
  pool.wait_idle();
  CHECK(order == std::vector<int>{30, 31, 20, 21, 10, 11});
}

TEST_CASE("no more functions run at a time than the concurrency allows, and that many do") {
  StreamPool pool(3);
  CHECK(pool.concurrency() == 3);
  std::atomic<int> running{0}, most{0};
  for (int i = 0; i < 30; ++i)
    pool.submit(0, [&] {
      const int now = ++running;
      for (int m = most; now > m && !most.compare_exchange_weak(m, now);) {
      }
      std::this_thread::sleep_for(2ms);
      --running;
    });
  pool.wait_idle();
  CHECK(most == 3);
}

TEST_CASE("results and exceptions come out of the future, and an exception harms nothing else") {
  StreamPool pool(2);
  auto stream = pool.stream(7);
  CHECK(stream.priority() == 7);
  auto bad = stream.submit([]() -> int { throw std::runtime_error("no"); });
  auto good = stream.submit([text = std::make_unique<int>(5)] { return *text; });
  CHECK_THROWS_WITH(bad.get(), "no");
  CHECK(good.get() == 5);
  CHECK_THROWS_AS(StreamPool(0), std::invalid_argument);
}

TEST_CASE("the destructor carries out what was submitted, and what those submit") {
  std::atomic<int> done{0};
  {
    StreamPool pool(2);
    auto stream = pool.stream();
    for (int i = 0; i < 100; ++i)
      stream.submit([&, stream]() mutable {
        stream.submit([&] { ++done; });
        pool.submit(1, [&] { ++done; });
      });
  }
  CHECK(done == 200);
}

TEST_CASE("any thread may submit") {
  std::atomic<int> done{0};
  StreamPool pool(2);
  auto shared = pool.stream();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) shared.submit([&] { ++done; }), pool.submit(i % 3, [&] { ++done; });
    });
  for (auto& t : threads) t.join();
  pool.wait_idle();
  CHECK(done == 1600);
}
