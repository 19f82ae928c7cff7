// The network between ranks: it breaks while messages travel, a firewall stands in it from the beginning, or a rank is
// merely slow. Real processes in networks of their own.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/child.hpp"
#include "tests/support/own_network.hpp"
#include "tests/support/rank_job.hpp"

using namespace ranks;

namespace {

// Runs the piece in a process with a network of its own, and returns what it returns; "no network" where the system
// does not give it one.
std::string in_own_network(const std::function<std::string()>& piece) {
  const auto text = gccl::test::in_child([&] {
    const std::string s = own_network() && set_loopback(true) ? piece() : "no network";
    return std::vector<char>(s.begin(), s.end());
  });
  return {text.begin(), text.end()};
}

bool skipped(const std::string& text) {
  if (text != "no network") return false;
  MESSAGE("skipped: this system gives no network namespace to this user");
  return true;
}

// Prints that the rank is here, flushed.
void say(const char* what) {
  std::printf("%s\n", what);
  std::fflush(stdout);
}

Job over_tcp(int size) { return {.size = size, .backends = "tcp", .limit_s = 90}; }

}  // namespace

TEST_CASE("a machine that vanishes with data in flight, or without, is missed after the limit that was set") {
  for (const std::size_t count : {std::size_t(1), std::size_t(1) << 20}) {
    CAPTURE(count);
    const std::string text = in_own_network([&] {
      Job job = over_tcp(2);
      job.environment["GCCL_TCP_PEER_TIMEOUT_MS"] = "3000";
      Running running(job, [&](int rank) {
        GCCL_Comm world = begin();
        std::vector<float> in(count), out(count);
        GCCL_Result result = GCCL_SUCCESS;
        for (int i = 0; result == GCCL_SUCCESS; ++i) {
          if (i == 20) say("here");
          result = GCCL_Allreduce(in.data(), out.data(), count, GCCL_FLOAT32, GCCL_SUM, world);
        }
        const std::string said = GCCL_Last_error();
        RANK_CHECK(result == GCCL_ERR_PEER_LOST);
        // Own rank, call, peer.
        for (const std::string& part :
             {"rank " + std::to_string(rank) + " of 2", std::string("allreduce #"), "rank " + std::to_string(1 - rank)})
          if (said.find(part) == std::string::npos) report("\"" + said + "\" does not say \"" + part + "\"");
        std::_Exit(any_reported() ? 1 : 0);
      });
      if (!running.await(0, "here") || !running.await(1, "here")) return std::string("not begun");
      if (!set_loopback(false)) return std::string("cannot set loopback down");
      const auto ends = running.wait();
      return ends[0].good() && ends[1].good() ? std::string("good") : texts(ends);
    });
    if (skipped(text)) return;
    CHECK(text == "good");
  }
}

TEST_CASE("a cable that is out for longer than that limit holds up ranks whose connections are mended, and no more") {
  for (const std::size_t count : {std::size_t(2), std::size_t(1) << 20}) {
    CAPTURE(count);
    const std::string text = in_own_network([&] {
      Job job = over_tcp(2);
      job.environment["GCCL_TCP_PEER_TIMEOUT_MS"] = "2000";
      job.environment["GCCL_LINK_LOST_MS"] = "30000";
      Running running(job, [&](int) {
        GCCL_Comm world = begin();
        std::vector<float> in(count, 1), out(count);
        GCCL_Metrics metrics = {};
        metrics.struct_bytes = sizeof metrics;
        const auto begun = Clock::now();
        for (int i = 0; out[0] == 0 && !any_reported(); ++i) {
          if (i == 20) say("here");
          in[0] = Clock::now() - begun > std::chrono::seconds(9);
          RANK_SUCCESS(GCCL_Allreduce(in.data(), out.data(), count, GCCL_FLOAT32, GCCL_SUM, world));
          RANK_CHECK(out[count - 1] == 2);
        }
        RANK_SUCCESS(GCCL_Get_performance_metrics(world, &metrics));
        RANK_CHECK(metrics.reconnects > 0);
        RANK_SUCCESS(GCCL_Finalize());
      });
      if (!running.await(0, "here") || !running.await(1, "here")) return std::string("not begun");
      if (!set_loopback(false)) return std::string("cannot set loopback down");
      ::sleep(5);
      if (!set_loopback(true)) return std::string("cannot set loopback up");
      const auto ends = running.wait();
      return ends[0].good() && ends[1].good() ? std::string("good") : texts(ends);
    });
    if (skipped(text)) return;
    CHECK(text == "good");
  }
}

