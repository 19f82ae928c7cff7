// Messages that never come: where the other rank has left the communicator, nobody sends or receives them any more, and
// every rank must be notified without a timeout. Messages that are only late must not be taken for missing.
#include <doctest/doctest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace runtime_messages {

constexpr double kSoon = 30;  // a hang is for ever; an idle machine needs some 0.1 s

struct Scene {
  GCCL_Comm c;
  int rank;
  std::vector<float>& data;
  std::size_t n;
};

struct Scenario {
  const char* name;
  std::function<GCCL_Result(const Scene&)> call;
  const char* text;  // what rank 1 reports
};

GCCL_Result then(GCCL_Result before, const std::function<GCCL_Result()>& next) { return before ? before : next(); }

// Rank 1 is the one that waits; rank 0 leaves.
const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> all = {
      {"a receive that nobody sends",
       [](const Scene& s) { return s.rank == 1 ? GCCL_Recv(s.data.data(), s.n, GCCL_FLOAT32, 0, s.c) : GCCL_SUCCESS; },
       "has sent 0 messages where this rank receives 1"},
      {"one message too few",
       [](const Scene& s) {
         if (s.rank > 1) return GCCL_SUCCESS;
         if (s.rank == 0) return GCCL_Send(s.data.data(), s.n, GCCL_FLOAT32, 1, s.c);
         return then(GCCL_Recv(s.data.data(), s.n, GCCL_FLOAT32, 0, s.c),
                     [&] { return GCCL_Recv(s.data.data(), s.n, GCCL_FLOAT32, 0, s.c); });
       },
       "has sent 1 message where this rank receives 2"},
      {"a request",
       [](const Scene& s) {
         if (s.rank != 1) return GCCL_SUCCESS;
         GCCL_Request r = GCCL_REQUEST_NULL;
         return then(GCCL_Irecv(s.data.data(), s.n, GCCL_FLOAT32, 0, s.c, &r), [&] { return GCCL_Wait(&r); });
       },
       "has sent 0 messages where this rank receives 1"},
  };
  return all;
}

void each_job(const std::function<void(const Job&)>& run) {
  for (const int size : {2, 3}) {
    run({.size = size, .backends = "shm"});
    run({.size = size, .backends = "tcp"});
    run({.size = size, .backends = "shm,tcp", .nodes = size == 2 ? std::vector<int>{0, 1} : std::vector<int>{0, 1, 0}});
  }
}

TEST_CASE("a message that a rank which has left does not send is an error on every rank") {
  each_job([](const Job& job) {
    for (const Scenario& scenario : scenarios())
      for (const std::size_t n : {std::size_t(4), std::size_t(1) << 18})
        for (const bool freed : {false, true})
          check(job, [&](int rank) {
            GCCL_Comm world = begin(), c = GCCL_COMM_NULL;
            RANK_SUCCESS(GCCL_Comm_split(world, 0, -rank, &c));
            int mine = -1;
            RANK_SUCCESS(GCCL_Comm_rank(c, &mine));
            std::vector<float> data(n);
            const auto began = Clock::now();
            const GCCL_Result result = scenario.call({c, mine, data, n});
            if (mine == 1) {
              expect(result, GCCL_ERR_MISMATCH, scenario.name);
              // Where the processors are late, the watch finds first that the two wait for each other.
              if (!says("they wait for each other")) {
                expect_text(scenario.text, scenario.name);
                expect_text(freed ? "it calls Comm_free" : "it calls Finalize", scenario.name);
              }
            } else {
              expect(result, GCCL_SUCCESS, scenario.name);
            }
            if (freed) {
              const GCCL_Result left = GCCL_Comm_free(&c);
              expect(left, mine == 1 ? GCCL_SUCCESS : GCCL_ERR_MISMATCH, "Comm_free");
              RANK_SUCCESS(GCCL_Barrier(world));
              RANK_SUCCESS(GCCL_Finalize());
            } else {
              expect(GCCL_Finalize(), mine == 1 ? GCCL_SUCCESS : GCCL_ERR_MISMATCH, "Finalize");
            }
            RANK_CHECK(seconds_since(began) < kSoon);
          });
  });
}

