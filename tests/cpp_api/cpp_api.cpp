// The C++ interface, called by ranks that are processes.
#include <doctest/doctest.h>

#include <bit>
#include <numeric>

#include "gccl/gccl.hpp"
#include "tests/support/ranks.hpp"

using namespace gccl;
using namespace std::chrono_literals;

namespace {

using Sizes = std::vector<std::size_t>;

// The element that stands for a small whole number.
template <class T>
T element(int v) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    return {std::uint16_t(std::bit_cast<std::uint32_t>(float(v)) >> 16)};
  } else if constexpr (std::is_same_v<T, float16>) {
    if (v == 0) return {0};
    const int e = std::bit_width(unsigned(v)) - 1;
    return {std::uint16_t((e + 15) << 10 | (v << (10 - e) & 0x3ff))};
  } else {
    return T(v);
  }
}
template <class T>
std::vector<T> elements(const std::vector<int>& values) {
  std::vector<T> out;
  for (const int v : values) out.push_back(element<T>(v));
  return out;
}
// What rank r contributes: count small numbers.
std::vector<int> numbers(int rank, std::size_t count) {
  std::vector<int> v(count);
  for (std::size_t i = 0; i < count; ++i) v[i] = 1 + (rank * 3 + int(i)) % 5;
  return v;
}
// Elementwise over all ranks' numbers.
template <class Combine>
std::vector<int> combined(int n, std::size_t count, Combine combine) {
  std::vector<int> sum = numbers(0, count);
  for (int r = 1; r < n; ++r) {
    const auto v = numbers(r, count);
    for (std::size_t i = 0; i < count; ++i) sum[i] = combine(sum[i], v[i]);
  }
  return sum;
}
template <class T>
std::vector<T> block(const std::vector<T>& v, std::size_t i, std::size_t count) {
  return std::vector<T>(v.begin() + std::ptrdiff_t(i * count), v.begin() + std::ptrdiff_t((i + 1) * count));
}
// All ranks' numbers, one after the other.
std::vector<int> gathered(int n, std::size_t count) {
  std::vector<int> all;
  for (int r = 0; r < n; ++r) {
    const auto v = numbers(r, count);
    all.insert(all.end(), v.begin(), v.end());
  }
  return all;
}

template <class T>
void reduce_all_ways(const Communicator& c, std::size_t count) {
  const int n = c.size(), r = c.rank();
  const auto sum = elements<T>(combined(n, count, std::plus<int>()));
  const auto most = elements<T>(combined(n, count, [](int a, int b) { return std::max(a, b); }));
  const auto mine = elements<T>(numbers(r, count));
  const auto fresh = [&] { return std::vector<T>(count, element<T>(0)); };
  auto out = fresh();
  c.allreduce(mine, out);
  MUST(out == sum);
  c.allreduce(std::span<const T>(mine), std::span<T>(out), ReduceOp::max);
  MUST(out == most);
  out = mine;
  c.allreduce(out);
  MUST(out == sum);
  out = mine;
  c.allreduce(in_place, out, ReduceOp::max);
  MUST(out == most);
  for (int root = 0; root < n; ++root) {
    out = r == root ? fresh() : std::vector<T>();
    c.reduce(mine, out, root);
    MUST((r != root || out == sum));
    out = mine;
    c.reduce(out, root, ReduceOp::max);
    MUST((r != root || out == most));
  }
  // Every rank has n blocks, its numbers in each.
  std::vector<T> blocks;
  for (int i = 0; i < n; ++i) blocks.insert(blocks.end(), mine.begin(), mine.end());
  out = fresh();
  c.reduce_scatter(blocks, out);
  MUST(out == sum);
  c.reduce_scatter(in_place, blocks);
  MUST(block(blocks, 0, count) == sum);
}

