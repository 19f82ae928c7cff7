// Every collective of gccl.h, over shared memory, TCP and both, with real processes, against what gccl.h says.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/rank_call.hpp"
#include "tests/support/rank_job.hpp"
#include "tests/support/wide.hpp"

using namespace ranks;

namespace {

// The transports under test, for this many ranks.
std::vector<Job> jobs(int size) {
  std::vector<Job> all;
  all.push_back({.size = size, .backends = "shm"});
  if (size == 2 || size == 3 || size == 8) all.push_back({.size = size, .backends = "tcp"});
  if (size == 3) all.push_back({.size = size, .backends = "shm,tcp", .nodes = {0, 1, 0}});
  if (size == 4) all.push_back({.size = size, .backends = "tcp", .nodes = {0, 1, 2, 3}});
  if (size == 6) all.push_back({.size = size, .backends = "tcp", .nodes = {0, 1, 2, 3, 4, 5}});
  if (size == 5) all.push_back({.size = size, .backends = "shm,tcp", .nodes = {0, 0, 1, 1, 1}});
  if (size == 7) all.push_back({.size = size, .backends = "shm,tcp", .nodes = {0, 1, 0, 2, 2, 2, 1}});
  return all;
}

void perform(const CallCase& c, GCCL_Comm comm, int rank, int size, bool non_blocking) {
  if (const std::string wrong = outcome(c, comm, rank, size, non_blocking); !wrong.empty()) report(wrong);
}

// Runs body with the world of the job, between GCCL_Init and GCCL_Finalize, on every rank.
template <class Body>
void with_world(const Job& job, Body body) {
  check(job, [&](int rank) {
    GCCL_Comm world = begin();
    if (!world) return;
    body(world, rank, job.size);
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("every collective, type, operation and place, on 1 to 8 ranks") {
  for (int size = 1; size <= 8; ++size)
    for (const Job& job : jobs(size))
      with_world(job, [&](GCCL_Comm world, int rank, int n) {
        // Elsewhere each seventh: types and operations know nothing of transports and sizes.
        const bool all = job.backends == "shm" && (n <= 3 || n == 5);
        each_case(n, [&](const CallCase& c, std::uint64_t number) {
          if (number % 7 == 0 || all) perform(c, world, rank, n, number % 3 == 0);
          return !any_reported();
        });
      });
}

TEST_CASE("every size around the limits inside") {
  // Inline cells, zero-copy, chunks of the pipe, chunks of the plan, caches: each limit, and one element to either
  // side.
  static constexpr std::size_t kLimits[] = {0, 48, 16 << 10, 32 << 10, 128 << 10, 256 << 10, 1 << 20, 4 << 20};
  for (const int size : {1, 3, 8})
    for (const Job& job : jobs(size)) {
      // As much as two cores can move in seconds; whole buffers, of all blocks.
      const std::size_t most = (size > 3                ? 1 << 20
                                : job.backends == "shm" ? 8 << 20
                                                        : 2 << 20) /
                               (gccl::test::wide() ? 1 : 2);
      with_world(job, [&](GCCL_Comm world, int rank, int n) {
        std::uint64_t number = 0;
        for (const std::size_t limit : kLimits)
          for (const Kind kind : kKinds)
            for (int more = limit == 0 ? 0 : -1; more <= (limit == 0 ? 3 : 1) && !any_reported(); ++more) {
              ++number;
              if (limit * std::size_t(gccl::counts_blocks(kind) ? n : 1) > most || (limit >= 1 << 20 && more == 0))
                continue;
              const GCCL_Dtype dtype = kTypes[number % std::size(kTypes)];
              perform({.kind = kind,
                       .dtype = dtype,
                       .op = GCCL_SUM,
                       .count = std::size_t(std::ptrdiff_t(limit / bytes_of(dtype)) + more),
                       .root = int(number % std::uint64_t(n)),
                       .place = Place(number % 4),
                       .displaced = number % 8 >= 4,
                       .seed = number},
                      world, rank, n, number % 2 == 0);
            }
      });
    }
}

TEST_CASE("64 MiB") {
  for (const char* backends : {"shm", "tcp"})
    with_world({.size = 2, .backends = backends}, [](GCCL_Comm world, int rank, int n) {
      for (const Kind kind : {Kind::allreduce, Kind::broadcast, Kind::allgather}) {
        if (kind != Kind::allreduce && !gccl::test::wide()) continue;
        perform({.kind = kind,
                 .dtype = GCCL_FLOAT32,
                 .count = (16u << 20) + 1,
                 .root = 1,
                 .place = kind == Kind::allgather ? Place::in_place : Place::apart},
                world, rank, n, false);
      }
    });
}

// What a rank sends to another is so long, and holds these numbers; not symmetric.
std::size_t sent_length(int from, int to, std::size_t more) { return std::size_t(from + 2 * to) % 3 * (more + 1); }
int sent_number(int from, int to, std::size_t i) { return 1000 * from + 100 * to + int(i) % 97; }

TEST_CASE("one buffer holds what an alltoallv sends and, elsewhere in it, what it receives") {
  for (const int size : {1, 2, 3, 5})
    for (const Job& job : jobs(size))
      for (const std::size_t more : {0, 3000})
        for (const bool last_only : {false, true})  // the last rank sends to all, and the others receive alone
          with_world(job, [&](GCCL_Comm world, int rank, int n) {
            const auto length = [&](int from, int to) {
              return last_only && from != n - 1 ? 0 : sent_length(from, to, more);
            };
            std::vector<std::size_t> sent, received, from_places, to_places;
            std::size_t end = 0;  // blocks that are sent and those that are received take turns
            for (int r = 0; r < n; ++r) {
              from_places.push_back(end);
              end += sent.emplace_back(length(rank, r)) + 1;
              to_places.push_back(end);
              end += received.emplace_back(length(r, rank)) + 1;
            }
            std::vector<int> x(end, -1);
            for (int r = 0; r < n; ++r)
              for (std::size_t i = 0; i < sent[r]; ++i) x[from_places[r] + i] = sent_number(rank, r, i);
            std::vector<int> due = x;
            for (int r = 0; r < n; ++r)
              for (std::size_t i = 0; i < received[r]; ++i) due[to_places[r] + i] = sent_number(r, rank, i);
            RANK_SUCCESS(GCCL_Alltoallv(x.data(), sent.data(), from_places.data(), x.data(), received.data(),
                                        to_places.data(), GCCL_INT32, world));
            RANK_CHECK(x == due);
          });
}

TEST_CASE("an alltoallv with the same blocks on both sides of one buffer is in place") {
  for (const int size : {1, 2, 3, 5})
    for (const Job& job : jobs(size))
      for (const bool displaced : {false, true})
        with_world(job, [&](GCCL_Comm world, int rank, int n) {
          std::vector<std::size_t> lengths, places;
          std::size_t end = 0;
          for (int r = 0; r < n; ++r) {
            places.push_back(end);
            end += lengths.emplace_back((rank + r) % 3 * 1000);
          }
          std::vector<int> x(end), due(end);
          for (int r = 0; r < n; ++r)
            for (std::size_t i = 0; i < lengths[r]; ++i) {
              x[places[r] + i] = sent_number(rank, r, i);
              due[places[r] + i] = sent_number(r, rank, i);
            }
          // A block without elements may have any place.
          std::vector<std::size_t> others = places;
          for (int r = 0; r < n; ++r)
            if (lengths[r] == 0) others[r] = 7;
          RANK_SUCCESS(GCCL_Alltoallv(x.data(), lengths.data(), displaced ? others.data() : nullptr, x.data(),
                                      lengths.data(), places.data(), GCCL_INT32, world));
          RANK_CHECK(x == due);
        });
}

TEST_CASE("split, reversed, partial and nested communicators") {
  for (const int size : {2, 3, 5, 7, 8})
    for (const Job& job : jobs(size))
      with_world(job, [](GCCL_Comm world, int rank, int n) {
        std::vector<GCCL_Comm> all;
        GCCL_Comm c = GCCL_COMM_NULL;
        RANK_SUCCESS(GCCL_Comm_split(world, 0, -rank, &c));  // reversed
        RANK_CHECK(rank_of(c) == n - 1 - rank);
        all.push_back(c);
        RANK_SUCCESS(GCCL_Comm_split(world, rank % 2, 0, &c));
        RANK_CHECK(rank_of(c) == rank / 2);
        RANK_CHECK(size_of(c) == (n + 1 - rank % 2) / 2);
        all.push_back(c);
        RANK_SUCCESS(GCCL_Comm_split(all[0], rank == 0 ? GCCL_UNDEFINED : 7, 0, &c));
        RANK_CHECK((c == GCCL_COMM_NULL) == (rank == 0));
        if (c) RANK_CHECK(rank_of(c) == n - 1 - rank);
        if (c) all.push_back(c);
        // The last, the first and, where there is one, the second.
        const int listed[] = {n - 1, 0, 1};
        const int length = n > 2 ? 3 : 2;
        const int place = rank == n - 1 ? 0 : rank == 0 ? 1 : rank == 1 ? 2 : -1;
        RANK_SUCCESS(
            GCCL_Comm_create(world, place < 0 && rank % 2 ? nullptr : listed, place < 0 && rank % 2 ? 0 : length, &c));
        RANK_CHECK((c == GCCL_COMM_NULL) == (place < 0));
        if (c) RANK_CHECK(rank_of(c) == place);
        if (c) RANK_CHECK(size_of(c) == length);
        if (c) all.push_back(c);
        std::vector<int> nodes(std::size_t(n), -1);
        RANK_SUCCESS(GCCL_Comm_nodes(world, nodes.data()));
        RANK_CHECK(nodes[0] == 0);
        for (GCCL_Comm& comm : all) {
          const int me = rank_of(comm), m = size_of(comm);
          for (int kind = 0; kind < int(std::size(kKinds)) && !any_reported(); ++kind)
            for (const std::size_t count : {std::size_t(3), std::size_t(5000)})
              perform({.kind = kKinds[kind],
                       .dtype = GCCL_INT32,
                       .count = count,
                       .root = m - 1,
                       .place = Place(kind % 4),
                       .displaced = true,
                       .seed = count},
                      comm, me, m, kind % 2 == 0);
          RANK_SUCCESS(GCCL_Comm_free(&comm));
          RANK_CHECK(comm == GCCL_COMM_NULL);
        }
      });
}

TEST_CASE("many operations in flight on many communicators at once, waited for in another order on each rank") {
  for (const int size : {2, 3, 5})
    for (const Job& job : jobs(size))
      with_world(job, [](GCCL_Comm world, int rank, int n) {
        GCCL_Comm comms[3] = {world, GCCL_COMM_NULL, GCCL_COMM_NULL};
        RANK_SUCCESS(GCCL_Comm_split(world, 0, -rank, &comms[1]));
        RANK_SUCCESS(GCCL_Comm_split(world, rank % 2, rank, &comms[2]));
        Random shared{std::uint64_t(n)}, mine{std::uint64_t(rank) + 99};
        for (int round = 0; round < 20 && !any_reported(); ++round) {
          std::vector<std::unique_ptr<RankCall>> calls;
          std::vector<GCCL_Request> requests;
          for (int i = 0; i < 12; ++i) {
            GCCL_Comm comm = comms[shared.below(3)];
            const int m = size_of(comm);
            CallCase c = random_case(shared, n, 200000);
            c.root %= m;
            // The two halves draw alike, whatever their sizes: nothing else keeps the ranks in step.
            calls.push_back(std::make_unique<RankCall>(c, rank_of(comm), m));
            requests.push_back(GCCL_REQUEST_NULL);
            RANK_SUCCESS(calls.back()->start(comm, &requests.back()));
          }
          for (std::size_t left = requests.size(); left > 0;) {
            const std::size_t i = mine.below(requests.size());
            if (!requests[i]) continue;
            int done = 1;
            if (mine.below(2)) {
              RANK_SUCCESS(GCCL_Test(&requests[i], &done));
            } else {
              RANK_SUCCESS(GCCL_Wait(&requests[i]));
            }
            left -= done == 1;
          }
          for (const auto& call : calls)
            if (const std::string wrong = call->verify(); !wrong.empty()) report(wrong);
        }
        RANK_SUCCESS(GCCL_Comm_free(&comms[2]));
        RANK_SUCCESS(GCCL_Comm_free(&comms[1]));
      });
}

TEST_CASE("an all-reduce of any floats gives every rank the same bits") {
  for (const int size : {2, 3, 4, 5, 7, 8})
    for (const Job& job : jobs(size))
      with_world(job, [](GCCL_Comm world, int rank, int n) {
        for (const GCCL_Dtype dtype : {GCCL_FLOAT16, GCCL_FLOAT32, GCCL_FLOAT64, GCCL_BFLOAT16})
          for (const std::size_t count : {std::size_t(1), std::size_t(7), std::size_t(4099), std::size_t(300007)}) {
            if (count > 5000 && n > 4) continue;
            const std::size_t bytes = count * bytes_of(dtype);
            std::vector<std::byte> in(bytes), out(bytes), all(bytes * std::size_t(n));
            Random random(std::uint64_t(rank) * 1000 + count);
            for (std::size_t i = 0; i < bytes; i += 8) {
              const std::uint64_t eight = random.next();
              std::memcpy(in.data() + i, &eight, std::min<std::size_t>(8, bytes - i));
            }
            // Exponents in the middle: sums that round, and neither infinities nor NaNs.
            const std::size_t stride = bytes_of(dtype);
            auto* const high = reinterpret_cast<unsigned char*>(in.data()) + stride - 1;
            for (std::size_t i = 0; i < count; ++i)
              high[i * stride] = static_cast<unsigned char>((high[i * stride] & 0x83) | 0x38);
            for (const GCCL_Op op : {GCCL_SUM, GCCL_AVG}) {
              RANK_SUCCESS(GCCL_Allreduce(in.data(), out.data(), count, dtype, op, world));
              RANK_SUCCESS(GCCL_Allgather(out.data(), all.data(), count, dtype, world));
              for (int r = 0; r < n; ++r)
                if (std::memcmp(all.data() + std::size_t(r) * bytes, out.data(), bytes) != 0)
                  report("ranks " + std::to_string(rank) + " and " + std::to_string(r) + " have different sums of " +
                         std::to_string(count) + " elements of type " + std::to_string(dtype));
            }
          }
      });
}

// Elements of the caller's own: `bytes` bytes that combine byte by byte.
void add_bytes(const void* in, void* inout, std::size_t count, GCCL_Dtype, void* context) {
  const std::size_t bytes = count * *static_cast<const std::size_t*>(context);
  const auto* const x = static_cast<const std::uint8_t*>(in);
  auto* const sum = static_cast<std::uint8_t*>(inout);
  for (std::size_t i = 0; i < bytes; ++i) sum[i] = std::uint8_t(sum[i] + x[i]);
}

TEST_CASE("types and operations of the caller's own, of every size, freed and made anew") {
  for (const int size : {1, 2, 3, 5})
    for (const Job& job : jobs(size))
      with_world(job, [](GCCL_Comm world, int rank, int n) {
        for (std::size_t element : {std::size_t(1), std::size_t(3), std::size_t(24), std::size_t(64), std::size_t(5000),
                                    std::size_t(65536)}) {
          GCCL_Dtype dtype = -1;
          GCCL_Op op = -1;
          RANK_SUCCESS(GCCL_Type_create(element, &dtype));
          RANK_SUCCESS(GCCL_Op_create(add_bytes, &element, &op));
          for (const std::size_t count : {std::size_t(1), std::size_t(2), std::size_t(17), std::size_t(1000)}) {
            if (count * element > 2 << 20) continue;
            const std::size_t bytes = count * element;
            // What rank 0 gives; each other rank's bytes are larger by 13 than those of the rank before it. And the
            // sums.
            std::vector<std::uint8_t> first(bytes * std::size_t(n)), sums(first.size()), in(first.size()),
                out(first.size()), due(first.size());
            std::uint8_t *const f = first.data(), *const s = sums.data(), *const mine = in.data();
            for (std::size_t i = 0; i < in.size(); ++i) {
              f[i] = std::uint8_t(i * 7 + i / 251);
              mine[i] = std::uint8_t(f[i] + rank * 13);
              s[i] = std::uint8_t(f[i] * n + 13 * n * (n - 1) / 2);
            }
            const std::size_t own = std::size_t(rank) * bytes;
            for (int twice = 0; twice < 2; ++twice) {
              RANK_SUCCESS(GCCL_Allreduce(in.data(), out.data(), count, dtype, op, world));
              if (std::memcmp(out.data(), sums.data(), bytes) != 0)
                return report("allreduce of own elements of " + std::to_string(element) + " bytes is wrong");
            }
            RANK_SUCCESS(GCCL_Reduce_scatter(in.data(), out.data(), count, dtype, op, world));
            if (std::memcmp(out.data(), sums.data() + own, bytes) != 0)
              return report("reduce_scatter of own elements is wrong");
            RANK_SUCCESS(GCCL_Alltoall(in.data(), out.data(), count, dtype, world));
            for (int r = 0; r < n; ++r) {
              std::uint8_t* const block = due.data() + std::size_t(r) * bytes;
              for (std::size_t i = 0; i < bytes; ++i) block[i] = std::uint8_t(f[own + i] + r * 13);
            }
            if (out != due) return report("alltoall of own elements is wrong");
          }
          RANK_SUCCESS(GCCL_Op_free(&op));
          RANK_SUCCESS(GCCL_Type_free(&dtype));
          RANK_CHECK(op == -1);
          RANK_CHECK(dtype == -1);
        }
      });
}

TEST_CASE("an exception of a reduction of the program's own is an error on every rank") {
  for (const bool threaded : {false, true})
    for (const char* backends : {"shm", "tcp"})
      for (const std::size_t count : {std::size_t(1), std::size_t(1) << 18})
        check({.size = 2, .backends = backends, .environment = {{"GCCL_PROGRESS_THREAD", threaded ? "1" : "0"}}},
              [&](int rank) {
                static bool throws = false;
                GCCL_Comm world = begin(), c = GCCL_COMM_NULL;
                RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
                GCCL_Op op = -1;
                RANK_SUCCESS(GCCL_Op_create(
                    [](const void* in, void* inout, std::size_t n, GCCL_Dtype, void*) {
                      if (throws) throw std::runtime_error("of the program's own");
                      for (std::size_t i = 0; i < n; ++i) static_cast<int*>(inout)[i] += static_cast<const int*>(in)[i];
                    },
                    nullptr, &op));
                std::vector<int> in(count, 1), out(count);
                for (int i = 0; i < 3; ++i)  // the short way of repeated calls too
                  RANK_SUCCESS(GCCL_Allreduce(in.data(), out.data(), count, GCCL_INT32, op, c));
                throws = rank == 1;
                GCCL_Result result = GCCL_Allreduce(in.data(), out.data(), count, GCCL_INT32, op, c);
                for (int more = 0; more < 3 && result == GCCL_SUCCESS; ++more) result = GCCL_Barrier(c);
                RANK_CHECK(result == GCCL_ERR_INVALID_USAGE);
                if (!says("of the program's own")) report(std::string("the text is: ") + GCCL_Last_error());
                RANK_SUCCESS(GCCL_Comm_free(&c));
                RANK_CHECK(c == GCCL_COMM_NULL);
                // A rank that has not been notified yet, as it has only sent, is notified when it frees the
                // communicator.
                throws = false;
                RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
                throws = true;
                result = GCCL_Reduce(in.data(), out.data(), count, GCCL_INT32, op, 1, c);
                if (rank == 1) RANK_CHECK(result == GCCL_ERR_INVALID_USAGE);
                const GCCL_Result freed = GCCL_Comm_free(&c);
                RANK_CHECK(freed == (result ? GCCL_SUCCESS : GCCL_ERR_INVALID_USAGE));
                RANK_CHECK(c == GCCL_COMM_NULL);
                RANK_SUCCESS(GCCL_Barrier(world));
                RANK_SUCCESS(GCCL_Op_free(&op));
                RANK_SUCCESS(GCCL_Finalize());
              });
}

TEST_CASE("a barrier lets nobody go before all have come") {
  for (const int size : {2, 3, 8})
    with_world({.size = size, .backends = "shm"}, [](GCCL_Comm world, int rank, int n) {
      for (int late = 0; late < n; ++late) {
        std::int64_t entered = 0, left = 0, last = 0;
        const auto now = [] {
          timespec t;
          clock_gettime(CLOCK_MONOTONIC, &t);
          return std::int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
        };
        if (rank == late) {
          const timespec pause{0, 3000000};
          nanosleep(&pause, nullptr);
        }
        entered = now();
        RANK_SUCCESS(GCCL_Barrier(world));
        left = now();
        RANK_SUCCESS(GCCL_Allreduce(&entered, &last, 1, GCCL_INT64, GCCL_MAX, world));
        RANK_CHECK(left >= last);
      }
    });
}

}  // namespace
