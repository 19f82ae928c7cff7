// What the C++ interface does with what its calls are given: elements of any alignment, temporaries, functions.
#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gccl/gccl.hpp"
#include "tests/support/ranks.hpp"

using namespace gccl;

namespace {

using Sizes = std::vector<std::size_t>;

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

TEST_CASE("what a grouped call is given as a temporary, which would be gone, is refused; outside of groups it is not") {
  CHECK(on_ranks(2, [](int r) {
          const Communicator world = Communicator::init();
          std::vector<int> out(2), one(1);
          const Sizes counts = {1, 1};
          const CustomOp<int> add([](int a, int b) { return a + b; });
          const auto own = [] { return CustomOp<int>([](int a, int b) { return a + b; }); };
          const auto mine = [r] { return std::vector<int>{r + 1}; };
          const std::vector<std::function<void(const Communicator&)>> given = {
              [&](const Communicator& c) { c.allgather(mine(), out); },
              [&](const Communicator& c) { c.allgather(std::array{r + 1}, out); },
              [&](const Communicator& c) { c.allgatherv(mine(), out, counts); },
              [&](const Communicator& c) {
                c.allgatherv(one, out, Sizes{1, 1});
              },
              [&](const Communicator& c) {
                c.allgatherv(one, out, counts, Sizes{0, 1});
              },
              [&](const Communicator& c) { c.allreduce(mine(), one); },
              [&](const Communicator& c) { c.allreduce(one, own()); },
              [&](const Communicator& c) { c.allreduce(std::span(one), std::span(out).first(1), own()); },
              [&](const Communicator& c) { c.reduce(mine(), one, 0); },
              [&](const Communicator& c) { c.reduce(one, 0, own()); },
              [&](const Communicator& c) { c.reduce_scatter(std::vector<int>(2), one); },
              [&](const Communicator& c) {
                c.reduce_scatterv(out, one, Sizes{1, 1});
              },
              [&](const Communicator& c) { c.alltoall(std::vector<int>(2), out); },
              [&](const Communicator& c) { c.alltoallv(std::vector<int>(2), counts, out, counts); },
              [&](const Communicator& c) {
                c.alltoallv(in_place, counts, out, Sizes{1, 1});
              },
              [&](const Communicator& c) { c.scatter(std::vector<int>(2), one, 0); },
              [&](const Communicator& c) { c.gather(mine(), out, 0); },
              [&](const Communicator& c) {
                if (r == 0) c.send(mine(), 1);
                if (r == 1) c.recv(one, 0);
              },
          };
          for (std::size_t i = 0; i < given.size(); ++i) {
            given[i](world);
            if (i + 1 == given.size() && r == 1) continue;  // it only receives
            std::string text;
            MUST(result_of([&] { grouped([&] { given[i](world); }); }, &text) == GCCL_ERR_INVALID_USAGE);
            MUST(text.find("a temporary") != text.npos);
          }
          // What lasts is carried out at the end.
          out = {0, 0};
          one = {r + 1};
          grouped([&] {
            world.allgatherv(std::span(one), out, counts);
            world.allreduce(one, add);
            MUST(GCCL_Group_depth() == 1);
          });
          MUST(GCCL_Group_depth() == 0);
          MUST((out == std::vector<int>{1, 2}));
          MUST(one[0] == 3);
          // Counts may be written in braces, too.
          out = {0, 0};
          world.allgatherv(one, out, {{1, 1}});
          MUST((out == std::vector<int>{3, 3}));
          std::vector<int> in = {3, 3};
          world.alltoallv(in, {counts.data(), 2}, out, {counts.data(), 2});
          world.reduce_scatterv(out, one, {counts.data(), 2});
          MUST(one[0] == 6);
        }) == "");
}

template <class C>
concept StartsWithTemporaryOp = requires(const C& c, std::vector<int>& x) {
  c.iallreduce(x, CustomOp<int>([](int a, int) { return a; }));
};
static_assert(!StartsWithTemporaryOp<Communicator>);

TEST_CASE("a function for failures may be const, or a plain function") {
  CHECK(on_ranks(3, [](int r) {
          const Communicator world = Communicator::init(), other = world.split(0);
          int called = 0;
          const auto count = [&called](const GCCL_Failure&) { ++called; };
          world.on_failure(count);
          other.on_failure(notice);
          std::array<int, 1> left{};  // these calls: none of them fails
          for (int other = 0; other < 2; ++other) {
            if (r == other) world.send(left, 2);
            if (r == 2) world.recv(left, other);
          }
          if (r == 2) ::_exit(0);
          MUST(result_of([&] { world.barrier(); }) == GCCL_ERR_PEER_LOST);
          MUST(result_of([&] { other.barrier(); }) == GCCL_ERR_PEER_LOST);
          MUST(called == 1);
          MUST(failures_noticed == 1);
        }) == "");
}

}  // namespace

TEST_CASE("a text of Config that would end at a null byte is an error") {
  Config config;
  config.secret = std::string("\0binary", 7);
  try {
    Communicator::init(config);
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(e.result() == GCCL_ERR_INVALID_ARGUMENT);
  }
}