TEST_CASE("a message that a rank which has left does not receive is an error where the sender waits") {
  // Over shared memory long messages wait for their receiver.
  for (const bool freed : {false, true})
    check({.size = 3, .backends = "shm"}, [&](int rank) {
      GCCL_Comm world = begin(), c = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
      std::vector<float> data(1 << 20);
      if (rank == 2) {
        expect(GCCL_Send(data.data(), data.size(), GCCL_FLOAT32, 0, c), GCCL_ERR_MISMATCH, "send");
        expect_text("has received 0 messages where this rank has sent 1", "send");
      }
      const GCCL_Result left = freed ? GCCL_Comm_free(&c) : GCCL_Finalize();
      expect(left, rank == 2 ? GCCL_SUCCESS : GCCL_ERR_MISMATCH, "leaving");
      if (freed) RANK_SUCCESS(GCCL_Finalize());
    });
}

TEST_CASE("messages that a rank has sent before it left are received") {
  each_job([](const Job& job) {
    if (job.size < 3) return;
    check(job, [&](int rank) {
      for (const std::size_t n : {std::size_t(1), std::size_t(4000)})
        for (const bool freed : {false, true}) {
          GCCL_Comm world = begin(), c = GCCL_COMM_NULL;
          RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
          std::vector<float> out(n, 3), in(n);
          constexpr int kMessages = 5;
          if (rank == 0)
            for (int k = 0; k < kMessages; ++k) RANK_SUCCESS(GCCL_Send(out.data(), n, GCCL_FLOAT32, 1, c));
          if (rank == 2) {
            usleep(500000);
            RANK_SUCCESS(GCCL_Send(out.data(), n, GCCL_FLOAT32, 1, c));
          }
          if (rank == 1) {
            // Waits for rank 2, and hears from rank 0 meanwhile that it has left.
            RANK_SUCCESS(GCCL_Recv(in.data(), n, GCCL_FLOAT32, 2, c));
            for (int k = 0; k < kMessages; ++k) {
              in.assign(n, 0);
              RANK_SUCCESS(GCCL_Recv(in.data(), n, GCCL_FLOAT32, 0, c));
              RANK_CHECK(in.back() == 3);
            }
          }
          if (freed) RANK_SUCCESS(GCCL_Comm_free(&c));
          RANK_SUCCESS(GCCL_Finalize());
        }
    });
  });
}

// Over TCP the lower rank dials, and it has nothing to do with the pair before it receives.
TEST_CASE("a short message is sent before the other rank comes to receive it, up and down the ranks") {
  each_job([](const Job& job) {
    for (const bool up : {true, false})
      check(job, [&](int rank) {
        GCCL_Comm world = begin();
        const int right = (rank + 1) % job.size, left = (rank + job.size - 1) % job.size;
        const float mine = float(rank);
        float got = -1;
        RANK_SUCCESS(GCCL_Send(&mine, 1, GCCL_FLOAT32, up ? right : left, world));
        RANK_SUCCESS(GCCL_Barrier(world));
        RANK_SUCCESS(GCCL_Recv(&got, 1, GCCL_FLOAT32, up ? left : right, world));
        RANK_CHECK(got == float(up ? left : right));
        RANK_SUCCESS(GCCL_Finalize());
      });
  });
}

TEST_CASE("thousands of messages in flight end in another order than they began, or all at once with an error") {
  constexpr int kEach = 10000;
  for (const char* backends : {"shm", "tcp"})
    check({.size = 3, .backends = backends}, [](int rank) {
      GCCL_Comm world = begin();
      if (rank == 0) {
        std::vector<int> got(2 * kEach, -1);
        std::vector<GCCL_Request> requests(got.size(), GCCL_REQUEST_NULL);
        const auto receive = [&](std::size_t i) {  // from rank 1 and rank 2 by turns
          RANK_SUCCESS(GCCL_Irecv(&got[i], 1, GCCL_INT32, 1 + int(i % 2), world, &requests[i]));
        };
        for (std::size_t i = 0; i < got.size(); ++i) receive(i);
        // All of rank 2's end while the ones between them wait.
        for (std::size_t i = got.size(); i-- > 0;)
          if (i % 2 == 1) RANK_SUCCESS(GCCL_Wait(&requests[i]));
        RANK_CHECK(got[0] == -1);
        RANK_SUCCESS(GCCL_Send(nullptr, 0, GCCL_INT32, 1, world));
        RANK_SUCCESS(GCCL_Waitall(int(requests.size()), requests.data()));
        for (std::size_t i = 0; i < got.size(); ++i) RANK_CHECK(got[i] == int(i));
        for (std::size_t i = 0; i < got.size(); ++i) receive(i);
        RANK_SUCCESS(GCCL_Send(nullptr, 0, GCCL_INT32, 1, world));
        for (GCCL_Request& r : requests) RANK_CHECK(GCCL_Wait(&r) == GCCL_ERR_ABORTED);
      } else {
        if (rank == 1) RANK_SUCCESS(GCCL_Recv(nullptr, 0, GCCL_INT32, 0, world));
        for (int i = rank - 1; i < 2 * kEach; i += 2) RANK_SUCCESS(GCCL_Send(&i, 1, GCCL_INT32, 0, world));
        if (rank == 1) RANK_SUCCESS(GCCL_Recv(nullptr, 0, GCCL_INT32, 0, world));
        if (rank == 1) RANK_SUCCESS(GCCL_Abort(world, 7));
      }
      GCCL_Finalize();
    });
}

