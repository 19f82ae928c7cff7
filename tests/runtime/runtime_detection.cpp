// Ranks on networks of their own, each behind a cable: one is cut off, and nobody is notified.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "libgccl/communicator/recovery/datagram.hpp"
#include "libgccl/fault/membership.hpp"
#include "libgccl/net/digest.hpp"
#include "tests/support/child.hpp"
#include "tests/support/own_network.hpp"
#include "tests/support/rank_job.hpp"
#include "tests/support/shell.hpp"

using namespace ranks;
namespace fault = gccl::fault;

namespace {

bool quietly(const std::string& command) { return gccl::test::shell("(" + command + ") >/dev/null 2>&1") == 0; }

// For ranks whose parent has the bridge "middle": makes this rank's machine, with the address 10.98.0.(rank + 1). Its
// first interface may be one that no other machine reaches, under the same address on each, as Docker's.
bool plug_in(int rank, bool docker = false) {
  return own_network() &&
         (!docker || quietly("ip link add docker0 type bridge && ip addr add 172.17.0.1/16 dev docker0 && "
                             "ip link set docker0 up")) &&
         quietly(fmt::format("ip link set lo up && ip link add cable type veth peer name v{0} netns {1} && "
                             "ip addr add 10.98.0.{2}/24 dev cable && ip link set cable up && "
                             "nsenter -t {1} -n ip link set v{0} master middle up",
                             rank, ::getppid(), rank + 1));
}

double now_ms() { return std::chrono::duration<double, std::milli>(Clock::now().time_since_epoch()).count(); }

// On machines of their own, ranks all-reduce until that fails; `hurt` is done to the last of them once all are here.
// The others shrink and go on. What went wrong, or "good", or "no network".
std::string without_the_last(int size, const std::function<void(const Running&)>& hurt, bool last_returns,
                             bool docker = false) {
  const auto piece = [&]() -> std::string {
    if (!own_network() || !quietly("ip link add middle type bridge && ip link set middle up")) return "no network";
    Job job = {.size = size, .backends = "tcp", .limit_s = 60};
    for (int r = 0; r < size; ++r) job.nodes.push_back(r);
    job.environment["GCCL_DETECTION_MS"] = "500";
    Running running(job, [&](int rank) {
      if (!plug_in(rank, docker)) return report("no network");
      if (!docker) ::setenv("GCCL_ADDRESS", fmt::format("10.98.0.{}", rank + 1).c_str(), 1);
      GCCL_Comm world = begin(), smaller = GCCL_COMM_NULL;
      double x = 1, sum = 0;
      GCCL_Result result = GCCL_SUCCESS;
      for (int i = 0; result == GCCL_SUCCESS; ++i) {
        if (i == 10) std::printf("here\n"), std::fflush(stdout);
        if (i > 10) ::usleep(5000);
        result = GCCL_Allreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, world);
      }
      std::printf("noticed %.1f: %s\n", now_ms(), GCCL_Last_error());
      expect(result, GCCL_ERR_PEER_LOST, "allreduce");
      expect_text("(GCCL_DETECTION_MS)", "why");
      result = GCCL_Comm_shrink(world, &smaller);
      if (rank == size - 1) {
        RANK_CHECK(result == GCCL_ERR_PEER_LOST);
      } else {
        RANK_SUCCESS(result);
        RANK_SUCCESS(GCCL_Allreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, smaller));
        RANK_CHECK(sum == size - 1);
      }
      std::printf("done %.1f\n", now_ms());
      std::fflush(stdout);
      ::usleep(700000);  // on machines of their own none sees another's process end
      ::_exit(any_reported());
    });
    for (int r = 0; r < size; ++r)
      if (!running.await(r, "here\n")) {
        const std::string all = texts(running.wait());
        return all.find("no network") != std::string::npos ? "no network" : "not begun: " + all;
      }
    ::usleep(300000);  // all have been heard once
    const double cut = now_ms();
    hurt(running);
    if (!last_returns) ::usleep(1000000), running.kill(size - 1, SIGKILL);
    const std::vector<End> ends = running.wait();
    if (std::getenv("GCCL_TEST_SHOW")) std::fprintf(stderr, "cut %.1f\n%s\n", cut, texts(ends).c_str());
    for (int r = 0; r < size; ++r)
      if (!ends[std::size_t(r)].good() && (last_returns || r < size - 1)) return texts(ends);
    return "good";
  };
  const auto text = gccl::test::in_child([&] {
    const std::string s = piece();
    return std::vector<char>(s.begin(), s.end());
  });
  return {text.begin(), text.end()};
}

