// Threads: on communicators of their own, on one together, and as ranks of one process. Meant for ThreadSanitizer,
// which sees what ranks of one process share; the other builds run it too.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/rank_call.hpp"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

// Random operations of one thread on a communicator of its own, blocking and not.
void work(GCCL_Comm comm, std::uint64_t seed, int rank, int size, int operations) {
  Random shared(seed);
  std::vector<std::unique_ptr<RankCall>> calls;
  std::vector<GCCL_Request> requests;
  for (int i = 0; i < operations; ++i) {
    const CallCase c = random_case(shared, size, 1 << 16);
    calls.push_back(std::make_unique<RankCall>(c, rank, size));
    if (shared.below(2)) {
      RANK_SUCCESS(calls.back()->run(comm));
    } else {
      requests.push_back(GCCL_REQUEST_NULL);
      RANK_SUCCESS(calls.back()->start(comm, &requests.back()));
    }
    if (shared.below(4) == 0) RANK_SUCCESS(GCCL_Progress());
  }
  RANK_SUCCESS(GCCL_Waitall(int(requests.size()), requests.data()));
  for (const auto& call : calls)
    if (const std::string wrong = call->verify(); !wrong.empty()) report(wrong);
}

// Long enough for zero-copy.
void work_on_much(GCCL_Comm comm, int rank, int size) {
  for (const Kind kind : {Kind::allreduce, Kind::alltoall, Kind::reduce_scatter}) {
    RankCall call({.kind = kind, .count = 150000}, rank, size);
    RANK_SUCCESS(call.run(comm));
    if (const std::string wrong = call.verify(); !wrong.empty()) report(wrong);
  }
}

TEST_CASE("threads on different communicators do not disturb each other") {
  for (const Job& job : {Job{.size = 2, .backends = "shm"}, Job{.size = 3, .backends = "tcp"},
                         Job{.size = 2, .backends = "shm", .environment = {{"GCCL_PROGRESS_THREAD", "1"}}}})
    check(job, [&](int rank) {
      GCCL_Comm world = begin();
      std::vector<GCCL_Comm> comms(3);
      for (GCCL_Comm& c : comms) RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
      std::vector<std::thread> threads;
      for (std::size_t t = 0; t < comms.size(); ++t)
        threads.emplace_back([&, t] { work(comms[t], t + 1, rank, job.size, 60); });
      work(world, 99, rank, job.size, 60);
      for (std::thread& t : threads) t.join();
      for (GCCL_Comm& c : comms) RANK_SUCCESS(GCCL_Comm_free(&c));
      RANK_SUCCESS(GCCL_Finalize());
    });
}

TEST_CASE("threads share one communicator: calls are carried out one after the other") {
  for (const char* backends : {"shm", "tcp"})
    check({.size = 2, .backends = backends}, [](int) {
      GCCL_Comm world = begin();
      // Which thread's call meets which is open, so all calls are alike.
      std::vector<std::thread> threads;
      for (int t = 0; t < 3; ++t)
        threads.emplace_back([world, t] {
          for (int i = 0; i < 150; ++i) {
            const double in[3] = {1, 2, 3};
            double out[3] = {};
            if ((i + t) % 3 == 0) {
              GCCL_Request request = GCCL_REQUEST_NULL;
              RANK_SUCCESS(GCCL_Iallreduce(in, out, 3, GCCL_FLOAT64, GCCL_SUM, world, &request));
              for (int done = 0; !done;) RANK_SUCCESS(GCCL_Test(&request, &done));
            } else {
              RANK_SUCCESS(GCCL_Allreduce(in, out, 3, GCCL_FLOAT64, GCCL_SUM, world));
            }
            RANK_CHECK(out[0] == 2);
            RANK_CHECK(out[2] == 6);
          }
        });
      for (std::thread& t : threads) t.join();
      GCCL_Metrics m{};
      m.struct_bytes = sizeof m;
      RANK_SUCCESS(GCCL_Get_performance_metrics(world, &m));
      RANK_CHECK(m.calls[0].calls == 450);
      RANK_SUCCESS(GCCL_Finalize());
    });
}

TEST_CASE("threads are the ranks of one process") {
  for (const char* backends : {"shm", "tcp"})
    check({.size = 1, .backends = backends}, [](int) {
      constexpr int kSize = 3;
      std::vector<std::thread> threads;
      std::atomic<int> finished{0};
      for (int rank = 0; rank < kSize; ++rank)
        threads.emplace_back([rank, &finished] {
          GCCL_Config config = GCCL_CONFIG_INIT;
          config.rank = rank;
          config.size = kSize;
          GCCL_Comm world = GCCL_COMM_NULL, c = GCCL_COMM_NULL;
          RANK_SUCCESS(GCCL_Init(&world, &config));
          if (!world) return;
          work(world, 7, rank, kSize, 80);
          RANK_SUCCESS(GCCL_Comm_split(world, 0, -rank, &c));
          work(c, 8, kSize - 1 - rank, kSize, 20);
          work_on_much(world, rank, kSize);
          RANK_SUCCESS(GCCL_Comm_free(&c));
          RANK_SUCCESS(GCCL_Comm_free(&world));
          ++finished;
        });
      for (std::thread& t : threads) t.join();
      RANK_CHECK(finished == kSize);
      RANK_SUCCESS(GCCL_Finalize());
    });
}