TEST_CASE("a message of 33 MiB that an I-form sends is read while its sender computes") {
  int over[2];
  REQUIRE(pipe(over) == 0);
  for (const char* how : {"send", "broadcast"})
    check({.size = 2, .backends = "shm"}, [&](int rank) {
      GCCL_Comm world = begin();
      std::vector<char> data(std::size_t(33) << 20, char(rank));
      GCCL_Request request = GCCL_REQUEST_NULL;
      const bool sends = std::string(how) == "send";
      char byte = 0;
      RANK_SUCCESS(GCCL_Barrier(world));
      if (rank == 1) {
        RANK_SUCCESS(sends ? GCCL_Recv(data.data(), data.size(), GCCL_INT8, 0, world)
                           : GCCL_Broadcast(data.data(), data.size(), GCCL_INT8, 0, world));
        RANK_CHECK(std::count(data.begin(), data.end(), 0) == std::ptrdiff_t(data.size()));
        RANK_CHECK(write(over[1], &byte, 1) == 1);
      } else {
        RANK_SUCCESS(sends ? GCCL_Isend(data.data(), data.size(), GCCL_INT8, 1, world, &request)
                           : GCCL_Ibroadcast(data.data(), data.size(), GCCL_INT8, 0, world, &request));
        // In no call of GCCL's until the other rank has it.
        pollfd readable{.fd = over[0], .events = POLLIN, .revents = 0};
        RANK_CHECK(poll(&readable, 1, int(kSoon) * 1000) == 1);
        RANK_SUCCESS(GCCL_Wait(&request));
        RANK_CHECK(read(over[0], &byte, 1) == 1);
      }
      RANK_SUCCESS(GCCL_Finalize());
    });
  close(over[0]);
  close(over[1]);
}