void move_all_ways(const Communicator& c, std::size_t count) {
  const int n = c.size(), r = c.rank();
  const std::size_t blocks = std::size_t(n);
  const auto mine = numbers(r, count), all = gathered(n, count);
  std::vector<int> out(all.size());
  c.allgather(mine, out);
  MUST(out == all);
  std::fill(out.begin(), out.end(), 0);
  std::copy(mine.begin(), mine.end(), out.begin() + std::ptrdiff_t(std::size_t(r) * count));
  c.allgather(out);
  MUST(out == all);

  // Rank i gives to every rank its own numbers, so everybody gets all; and all of that back again.
  std::vector<int> copies;
  for (int i = 0; i < n; ++i) copies.insert(copies.end(), mine.begin(), mine.end());
  std::fill(out.begin(), out.end(), 0);
  c.alltoall(copies, out);
  MUST(out == all);
  out = copies;
  c.alltoall(out);
  MUST(out == all);

  for (int root = 0; root < n; ++root) {
    out = numbers(root, count);
    if (r != root) std::fill(out.begin(), out.end(), 0);
    c.broadcast(out, root);
    MUST(out == numbers(root, count));

    std::vector<int> part(count);
    if (r == root && root % 2 == 1) {
      c.scatter(all, in_place, root);
      part = mine;
    } else {
      c.scatter(r == root ? all : std::vector<int>(), part, root);
    }
    MUST(part == mine);

    std::vector<int> whole(r == root ? all.size() : 0);
    if (r == root && root % 2 == 1) {
      std::copy(mine.begin(), mine.end(), whole.begin() + std::ptrdiff_t(std::size_t(r) * count));
      c.gather(in_place, whole, root);
    } else {
      c.gather(mine, whole, root);
    }
    MUST((r != root || whole == all));
  }

  // Blocks of different lengths: rank i's has i + 1 elements (none for rank 1), with a hole of one behind each.
  Sizes counts(blocks), displs(blocks);
  std::size_t end = 0;
  for (std::size_t i = 0; i < blocks; ++i) counts[i] = i == 1 ? 0 : i + 1, displs[i] = end, end += counts[i] + 1;
  std::vector<int> spread(end, -1), expected(end, -1);
  for (std::size_t i = 0; i < blocks; ++i)
    for (std::size_t k = 0; k < counts[i]; ++k) expected[displs[i] + k] = int(10 * i + k);
  std::vector<int> own(counts[std::size_t(r)]);
  std::iota(own.begin(), own.end(), 10 * r);
  c.allgatherv(own, spread, counts, displs);
  MUST(spread == expected);
  std::vector<int> dense(std::accumulate(counts.begin(), counts.end(), std::size_t(0)));
  c.allgatherv(own, dense, counts);
  std::erase(expected, -1);
  MUST(dense == expected);

  // Everybody contributes 1 everywhere.
  std::vector<int> ones(dense.size(), 1), sum(own.size());
  c.reduce_scatterv(ones, sum, counts);
  MUST(sum == std::vector<int>(own.size(), n));

  // From i to j go i + 2j elements, each 100 i + j.
  Sizes out_counts, in_counts;
  std::vector<int> outgoing, incoming_expected;
  for (int p = 0; p < n; ++p) {
    out_counts.push_back(std::size_t(r + 2 * p)), in_counts.push_back(std::size_t(p + 2 * r));
    outgoing.insert(outgoing.end(), out_counts.back(), 100 * r + p);
    incoming_expected.insert(incoming_expected.end(), in_counts.back(), 100 * p + r);
  }
  std::vector<int> incoming(incoming_expected.size());
  c.alltoallv(outgoing, out_counts, incoming, in_counts);
  MUST(incoming == incoming_expected);
  std::fill(incoming.begin(), incoming.end(), 0);
  Request request = c.ialltoallv(outgoing, out_counts, incoming, in_counts);
  request.wait();
  MUST(incoming == incoming_expected);
}

struct Best {
  double value;
  std::int32_t where[3];
};

}  // namespace

TEST_CASE("all twelve types are reduced in every way, on 1 to 5 ranks") {
  for (const int n : {1, 2, 3, 5})
    CHECK(on_ranks(n, [](int) {
            const Communicator world = Communicator::init();
            for (const std::size_t count : {0u, 1u, 7u, 1000u}) {
              reduce_all_ways<std::int8_t>(world, count);
              reduce_all_ways<std::uint8_t>(world, count);
              reduce_all_ways<std::int16_t>(world, count);
              reduce_all_ways<std::uint16_t>(world, count);
              reduce_all_ways<std::int32_t>(world, count);
              reduce_all_ways<std::uint32_t>(world, count);
              reduce_all_ways<long>(world, count);
              reduce_all_ways<unsigned long long>(world, count);
              reduce_all_ways<float16>(world, count);
              reduce_all_ways<bfloat16>(world, count);
              reduce_all_ways<float>(world, count);
              reduce_all_ways<double>(world, count);
            }
          }) == "");
}