// What a watchdog does: the call ends by the abort, and its thread may not have left it when the communicator is freed.
TEST_CASE("a communicator is aborted and freed while another thread waits in a call on it") {
  enum class Waits { recv, allreduce, wait, test, group, shrink, split };
  for (const char* backends : {"shm", "tcp"}) {
    const std::vector<End> ends = run({.size = 2, .backends = backends, .limit_s = 60}, [](int rank) {
      GCCL_Comm world = begin();
      for (const Waits in :
           {Waits::recv, Waits::allreduce, Waits::wait, Waits::test, Waits::group, Waits::shrink, Waits::split}) {
        GCCL_Comm c = GCCL_COMM_NULL;
        RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
        std::thread waits([&, in, comm = c] {
          double x = 0, y = 0;
          GCCL_Comm made = GCCL_COMM_NULL;
          GCCL_Request request = GCCL_REQUEST_NULL;
          GCCL_Result result = GCCL_ERR_ABORTED;
          int done = 0;
          if (in == Waits::recv) result = GCCL_Recv(&x, 1, GCCL_FLOAT64, 1 - rank, comm);
          // One rank alone, so that it waits.
          if (in == Waits::allreduce && rank == 0) result = GCCL_Allreduce(&x, &y, 1, GCCL_FLOAT64, GCCL_SUM, comm);
          if (in == Waits::shrink && rank == 0) result = GCCL_Comm_shrink(comm, &made);
          if (in == Waits::split && rank == 0) result = GCCL_Comm_split(comm, 0, 0, &made);
          if (in == Waits::wait || in == Waits::test)
            RANK_SUCCESS(GCCL_Irecv(&x, 1, GCCL_FLOAT64, 1 - rank, comm, &request));
          if (in == Waits::wait) result = GCCL_Wait(&request);
          if (in == Waits::test)
            while (!done) result = GCCL_Test(&request, &done);
          if (in == Waits::group) {
            RANK_SUCCESS(GCCL_Group_start());
            RANK_SUCCESS(GCCL_Recv(&x, 1, GCCL_FLOAT64, 1 - rank, comm));
            result = GCCL_Group_end();
          }
          expect(result, GCCL_ERR_ABORTED, "a call that was aborted");
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        RANK_SUCCESS(GCCL_Abort(c, 3));
        const GCCL_Result freed = GCCL_Comm_free(&c);
        RANK_CHECK(freed == GCCL_SUCCESS || freed == GCCL_ERR_ABORTED);
        RANK_CHECK(c == GCCL_COMM_NULL);
        waits.join();
      }
      RANK_SUCCESS(GCCL_Barrier(world));
      RANK_SUCCESS(GCCL_Finalize());
    });
    for (const End& e : ends) CHECK_MESSAGE(e.good(), backends << "\n" << texts(ends));
  }
}

TEST_CASE("a communicator is not freed while another thread waits in a call on it") {
  const std::vector<End> ends = run({.size = 2, .limit_s = 60}, [](int rank) {
    GCCL_Comm world = begin();
    double x = 0;
    if (rank == 1) {
      expect(GCCL_Recv(&x, 1, GCCL_FLOAT64, 0, world), GCCL_ERR_ABORTED, "the other rank's");
    } else {
      std::thread waits([&] { expect(GCCL_Recv(&x, 1, GCCL_FLOAT64, 1, world), GCCL_ERR_ABORTED, "in a thread"); });
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      for (const auto frees : {GCCL_Comm_free, GCCL_Comm_release}) {
        expect(frees(&world), GCCL_ERR_INVALID_USAGE, "while a thread waits");
        expect_text("another thread waits in a call", "while a thread waits");
      }
      RANK_SUCCESS(GCCL_Abort(world, 3));
      GCCL_Finalize();
      waits.join();
      return;
    }
    GCCL_Finalize();
  });
  for (const End& e : ends) CHECK_MESSAGE(e.good(), texts(ends));
}

TEST_CASE("finalize frees nothing under a thread that waits in a call") {
  for (const char* backends : {"shm", "tcp"}) {
    const std::vector<End> ends = run({.size = 2, .backends = backends, .limit_s = 60}, [](int rank) {
      GCCL_Comm world = begin();
      double x = 0;
      if (rank == 1) {
        expect(GCCL_Recv(&x, 1, GCCL_FLOAT64, 0, world), GCCL_ERR_ABORTED, "the other rank's");
      } else {
        std::thread waits([&] { expect(GCCL_Recv(&x, 1, GCCL_FLOAT64, 1, world), GCCL_ERR_ABORTED, "in a thread"); });
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        expect(GCCL_Finalize(), GCCL_ERR_INVALID_USAGE, "while a thread waits");
        expect_text("another thread waits in a call", "while a thread waits");
        RANK_SUCCESS(GCCL_Abort(world, 3));
        waits.join();
      }
      expect(GCCL_Barrier(world), GCCL_ERR_ABORTED, "afterwards");
      GCCL_Finalize();
    });
    for (const End& e : ends) CHECK_MESSAGE(e.good(), backends << "\n" << texts(ends));
  }
}

}  // namespace