// On four machines: two ranks, a process that joins them and then stands still, and one that takes its place. What went
// wrong, or "good", or "no network".
std::string replaced_on_machines(bool docker) {
  const auto piece = [&]() -> std::string {
    if (!own_network() || !quietly("ip link add middle type bridge && ip link set middle up")) return "no network";
    const gccl::test::Folder folder;
    Job job = {.size = 4, .backends = "tcp", .nodes = {0, 1, 2, 3}, .limit_s = 60};
    job.environment["GCCL_DETECTION_MS"] = "500";
    const std::string go = folder.path / "go";
    Running running(job, [&](int process) {
      if (!plug_in(process, docker)) return report("no network");
      if (!docker) ::setenv("GCCL_ADDRESS", fmt::format("10.98.0.{}", process + 1).c_str(), 1);
      GCCL_Comm comm = GCCL_COMM_NULL, whole = GCCL_COMM_NULL;
      while (process == 3 && ::access(go.c_str(), F_OK) != 0) ::usleep(10000);
      if (process < 2) {
        GCCL_Config config = GCCL_CONFIG_INIT;
        config.rank = process;
        config.size = 2;
        GCCL_Comm world = GCCL_COMM_NULL;
        RANK_SUCCESS(GCCL_Init(&world, &config));
        RANK_SUCCESS(GCCL_Comm_grow(world, 1, 30000, &comm));
      } else {
        RANK_SUCCESS(GCCL_Join(&comm, nullptr));
      }
      double mine = process + 1, sum = 0;
      GCCL_Result result = GCCL_SUCCESS;
      for (int i = 0; process < 3 && result == GCCL_SUCCESS; ++i) {
        if (i == 10) std::printf("here\n"), std::fflush(stdout);
        if (i > 10) ::usleep(5000);
        result = GCCL_Allreduce(&mine, &sum, 1, GCCL_FLOAT64, GCCL_SUM, comm);
        if (result == GCCL_SUCCESS) RANK_CHECK(sum == 6);
      }
      if (process < 2) {
        expect(result, GCCL_ERR_PEER_LOST, "allreduce");
        expect_text("(GCCL_DETECTION_MS)", "why");
        if (process == 0) std::fclose(std::fopen(go.c_str(), "w"));
        RANK_SUCCESS(GCCL_Comm_grow(comm, 1, 30000, &whole));
      } else {
        whole = comm;
      }
      int rank = -1, size = -1;
      RANK_SUCCESS(GCCL_Comm_rank(whole, &rank));
      RANK_SUCCESS(GCCL_Comm_size(whole, &size));
      RANK_CHECK(size == 3);
      RANK_CHECK(rank == std::min(process, 2));
      RANK_SUCCESS(GCCL_Allreduce(&mine, &sum, 1, GCCL_FLOAT64, GCCL_SUM, whole));
      RANK_CHECK(sum == 7);
      std::fflush(stdout);
      ::usleep(700000);  // on machines of their own none sees another's process end
      ::_exit(any_reported());
    });
    for (int r = 0; r < 3; ++r)
      if (!running.await(r, "here\n")) {
        const std::string all = texts(running.wait());
        return all.find("no network") != std::string::npos ? "no network" : "not begun: " + all;
      }
    ::usleep(300000);  // all have been heard once
    running.kill(2, SIGSTOP);
    ::usleep(3500000);
    running.kill(2, SIGKILL);
    const std::vector<End> ends = running.wait();
    for (const int r : {0, 1, 3})
      if (!ends[std::size_t(r)].good()) return texts(ends);
    return "good";
  };
  const auto text = gccl::test::in_child([&] {
    const std::string s = piece();
    return std::vector<char>(s.begin(), s.end());
  });
  return {text.begin(), text.end()};
}