TEST_CASE("a rank that is stopped for longer than that, or computes, with messages waiting for it, is not lost") {
  Job job = over_tcp(2);
  job.environment["GCCL_TCP_PEER_TIMEOUT_MS"] = "2000";
  Running running(job, [&](int rank) {
    GCCL_Comm world = begin();
    std::vector<int> x(1 << 24, rank);
    RANK_SUCCESS(GCCL_Barrier(world));
    say("here");
    ::usleep(300000);
    // More than any buffer holds: the window closes while rank 1 is stopped.
    if (rank == 0) RANK_SUCCESS(GCCL_Send(x.data(), x.size(), GCCL_INT32, 1, world));
    if (rank == 1) RANK_SUCCESS(GCCL_Recv(x.data(), x.size(), GCCL_INT32, 0, world));
    RANK_CHECK(x.front() == 0);
    RANK_CHECK(x.back() == 0);
    if (rank == 1) ::sleep(4);
    RANK_SUCCESS(GCCL_Allreduce(GCCL_IN_PLACE, x.data(), 4, GCCL_INT32, GCCL_SUM, world));
    RANK_SUCCESS(GCCL_Finalize());
  });
  REQUIRE(running.await(0, "here"));
  REQUIRE(running.await(1, "here"));
  running.kill(1, SIGSTOP);
  ::sleep(6);
  running.kill(1, SIGCONT);
  const auto ends = running.wait();
  CHECK_MESSAGE((ends[0].good() && ends[1].good()), texts(ends));
}

TEST_CASE("a rank that is stopped before the first connection is waited for, whichever side dials") {
  for (const int stopped : {0, 1}) {
    CAPTURE(stopped);
    Job job = over_tcp(2);
    job.environment["GCCL_TCP_PEER_TIMEOUT_MS"] = "2000";  // an attempt takes 1 s
    Running running(job, [&](int rank) {
      GCCL_Comm world = begin();
      say("here");
      ::usleep(500000);
      int in = 1, out = 0;
      RANK_SUCCESS(GCCL_Allreduce(&in, &out, 1, GCCL_INT32, GCCL_SUM, world));
      RANK_CHECK(out == 2);
      if (rank == stopped) say("added");
      RANK_SUCCESS(GCCL_Finalize());
    });
    REQUIRE(running.await(0, "here"));
    REQUIRE(running.await(1, "here"));
    running.kill(stopped, SIGSTOP);
    ::sleep(6);
    running.kill(stopped, SIGCONT);
    const auto ends = running.wait();
    CHECK_MESSAGE((ends[0].good() && ends[1].good()), texts(ends));
  }
}

TEST_CASE(
    "ranks that cannot reach each other are found while they start, on every rank, with both names and the reason") {
  // Each rank in a network of its own; they meet through files.
  const std::string text = in_own_network([] {
    Job job = over_tcp(3);
    job.nodes = {0, 1, 2};
    job.environment["GCCL_START_TIMEOUT_MS"] = "6000";
    const auto ends = run(job, [](int rank) {
      RANK_CHECK(own_network() && set_loopback(true));
      RANK_CHECK(add_address(("10.99.99." + std::to_string(rank + 1)).c_str()));
      GCCL_Comm world = GCCL_COMM_NULL;
      RANK_CHECK(GCCL_Init(&world, nullptr) == GCCL_ERR_PEER_LOST);
      const std::string said = GCCL_Last_error();
      for (const char* part : {"cannot reach rank ", " at 10.99.99.", "): 10.99.99.", "firewall"})
        if (said.find(part) == std::string::npos) report("\"" + said + "\" does not say \"" + part + "\"");
    });
    for (const End& e : ends)
      if (!e.good()) return texts(ends);
    return std::string("good");
  });
  if (skipped(text)) return;
  CHECK(text == "good");
}
