// What the C++ interface does with what its calls are given: elements of any alignment, functions.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "gccl/gccl.hpp"
#include "tests/support/ranks.hpp"

using namespace gccl;

namespace {

template <std::size_t A, std::size_t N>
struct alignas(A) Aligned {
  unsigned char bytes[N];
};

// Reduces such elements, whose bytes add up, in calls that keep them in places of every kind.
template <std::size_t A, std::size_t N>
void reduce_aligned(const Communicator& c) {
  using T = Aligned<A, N>;
  const CustomOp<T> add([](const T& a, const T& b) {
    MUST(reinterpret_cast<std::uintptr_t>(&a) % A == 0);
    MUST(reinterpret_cast<std::uintptr_t>(&b) % A == 0);
    T sum;
    for (std::size_t i = 0; i < N; ++i) sum.bytes[i] = static_cast<unsigned char>(a.bytes[i] + b.bytes[i]);
    return sum;
  });
  const auto is = [](const std::vector<T>& v, int due) {
    for (const T& e : v)
      for (const unsigned char b : e.bytes) MUST(b == due);
  };
  const int n = c.size();
  for (const std::size_t count : {1u, 3u, 100u, 5000u}) {
    std::vector<T> ones(std::size_t(n) * count), out(count);
    for (T& e : ones) std::fill(std::begin(e.bytes), std::end(e.bytes), static_cast<unsigned char>(1));
    const auto mine = std::span(ones).first(count);
    for (int again = 0; again < 3; ++again) {  // the short way of repeated calls, too
      c.allreduce(mine, out, add);
      is(out, n);
    }
    c.reduce(mine, out, 0, add);
    if (c.rank() == 0) is(out, n);
    c.reduce_scatter(ones, out, add);
    is(out, n);
  }
}

int failures_noticed = 0;
void notice(const GCCL_Failure&) { ++failures_noticed; }

TEST_CASE("an operation of the caller's own gets elements where their alignment has them, over every transport") {
  for (const ranks::Job& job : ranks::transports(3))
    ranks::check(job, [](int) {
      const Communicator world = Communicator::init();
      reduce_aligned<1, 3>(world);
      reduce_aligned<4, 12>(world);
      reduce_aligned<8, 24>(world);
      reduce_aligned<16, 16>(world);
      reduce_aligned<16, 48>(world);
      reduce_aligned<32, 32>(world);
      reduce_aligned<64, 128>(world);
    });
}

TEST_CASE("a function for failures may be const, or a plain function") {
  CHECK(on_ranks(3, [](int r) {
          const Communicator world = Communicator::init(), other = world.split(0);
          int called = 0;
          const auto count = [&called](const GCCL_Failure&) { ++called; };
          world.on_failure(count);
          other.on_failure(notice);
          world.barrier();
          if (r == 2) ::_exit(0);
          MUST(result_of([&] { world.barrier(); }) == GCCL_ERR_PEER_LOST);
          MUST(result_of([&] { other.barrier(); }) == GCCL_ERR_PEER_LOST);
          MUST(called == 1);
          MUST(failures_noticed == 1);
        }) == "");
}

}  // namespace