TEST_CASE("blocks move in every way, in place and not, on 1 to 5 ranks") {
  for (const int n : {1, 2, 3, 5})
    CHECK(on_ranks(n, [](int) {
            const Communicator world = Communicator::init();
            for (const std::size_t count : {0u, 1u, 5u, 3000u}) move_all_ways(world, count);
          }) == "");
}

TEST_CASE("structs, bools and bytes move; operations of the caller's own combine structs") {
  CHECK(on_ranks(3, [](int r) {
          const Communicator world = Communicator::init();
          std::vector<Best> mine = {{double((r + 2) % 3), {r, r, r}}}, all(3);
          world.allgather(mine, all);
          for (int i = 0; i < 3; ++i) MUST(all[std::size_t(i)].where[2] == i);
          double seen = 1e9;
          const CustomOp<Best> least([&seen](const Best& a, const Best& b) {
            seen = std::min({seen, a.value, b.value});
            return a.value < b.value ? a : b;
          });
          world.allreduce(mine, least);
          MUST(mine[0].where[0] == 1);
          std::array<bool, 2> flag = {r == 2, false};
          world.broadcast(flag, 2);
          MUST(flag[0]);
          std::vector<std::byte> bytes(5, std::byte(r));
          world.broadcast(bytes, 1);
          MUST(bytes[4] == std::byte(1));
          std::vector<float, gccl::Allocator<float>> large(100000, float(r)), larger;
          world.allreduce(large);
          MUST(large[99999] == 3);
          larger = large;
          MUST(larger.size() == 100000);
          std::vector<int> product = {r + 1};
          world.allreduce(product, CustomOp<int>([](int a, int b) { return a * b; }));
          MUST(product[0] == 6);
        }) == "");
}

TEST_CASE("requests: wait, wait_for, test, callbacks in order, and a destructor that waits") {
  CHECK(on_ranks(2, [](int r) {
          const Communicator world = Communicator::init();
          std::vector<double> x(1000, r + 1), y(1000);
          std::vector<int> calls;
          Request a = world.iallreduce(x, y)
                          .then([&](GCCL_Result result) { calls.push_back(result == GCCL_SUCCESS ? 1 : -1); })
                          .then([&](GCCL_Result) { calls.push_back(2); });
          MUST(calls.empty());
          a.wait();
          MUST(a.empty());
          a.wait();  // an empty request is complete
          MUST(y[999] == 3);
          while (calls.size() < 2) check(GCCL_Progress());
          MUST((calls == std::vector<int>{1, 2}));

          // Rank 1 sends only after rank 0 has said that it waited in vain.
          int value = 0;
          if (r == 0) {
            Request late = world.irecv(std::span(&value, 1), 1);
            MUST(!late.wait_for(5ms));
            for (const auto time : {0ms, -1ms, -5000ms}) MUST(!late.wait_for(time));  // -1 is no word for no limit
            MUST(!late.test());
            Request moved = std::move(late);
            MUST(late.empty());
            world.send(std::span(&value, 1), 1);
            while (!moved.test()) {
            }
            MUST(value == 42);
          } else {
            world.recv(std::span(&value, 1), 0);
            value = 42;
            world.send(std::span(&value, 1), 0);
          }
          std::vector<float> z(50000, 1);
          { Request dropped = world.iallreduce(z); }
          MUST(z[0] == 2);
          MUST(z[49999] == 2);

          std::vector<Request> many;
          std::vector<std::vector<int>> values(20, std::vector<int>{r});
          for (auto& v : values) many.push_back(world.iallreduce(v));
          wait_all(many);
          for (const auto& v : values) MUST(v[0] == 1);
          Request empty;
          MUST(result_of([&] { empty.then([](GCCL_Result) {}); }) == GCCL_ERR_INVALID_ARGUMENT);
          Request given_up = world.ibarrier();
          given_up.detach();
          world.barrier();
        }) == "");
}