// The last of three ranks receives no more datagrams from a moment on, and its own get through: the others, which
// agree, wait for it no longer than until it finds that it hears nobody.
std::string with_one_deaf() {
  const auto piece = [&]() -> std::string {
    if (!own_network() || !quietly("ip link add middle type bridge && ip link set middle up")) return "no network";
    Job job = {.size = 3, .backends = "tcp", .nodes = {0, 1, 2}, .limit_s = 90};
    job.environment["GCCL_DETECTION_MS"] = "2000";
    Running running(job, [&](int rank) {
      if (!plug_in(rank)) return report("no network");
      // Rules come behind that for this machine's addresses, unless that is moved.
      if (rank == 2 && !quietly("ip rule add pref 10 lookup local && ip rule del pref 0")) return report("no network");
      ::setenv("GCCL_ADDRESS", fmt::format("10.98.0.{}", rank + 1).c_str(), 1);
      GCCL_Comm world = begin(), smaller = GCCL_COMM_NULL;
      double x = 1, sum = 0;
      for (int i = 0; i < 10; ++i) RANK_SUCCESS(GCCL_Allreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, world));
      ::usleep(2000000);  // all have been heard once, by so many pings
      if (rank == 2 && !quietly("ip rule add pref 1 iif cable ipproto udp blackhole")) return report("no network");
      std::uint64_t flags = 1;
      expect(GCCL_Comm_agree(world, &flags), GCCL_ERR_PEER_LOST, "agree");
      if (rank < 2) {
        expect_text("lost rank 2", "why");
        expect(GCCL_Barrier(world), GCCL_ERR_PEER_LOST, "barrier");
        RANK_CHECK(std::string(GCCL_Last_error()).find("lost rank 2: lost") == std::string::npos);
        RANK_SUCCESS(GCCL_Comm_shrink(world, &smaller));
        RANK_SUCCESS(GCCL_Allreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, smaller));
        RANK_CHECK(sum == 2);
      }
      std::printf("done\n");
      std::fflush(stdout);
      ::pause();  // alive as long as another is in its calls
    });
    for (int r = 0; r < 3; ++r)
      if (!running.await(r, "done\n")) {
        const std::string all = texts(running.wait());
        return all.find("no network") != std::string::npos ? "no network" : "not done: " + all;
      }
    for (int r = 0; r < 3; ++r) running.kill(r, SIGKILL);
    const std::string all = texts(running.wait());
    return all.find("FAILED") == std::string::npos ? "good" : all;
  };
  const auto text = gccl::test::in_child([&] {
    const std::string s = piece();
    return std::vector<char>(s.begin(), s.end());
  });
  return {text.begin(), text.end()};
}