TEST_CASE("short messages to oneself are sent before they are received, and come in order") {
  check({.size = 2}, [](int rank) {
    GCCL_Comm world = begin();
    std::vector<int> in(30000), out(30000);
    std::iota(in.begin(), in.end(), rank);
    GCCL_Request long_one = GCCL_REQUEST_NULL;
    for (int round = 0; round < 200; ++round) {
      for (const std::size_t n : {3u, 0u, 2000u}) RANK_SUCCESS(GCCL_Send(&in[n], n, GCCL_INT32, rank, world));
      RANK_SUCCESS(GCCL_Isend(in.data(), in.size(), GCCL_INT32, rank, world, &long_one));  // waits, and those behind it
      GCCL_Request last = GCCL_REQUEST_NULL;
      RANK_SUCCESS(GCCL_Isend(&in[7], 5, GCCL_INT32, rank, world, &last));
      for (const std::size_t n : {3u, 0u, 2000u}) {
        RANK_SUCCESS(GCCL_Recv(out.data(), n, GCCL_INT32, rank, world));
        RANK_CHECK(std::equal(out.begin(), out.begin() + std::ptrdiff_t(n), in.begin() + std::ptrdiff_t(n)));
      }
      RANK_SUCCESS(GCCL_Recv(out.data(), in.size(), GCCL_INT32, rank, world));
      RANK_CHECK(out == in);
      RANK_SUCCESS(GCCL_Recv(out.data(), 5, GCCL_INT32, rank, world));
      RANK_CHECK(std::equal(out.begin(), out.begin() + 5, in.begin() + 7));
      RANK_SUCCESS(GCCL_Wait(&long_one));
      RANK_SUCCESS(GCCL_Wait(&last));
    }
    RANK_SUCCESS(GCCL_Finalize());
  });
  check({.size = 1}, [](int) {
    GCCL_Comm world = begin();
    const double sent[4] = {};
    double got[4] = {1, 1, 1, 1};
    RANK_SUCCESS(GCCL_Send(sent, 4, GCCL_FLOAT64, 0, world));
    RANK_CHECK(GCCL_Recv(got, 3, GCCL_FLOAT64, 0, world) == GCCL_ERR_MISMATCH);
    RANK_CHECK(std::strstr(GCCL_Last_error(), "the message is send of 4 x f64"));
    RANK_CHECK(got[0] == 1);
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("short messages to oneself behind a long one are sent when that one has been received") {
  check({.size = 1}, [](int) {
    GCCL_Comm world = begin();
    std::vector<int> in(30000), out(30000);
    std::iota(in.begin(), in.end(), 0);
    GCCL_Request long_one = GCCL_REQUEST_NULL;
    std::vector<GCCL_Request> sent(40, GCCL_REQUEST_NULL);  // of 2000 bytes each: 32 of them find room
    RANK_SUCCESS(GCCL_Isend(in.data(), in.size(), GCCL_INT32, 0, world, &long_one));
    for (std::size_t i = 0; i < sent.size(); ++i) RANK_SUCCESS(GCCL_Isend(&in[i], 500, GCCL_INT32, 0, world, &sent[i]));
    RANK_SUCCESS(GCCL_Recv(out.data(), in.size(), GCCL_INT32, 0, world));
    RANK_CHECK(out == in);
    RANK_SUCCESS(GCCL_Wait(&long_one));
    for (std::size_t i = 0; i < 32; ++i) RANK_SUCCESS(GCCL_Wait(&sent[i]));
    for (std::size_t i = 0; i < sent.size(); ++i) {
      RANK_SUCCESS(GCCL_Recv(out.data(), 500, GCCL_INT32, 0, world));
      RANK_CHECK(std::equal(out.begin(), out.begin() + 500, in.begin() + std::ptrdiff_t(i)));
      if (i + 32 < sent.size()) RANK_SUCCESS(GCCL_Wait(&sent[i + 32]));
    }
    RANK_SUCCESS(GCCL_Finalize());
  });
}

TEST_CASE("a message to oneself that nobody receives is an error on every rank when the communicator is freed") {
  const char text[] = "what nobody receives";
  for (const int size : {1, 2})
    for (const char* how : {"freed", "left to Finalize", "the world's"})
      check({.size = size}, [&](int rank) {
        GCCL_Comm world = begin(), c = std::string(how) == "the world's" ? world : copy_of(world);
        char got[sizeof text] = "";
        RANK_SUCCESS(GCCL_Send(text, sizeof text, GCCL_INT8, rank, c));
        RANK_SUCCESS(GCCL_Recv(got, sizeof text, GCCL_INT8, rank, c));
        if (rank == 0)
          for (int i = 0; i < 3; ++i) RANK_SUCCESS(GCCL_Send(text, sizeof text, GCCL_INT8, rank, c));
        const bool freed = std::string(how) == "freed";
        expect(freed ? GCCL_Comm_free(&c) : GCCL_Finalize(), GCCL_ERR_MISMATCH, how);
        if (c == world || freed) expect_text("or itself, messages that it has not received", how);
        if (freed) RANK_SUCCESS(GCCL_Finalize());
      });
}

// Their signatures are the same: user-defined types have one, and counts are folded into it.
TEST_CASE("a message to oneself of another length is a mismatch, and writes nothing") {
  for (const bool types : {true, false})
    check({.size = 1}, [types](int) {
      GCCL_Comm world = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Init(&world, nullptr));
      GCCL_Dtype small = GCCL_UINT8, large = GCCL_UINT8;
      if (types) {
        RANK_SUCCESS(GCCL_Type_create(8, &small));
        RANK_SUCCESS(GCCL_Type_create(65536, &large));
      }
      const std::vector<char> in(65536, 'x');
      std::vector<char> out(65536, 0);
      GCCL_Request request = GCCL_REQUEST_NULL;
      RANK_SUCCESS(GCCL_Irecv(out.data(), 1, small, 0, world, &request));
      RANK_CHECK(GCCL_Send(in.data(), types ? 1 : std::size_t(1) << 32, large, 0, world) == GCCL_ERR_MISMATCH);
      RANK_CHECK(
          std::strstr(GCCL_Last_error(), types ? "of 65536 bytes, and 8 are due" : "of 4294967296 bytes, and 1"));
      RANK_CHECK(GCCL_Wait(&request) == GCCL_ERR_MISMATCH);
      RANK_CHECK(std::count(out.begin(), out.end(), 'x') == 0);
      RANK_SUCCESS(GCCL_Finalize());
    });
}

}  // namespace runtime_messages