TEST_CASE("every I-form leaves what its blocking form does") {
  CHECK(on_ranks(3, [](int r) {
          const Communicator c = Communicator::init();
          const std::size_t count = 17;
          const auto mine = numbers(r, count), all = gathered(3, count), sum = combined(3, count, std::plus<int>());
          const Sizes counts(3, count);
          std::vector<int> copies;
          for (int i = 0; i < 3; ++i) copies.insert(copies.end(), mine.begin(), mine.end());
          std::vector<int> reduced(count), inout = mine, rooted(count), gather_out(all.size()), gatherv_out(all.size()),
                                           scattered(count), toall(all.size()), toall_inout = copies, rs(count),
                                           rsv(count), rooted_inout = mine,
                                           bcast = r == 1 ? mine : std::vector<int>(count), collected(all.size());
          std::vector<Request> requests;
          requests.push_back(c.iallreduce(mine, reduced));
          requests.push_back(c.iallreduce(inout));
          requests.push_back(c.ireduce(mine, rooted, 2));
          requests.push_back(c.ireduce(rooted_inout, 1));
          requests.push_back(c.iallgather(mine, gather_out));
          requests.push_back(c.iallgatherv(mine, gatherv_out, counts));
          requests.push_back(c.ireduce_scatter(copies, rs));
          requests.push_back(c.ireduce_scatterv(copies, rsv, counts));
          requests.push_back(c.ialltoall(copies, toall));
          requests.push_back(c.ialltoall(toall_inout));
          requests.push_back(c.ibroadcast(bcast, 1));
          requests.push_back(c.iscatter(all, scattered, 0));
          requests.push_back(c.igather(mine, collected, 0));
          requests.push_back(c.ibarrier());
          wait_all(requests);
          MUST(reduced == sum);
          MUST(inout == sum);
          MUST((r != 2 || rooted == sum));
          MUST((r != 1 || rooted_inout == sum));
          MUST(gather_out == all);
          MUST(gatherv_out == all);
          MUST(rs == sum);
          MUST(rsv == sum);
          MUST(toall == all);
          MUST(toall_inout == all);
          MUST(bcast == numbers(1, count));
          MUST(scattered == mine);
          MUST((r != 0 || collected == all));
        }) == "");
}

TEST_CASE("sends and receives in a ring, grouped") {
  CHECK(on_ranks(4, [](int r) {
          const Communicator world = Communicator::init();
          std::vector<int> to(1 << 18, r), from(1 << 18, -1);
          grouped([&] {
            world.send(to, (r + 1) % 4);
            world.recv(from, (r + 3) % 4);
          });
          MUST(from == std::vector<int>(1 << 18, (r + 3) % 4));
        }) == "");
}

TEST_CASE("communicators from communicators, and what they know of themselves") {
  CHECK(on_ranks(5, [](int r) {
          Communicator world = Communicator::init();
          MUST(world.rank() == r);
          MUST(world.size() == 5);
          MUST(world.nodes() == std::vector<int>(5, 0));
          const Communicator half = world.split(r % 2, -r);  // backwards
          MUST(half.size() == (r % 2 ? 2 : 3));
          std::vector<int> members(std::size_t(half.size()));
          half.allgather(std::array{r}, members);
          MUST((members == (r % 2 ? std::vector{3, 1} : std::vector{4, 2, 0})));
          const Communicator none = world.split(r == 2 ? GCCL_UNDEFINED : 0);
          MUST(bool(none) == (r != 2));
          const Communicator pair = world.create({4, 1});
          MUST(bool(pair) == (r == 4 || r == 1));
          if (pair) MUST(pair.rank() == (r == 4 ? 0 : 1));
          Communicator moved = std::move(world);
          MUST(!world);
          moved.barrier();
          const GCCL_Metrics m = moved.metrics();
          std::uint64_t barriers = 0;
          for (const auto& k : m.calls)
            if (k.name && std::string(k.name) == "barrier") barriers = k.calls;
          MUST(barriers >= 1);
          moved.free();
          MUST(!moved);
        }) == "");
}