// Two ranks on machines between which TCP travels, and no UDP: each of them says once that it does not hear the other,
// and they go on.
std::string without_datagrams() {
  const auto piece = [&]() -> std::string {
    if (!own_network() || !quietly("ip link add middle type bridge && ip link set middle up")) return "no network";
    Job job = {.size = 2, .backends = "tcp", .nodes = {0, 1}, .limit_s = 60};
    job.environment["GCCL_DETECTION_MS"] = "500";
    const std::vector<End> ends = run(job, [&](int rank) {
      if (!plug_in(rank) || !quietly("ip rule add pref 1 ipproto udp blackhole")) return report("no network");
      const bool done = in_pid_namespace([] {  // nor does either see the other's process
        GCCL_Comm world = begin();
        double x = 1, sum = 0;
        for (int i = 0; i < 300; ++i) {
          RANK_SUCCESS(GCCL_Allreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, world));
          ::usleep(10000);
        }
        RANK_SUCCESS(GCCL_Finalize());
      });
      if (!done) report("no network");
    });
    const std::string all = texts(ends);
    if (all.find("no network") != std::string::npos) return "no network";
    for (const int r : {0, 1}) {
      const std::string said = fmt::format(
          "rank {} has heard no datagram of rank {}, to which it sends them at 10.98.0.{}:", r, 1 - r, 2 - r);
      const std::string& text = ends[std::size_t(r)].text;
      if (!ends[std::size_t(r)].good() || text.find(said) == std::string::npos || text.find(said) != text.rfind(said))
        return all;
    }
    return "good";
  };
  const auto text = gccl::test::in_child([&] {
    const std::string s = piece();
    return std::vector<char>(s.begin(), s.end());
  });
  return {text.begin(), text.end()};
}

// Of this process: the first datagram with a decision of that epoch is lost on its way. 0: none is.
fault::Epoch decision_lost_in = 0;

// Ranks 0 and 1, and processes that join, on machines of their own: the decision of what they do together is lost on
// its way to rank 1, and rank 0 leaves at once. What went wrong, or "good", or "no network".
std::string with_lost_decision(fault::Epoch epoch, int processes, const std::function<void(int process)>& body) {
  const auto piece = [&]() -> std::string {
    if (!own_network() || !quietly("ip link add middle type bridge && ip link set middle up")) return "no network";
    Job job = {.size = processes, .backends = "tcp", .limit_s = 30};
    for (int r = 0; r < processes; ++r) job.nodes.push_back(r);
    job.environment["GCCL_DETECTION_MS"] = "0";  // nobody is called silent: a rank that is not answered hangs
    const std::vector<End> ends = run(job, [&](int process) {
      ::setenv("GCCL_ADDRESS", fmt::format("10.98.0.{}", process + 1).c_str(), 1);
      if (!plug_in(process)) return report("no network");
      const bool done = in_pid_namespace([&] {  // nor does any see the other's process
        if (process == 0) decision_lost_in = epoch;
        body(process);
        RANK_CHECK(decision_lost_in == 0);
      });
      if (!done) report("no network");
    });
    const std::string all = texts(ends);
    if (all.find("no network") != std::string::npos) return "no network";
    return std::ranges::all_of(ends, &End::good) ? "good" : all;
  };
  const auto text = gccl::test::in_child([&] {
    const std::string s = piece();
    return std::vector<char>(s.begin(), s.end());
  });
  return {text.begin(), text.end()};
}

bool skipped_without_cables(const std::string& text) {
  if (text != "no network") return false;
  MESSAGE("skipped: this system lets this user make no networks and cables");
  return true;
}

}  // namespace

// What the library sends comes by here.
extern "C" ssize_t sendto(int fd, const void* data, size_t size, int flags, const sockaddr* to, socklen_t to_bytes) {
  using Function = ssize_t (*)(int, const void*, size_t, int, const sockaddr*, socklen_t);
  static const auto next = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "sendto"));
  if (decision_lost_in != 0 && size > gccl::DatagramHeader::kBytes + sizeof(gccl::Digest)) {
    gccl::BytesIn in({static_cast<const std::byte*>(data), size - sizeof(gccl::Digest)});
    const bool membership = gccl::DatagramHeader::read(in).kind == gccl::DatagramHeader::Kind::membership;
    const auto m = membership ? fault::MembershipMessage::decoded(in.rest()) : std::nullopt;
    if (m && m->kind == fault::MembershipMessage::Kind::agreement && m->epoch == decision_lost_in &&
        m->agreement.kind == fault::AgreementMessage::Kind::decide) {
      decision_lost_in = 0;
      return ssize_t(size);
    }
  }
  return next(fd, data, size, flags, to, to_bytes);
}