TEST_CASE("wrong arguments throw before anything is sent, with what was found and expected") {
  CHECK(on_ranks(2, [](int r) {
          const Communicator world = Communicator::init();
          std::vector<int> three(3), four(4), big(8);
          std::string text;
          MUST(result_of([&] { world.allreduce(three, four); }, &text) == GCCL_ERR_INVALID_ARGUMENT);
          MUST(text == "allreduce: the output has 4 elements, expected 3");
          MUST(result_of([&] { world.allgather(three, four); }, &text) == GCCL_ERR_INVALID_ARGUMENT);
          MUST(result_of([&] { world.alltoall(three); }, &text) == GCCL_ERR_INVALID_ARGUMENT);
          MUST(text == "alltoall: the output has 3 elements, expected a multiple of 2, the number of ranks");
          MUST(result_of([&] { world.reduce_scatter(big, three); }) == GCCL_ERR_INVALID_ARGUMENT);
          MUST(result_of([&] { world.allgatherv(three, four, Sizes{3}); }, &text) == GCCL_ERR_INVALID_ARGUMENT);
          MUST(result_of([&] { world.allgatherv(three, four, Sizes{3, 3}); }, &text) == GCCL_ERR_INVALID_ARGUMENT);
          MUST(text == "allgatherv: the output has 4 elements, expected at least 6");
          MUST(result_of([&] { world.broadcast(three, 2); }) == GCCL_ERR_INVALID_ARGUMENT);
          MUST(result_of([&] { world.send(three, -1); }) == GCCL_ERR_INVALID_ARGUMENT);
          if (r == 1) MUST(result_of([&] { world.gather(in_place, four, 0); }) == GCCL_ERR_INVALID_ARGUMENT);
          MUST(result_of([&] { Communicator().barrier(); }) == GCCL_ERR_INVALID_ARGUMENT);
          world.barrier();  // the communicator still works
        }) == "");
}

TEST_CASE(
    "failures of other ranks are thrown everywhere: mismatch, timeout, abort, and a rank that leaves by exception") {
  CHECK(on_ranks(2, [](int r) {
          const Communicator world = Communicator::init();
          const Communicator a = world.split(0), b = world.split(0), c = world.split(0);
          std::vector<int> x(r == 0 ? 4 : 5);
          MUST(result_of([&] { a.allreduce(x); }) == GCCL_ERR_MISMATCH);
          if (r == 0) {
            b.set_timeout(50ms);
            MUST(result_of([&] { b.recv(x, 1); }) == GCCL_ERR_TIMEOUT);
            std::this_thread::sleep_for(20ms);
            c.abort(7);
          }
          std::string text;
          MUST(result_of([&] { c.barrier(); }, &text) == GCCL_ERR_ABORTED);
        }) == "");
  CHECK(on_ranks(3, [](int r) {
          const Communicator world = Communicator::init();
          GCCL_Result seen = GCCL_SUCCESS;
          try {
            const Communicator all = world.split(0);
            if (r == 1) throw std::runtime_error("something of the caller's");
            seen = result_of([&] { all.barrier(); });
          } catch (const std::runtime_error&) {
          }
          MUST(seen == (r == 1 ? GCCL_SUCCESS : GCCL_ERR_ABORTED));
          world.barrier();
        }) == "");
}

TEST_CASE("a communicator shrinks to what it is, and grows by a process that joins") {
  CHECK(on_ranks(3, [](int r) {
          if (r == 2) {
            const Communicator joined = Communicator::join();
            MUST(joined.size() == 3 && joined.rank() == 2);
            MUST(joined.joined() == std::vector<int>{2});
            joined.barrier();
            return;
          }
          Config config;
          config.rank = r;
          config.size = 2;
          const Communicator world = Communicator::init(config);
          const Communicator same = world.shrink();
          MUST(same.size() == 2 && same.joined().empty());
          const Communicator larger = same.grow(1, 60s);
          MUST(larger.size() == 3 && larger.rank() == r);
          MUST(larger.joined() == std::vector<int>{2});
          larger.barrier();
          MUST(result_of([&] { (void)world.grow(0); }) == GCCL_ERR_INVALID_ARGUMENT);
        }) == "");
}