TEST_CASE("a rank that missed a decision still gets it from one that leaves at once") {
  const std::string agreed = with_lost_decision(1, 2, [](int rank) {
    GCCL_Comm world = begin();
    double x = 1, sum = 0;
    std::uint64_t flags = 6;
    const GCCL_Result result = GCCL_Allreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, world);
    // Rank 0 may have gone on, and revoked it, while rank 1 is still in it.
    RANK_CHECK(result == GCCL_SUCCESS || (rank == 1 && result == GCCL_ERR_REVOKED));
    if (rank == 0) RANK_SUCCESS(GCCL_Comm_revoke(world));
    expect(GCCL_Barrier(world), GCCL_ERR_REVOKED, "barrier");
    RANK_SUCCESS(GCCL_Comm_agree(world, &flags));
    RANK_CHECK(flags == 6);
    RANK_SUCCESS(GCCL_Finalize());
  });
  if (skipped_without_cables(agreed)) return;
  CHECK(agreed == "good");
  // The second of two decisions: that all have the larger communicator.
  const std::string grown = with_lost_decision(2, 3, [](int process) {
    GCCL_Comm world = GCCL_COMM_NULL, whole = GCCL_COMM_NULL;
    if (process < 2) {
      GCCL_Config config = GCCL_CONFIG_INIT;
      config.rank = process;
      config.size = 2;
      RANK_SUCCESS(GCCL_Init(&world, &config));
      if (process == 0) RANK_SUCCESS(GCCL_Comm_revoke(world));
      expect(GCCL_Barrier(world), GCCL_ERR_REVOKED, "barrier");
      RANK_SUCCESS(GCCL_Comm_grow(world, 1, 20000, &whole));
      RANK_SUCCESS(GCCL_Comm_free(&world));
    } else {
      RANK_SUCCESS(GCCL_Join(&whole, nullptr));
    }
    double x = process + 1, sum = 0;
    RANK_SUCCESS(GCCL_Allreduce(&x, &sum, 1, GCCL_FLOAT64, GCCL_SUM, whole));
    RANK_CHECK(sum == 6);
    RANK_SUCCESS(GCCL_Finalize());
  });
  CHECK(grown == "good");
}

TEST_CASE("a rank whose cable is cut is missed after the time that was set, and knows that it is cut off") {
  const std::string text = without_the_last(
      3, [](const Running&) { quietly("ip link set v2 down"); }, true);
  if (skipped_without_cables(text)) return;
  CHECK(text == "good");
}

TEST_CASE("a rank is missed after that time though its first interface leads to no other machine") {
  const std::string text = without_the_last(
      3, [](const Running&) { quietly("ip link set v2 down"); }, true, true);
  if (skipped_without_cables(text)) return;
  CHECK(text == "good");
}

TEST_CASE("a rank that receives no datagrams is missed, though its own are heard") {
  const std::string text = with_one_deaf();
  if (skipped_without_cables(text)) return;
  CHECK(text == "good");
}

TEST_CASE("ranks that no datagrams reach say so once, and go on") {
  const std::string text = without_datagrams();
  if (skipped_without_cables(text)) return;
  CHECK(text == "good");
}

TEST_CASE("a machine that stands still is missed after the time that was set") {
  const std::string text = without_the_last(
      3, [](const Running& r) { r.kill(2, SIGSTOP); }, false);
  if (skipped_without_cables(text)) return;
  CHECK(text == "good");
}

TEST_CASE("a process of another machine joins, is missed when it stands still, and is replaced from a fourth machine") {
  for (const bool docker : {false, true}) {
    CAPTURE(docker);
    const std::string text = replaced_on_machines(docker);
    if (skipped_without_cables(text)) return;
    CHECK(text == "good");
  }
}
