// Memory runs short: an error on every rank, nothing ends the process, nothing hangs. Where a limit of the process is
// what runs out: runtime_limits.cpp. In calls that shrink a communicator: runtime_shortage_shrink.cpp.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/rank_job.hpp"
#include "tests/support/short_memory.hpp"
#include "tests/support/wide.hpp"

using namespace ranks;

namespace {

// Calls of rank r on a communicator of two, in all the ways of making them.
struct Kind {
  const char* name;
  GCCL_Result (*call)(GCCL_Comm* c, int r);
};
constexpr std::size_t kMany = 1 << 19;
float input[kMany], output[kMany];
std::atomic<int> functions_run{0};

GCCL_Result waited(GCCL_Result started, GCCL_Request* request) { return started ? started : GCCL_Wait(request); }

const std::vector<Kind> kinds = {
    {"allreduce, short",
     [](GCCL_Comm* c, int) { return GCCL_Allreduce(input, output, 100, GCCL_FLOAT32, GCCL_SUM, *c); }},
    {"allreduce, long",
     [](GCCL_Comm* c, int) { return GCCL_Allreduce(input, output, kMany, GCCL_FLOAT32, GCCL_SUM, *c); }},
    {"iallreduce",
     [](GCCL_Comm* c, int) {
       GCCL_Request q = GCCL_REQUEST_NULL;
       return waited(GCCL_Iallreduce(input, output, kMany, GCCL_FLOAT32, GCCL_SUM, *c, &q), &q);
     }},
    {"alltoallv",
     [](GCCL_Comm* c, int) {
       const std::size_t n[2] = {10, 10};
       return GCCL_Alltoallv(input, n, nullptr, output, n, nullptr, GCCL_FLOAT32, *c);
     }},
    {"send and receive",
     [](GCCL_Comm* c, int r) {
       return r ? GCCL_Recv(output, kMany, GCCL_FLOAT32, 0, *c) : GCCL_Send(input, kMany, GCCL_FLOAT32, 1, *c);
     }},
    {"a message to itself",
     [](GCCL_Comm* c, int r) {
       GCCL_Request q = GCCL_REQUEST_NULL;
       if (const GCCL_Result e = GCCL_Irecv(output, 10, GCCL_FLOAT32, r, *c, &q)) return e;
       const GCCL_Result sent = GCCL_Send(input, 10, GCCL_FLOAT32, r, *c), received = GCCL_Wait(&q);
       return sent ? sent : received;
     }},
    {"a group of messages",
     [](GCCL_Comm* c, int r) {
       GCCL_Group_start();
       const GCCL_Result a = GCCL_Send(input, 100, GCCL_FLOAT32, 1 - r, *c);
       const GCCL_Result b = GCCL_Recv(output, 100, GCCL_FLOAT32, 1 - r, *c);
       const GCCL_Result end = GCCL_Group_end();
       RANK_CHECK((!a && !b) || end);
       return end;
     }},
    {"a group of collectives",
     [](GCCL_Comm* c, int) {
       GCCL_Group_start();
       GCCL_Allreduce(input, output, 100, GCCL_FLOAT32, GCCL_SUM, *c);
       GCCL_Broadcast(output, kMany, GCCL_FLOAT32, 0, *c);
       return GCCL_Group_end();
     }},
    {"a request with a function",
     [](GCCL_Comm* c, int) {
       GCCL_Request q = GCCL_REQUEST_NULL;
       if (const GCCL_Result e = GCCL_Iallreduce(input, output, kMany, GCCL_FLOAT32, GCCL_SUM, *c, &q)) return e;
       functions_run = 0;
       const GCCL_Result added = GCCL_On_complete(
           q, [](GCCL_Result, void*) { ++functions_run; }, nullptr);
       const GCCL_Result ended = GCCL_Wait(&q);
       RANK_CHECK(added == GCCL_SUCCESS || added == GCCL_ERR_SYSTEM);
       RANK_CHECK(functions_run == (added ? 0 : 1));
       return ended;
     }},
    {"split",
     [](GCCL_Comm* c, int) {
       GCCL_Comm d = GCCL_COMM_NULL;
       if (const GCCL_Result e = GCCL_Comm_split(*c, 0, 0, &d)) return e;
       const GCCL_Result met = GCCL_Barrier(d), freed = GCCL_Comm_free(&d);
       return met ? met : freed;
     }},
    {"free", [](GCCL_Comm* c, int) { return GCCL_Comm_free(c); }},
};

// How long this process takes to dial.
std::atomic<int> dials_for_us{0};

// Lasting: with every later one, too: nothing that is carried out for the error may need memory. The rank that has none
// takes so long to dial meanwhile.
void allocations_fail(bool lasting, std::span<const Kind> calls = kinds, int late_us = 0) {
  for (const char* backends : {"shm", "tcp"})
    check({.size = 2, .backends = backends}, [&](int rank) {
      GCCL_Comm world = begin();
      for (const Kind& kind : calls) {
        int met = 1, failures = 0;
        for (int n = 0; met; ++n) {
          GCCL_Comm c = GCCL_COMM_NULL;
          RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
          if (rank == 0) denied = {.left = n, .lasting = lasting};
          if (rank == 0) dials_for_us = late_us;
          GCCL_Result result = kind.call(&c, rank);
          met = std::exchange(denied, {}).met;
          // A rank that was done before the other one failed hears at the next call.
          if (result == GCCL_SUCCESS && c) result = GCCL_Barrier(c);
          const int mine[2] = {result, met};
          int all[2][2] = {};
          RANK_SUCCESS(GCCL_Allgather(mine, all, 2, GCCL_INT32, world));  // so nobody hears by the end of another
          dials_for_us = 0;
          if (c) GCCL_Comm_free(&c);
          met = all[0][1];
          failures += all[0][0] != GCCL_SUCCESS;
          const bool ends = std::string(kind.name) == "split" || std::string(kind.name) == "free";
          if ((all[0][0] == all[1][0] || (ends && all[0][0] && all[1][0])) &&
              (all[0][0] == GCCL_SUCCESS || (met && all[0][0] == GCCL_ERR_SYSTEM)))
            continue;
          report(std::string(kind.name) + ", allocation " + std::to_string(n) + (met ? "" : " (of fewer)") +
                 ": rank 0 has " + std::to_string(all[0][0]) + ", rank 1 has " + std::to_string(all[1][0]));
        }
        RANK_CHECK(failures > 0);
      }
      RANK_SUCCESS(GCCL_Finalize());
    });
}

TEST_CASE("one allocation that fails, whichever it is, is an error on every rank or none") { allocations_fail(false); }

TEST_CASE("memory that is short from one allocation on is an error on every rank or none") { allocations_fail(true); }

TEST_CASE("a rank that finds no memory ends no connection before the others have heard why") {
  allocations_fail(false, std::span(kinds).first(2), 30000);
}

TEST_CASE("an abort that finds no memory in any thread is heard once there is some") {
  for (const char* backends : {"shm", "tcp"})
    check({.size = 2, .backends = backends}, [](int rank) {
      GCCL_Comm world = GCCL_COMM_NULL, c = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Init(&world, nullptr));
      RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
      RANK_SUCCESS(GCCL_Barrier(c));
      if (rank == 0) {
        // The thread that connects may still be at the new communicator's connections, and where it finds no memory to
        // dial, that is the error. The barrier has gone over one of these; nothing waits for the rest of its work.
        usleep(300000 * GCCL_TEST_SLOWDOWN);
        starving = true;
        const GCCL_Result aborted = GCCL_Abort(c, 3);
        usleep(100000);
        starving = false;
        RANK_SUCCESS(aborted);
      } else {
        RANK_SUCCESS(GCCL_Comm_set_timeout(c, 10000));
        RANK_CHECK(GCCL_Recv(output, 1, GCCL_FLOAT32, 0, c) == GCCL_ERR_ABORTED);
        RANK_CHECK(std::strstr(GCCL_Last_error(), "with code 3") != nullptr);
      }
      RANK_SUCCESS(GCCL_Barrier(world));  // nobody hears by the end of another
      RANK_SUCCESS(GCCL_Comm_free(&c));
      RANK_SUCCESS(GCCL_Finalize());
    });
}

TEST_CASE("a connection that comes while memory is short is made once there is some") {
  check({.size = 2, .backends = "tcp"}, [](int rank) {
    fed = true;
    GCCL_Comm world = begin(), c = GCCL_COMM_NULL;
    RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
    RANK_SUCCESS(GCCL_Barrier(world));
    if (rank == 0) {
      usleep(200000 * GCCL_TEST_SLOWDOWN);  // until the thread for connections has nothing to do
      starving = true;
      usleep(800000);
      starving = false;
      RANK_SUCCESS(GCCL_Send(input, 1, GCCL_FLOAT32, 1, c));
    } else {
      // After half a second this rank dials the other one, to see whether it is there.
      RANK_SUCCESS(GCCL_Recv(output, 1, GCCL_FLOAT32, 0, c));
    }
    RANK_SUCCESS(GCCL_Barrier(c));
    RANK_SUCCESS(GCCL_Comm_free(&c));
    RANK_SUCCESS(GCCL_Finalize());
  });
}

// Three ranks connect, of which one finds no memory for that after `spare` allocations, and finds some a while later.
// Where it has to fail, all do; where not, it may have had what it needed.
void starve_while_connecting(int starved, bool threaded, int spare, bool fails) {
  // By direct messages a rank may be done with the call before another fails in it.
  check({.size = 3,
         .backends = "tcp",
         .environment = {{"GCCL_PROGRESS_THREAD", threaded ? "1" : "0"},
                         {"GCCL_ALGORITHM", "allreduce=recursive_doubling"}}},
        [&](int rank) {
          fed = true;
          GCCL_Comm world = begin(), c = GCCL_COMM_NULL;
          RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
          std::thread fed_again;
          std::atomic<bool> returned{false};
          if (rank == starved) {
            spared = spare;
            starving = true;
            fed_again = std::thread([&] {
              while (!missed_some && !returned) usleep(1000);
              usleep(fails ? 300000 : 50000), starving = false;
            });
          }
          float one = 1, sum = 0;
          const GCCL_Result result = GCCL_Allreduce(&one, &sum, 1, GCCL_FLOAT32, GCCL_SUM, c);
          returned = true;
          if (fails || result != GCCL_SUCCESS) {
            expect(result, GCCL_ERR_SYSTEM, "allreduce");
            expect_text("out of memory", "allreduce");
            // A progress thread that finds none has none for words either.
            if (!threaded) expect_text("rank " + std::to_string(starved), "allreduce");
          } else {
            RANK_CHECK(sum == 3);
          }
          if (fed_again.joinable()) fed_again.join();
          GCCL_Comm_free(&c);
          GCCL_Finalize();
        });
}

// Rank 0 dials the others; rank 1 may be dialled again once it has memory to accept.
TEST_CASE("memory that the thread for connections does not find to dial is an error on every rank, which says so") {
  for (const int starved : {0, 1})
    for (const bool threaded : {false, true}) starve_while_connecting(starved, threaded, 0, starved == 0 || threaded);
}

TEST_CASE("whichever allocation of the thread for connections is the first to fail, the ranks hear why") {
  for (const int starved : {0, 1, 2})
    for (int spare = 1; spare <= 60; ++spare) starve_while_connecting(starved, false, spare, false);
}

// Its connections are held until the others have heard why, and they never do.
TEST_CASE("a program whose thread for connections finds no memory any more ends all the same") {
  for (const auto& [starved, spare] : {std::pair(0, 15), {0, 25}, {1, 35}, {1, 50}})
    check({.size = 3,
           .backends = "tcp",
           .environment = {{"GCCL_PROGRESS_THREAD", "0"}, {"GCCL_ALGORITHM", "allreduce=recursive_doubling"}}},
          [starved = starved, spare = spare](int rank) {
            without_leak_check();
            fed = true;
            GCCL_Comm world = begin(), c = GCCL_COMM_NULL;
            RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
            if (rank == starved) spared = spare, starving = true;
            float one = 1, sum = 0;
            const GCCL_Result result = GCCL_Allreduce(&one, &sum, 1, GCCL_FLOAT32, GCCL_SUM, c);
            RANK_CHECK((result == GCCL_SUCCESS || result == GCCL_ERR_SYSTEM ||
                        (rank != starved && result == GCCL_ERR_PEER_LOST)));
            std::exit(any_reported());
          });
}

TEST_CASE("types and operations have codes that can be used, whichever allocation for an earlier one has failed") {
  check({.size = 1}, [](int) {
    GCCL_Comm world = begin();
    int made = 0, refused = 0;
    std::vector<double> in(8), out(8);
    for (int i = 0; i < 400; ++i) {
      GCCL_Dtype type = {};
      GCCL_Op op = {};
      denied = {.left = i % 3};
      const GCCL_Result types = GCCL_Type_create(8, &type);
      denied = {.left = i % 3};
      const GCCL_Result ops = GCCL_Op_create([](const void*, void*, std::size_t, GCCL_Dtype, void*) {}, nullptr, &op);
      denied = {};
      for (const GCCL_Result r : {types, ops}) r == GCCL_SUCCESS ? ++made : ++refused;
      if (types == GCCL_SUCCESS) RANK_SUCCESS(GCCL_Allgather(in.data(), out.data(), 8, type, world));
      if (ops == GCCL_SUCCESS) RANK_SUCCESS(GCCL_Allreduce(in.data(), out.data(), 8, GCCL_FLOAT64, op, world));
    }
    RANK_CHECK(made > 0);
    RANK_CHECK(refused > 0);
    RANK_SUCCESS(GCCL_Finalize());
  });
}

// A cluster description apart: nlohmann's destructors allocate memory.
TEST_CASE("any allocation of the calls about devices and topology may fail, and no exception leaves them") {
  check({.size = 1}, [](int) {
    static const std::string xml =
        R"(<system version="1"><cpu numaid="0"><pci busid="0000:07:00.0"><gpu dev="0"/></pci></cpu></system>)";
    static GCCL_Topology here = nullptr;
    int devices = 0;
    RANK_SUCCESS(GCCL_Device_count(&devices));
    RANK_SUCCESS(GCCL_Topology_discover(&here));
    struct Call {
      const char* name;
      GCCL_Result (*call)();
      GCCL_Result due;
    };
    const Call calls[] = {
        {"GCCL_Device_count", [] { return GCCL_Device_count(nullptr); }, GCCL_ERR_INVALID_ARGUMENT},
        {"GCCL_Device_get",
         [] {
           GCCL_Device d = {};
           d.struct_bytes = sizeof d;
           return GCCL_Device_get(9999, &d);
         },
         GCCL_ERR_INVALID_ARGUMENT},
        {"GCCL_Device_bind", [] { return GCCL_Device_bind(9999); }, GCCL_ERR_INVALID_ARGUMENT},
        {"GCCL_Device_current", [] { return GCCL_Device_current(nullptr); }, GCCL_ERR_INVALID_ARGUMENT},
        {"GCCL_Topology_discover",
         [] {
           GCCL_Topology t = nullptr;
           const GCCL_Result result = GCCL_Topology_discover(&t);
           GCCL_Topology_free(&t);
           return result;
         },
         GCCL_SUCCESS},
        {"GCCL_Topology_load",
         [] {
           GCCL_Topology t = nullptr;
           return GCCL_Topology_load("/no/such/folder/with/a/topology.xml", &t);
         },
         GCCL_ERR_INVALID_ARGUMENT},
        {"GCCL_Topology_parse",
         [] {
           GCCL_Topology t = nullptr;
           const GCCL_Result result = GCCL_Topology_parse(xml.data(), xml.size(), "node.xml", &t);
           GCCL_Topology_free(&t);
           return result;
         },
         GCCL_SUCCESS},
        {"GCCL_Topology_counts", [] { return GCCL_Topology_counts(nullptr, nullptr, nullptr, nullptr); },
         GCCL_ERR_INVALID_ARGUMENT},
        {"GCCL_Topology_get_device",
         [] {
           GCCL_Topology_device d = {};
           d.struct_bytes = sizeof d;
           return GCCL_Topology_get_device(here, 9999, &d);
         },
         GCCL_ERR_INVALID_ARGUMENT},
        {"GCCL_Topology_get_nic",
         [] {
           GCCL_Topology_nic n = {};
           n.struct_bytes = sizeof n;
           return GCCL_Topology_get_nic(here, 9999, &n);
         },
         GCCL_ERR_INVALID_ARGUMENT},
        {"GCCL_Topology_free", [] { return GCCL_Topology_free(nullptr); }, GCCL_ERR_INVALID_ARGUMENT},
    };
    for (const Call& c : calls)
      for (const bool lasting : {false, true}) {
        int met = 1, failures = 0;
        for (int n = 0; met; ++n) {
          denied = {.left = n, .lasting = lasting};
          const GCCL_Result result = c.call();
          met = std::exchange(denied, {}).met;
          failures += result == GCCL_ERR_SYSTEM;
          if (result != c.due && !(met && result == GCCL_ERR_SYSTEM))
            report(std::string(c.name) + ", allocation " + std::to_string(n) + ": " + std::to_string(result));
        }
        if (failures == 0) report(std::string(c.name) + " found memory all the time");
      }
    GCCL_Topology_free(&here);
  });
}

TEST_CASE("a dump that finds no memory is an error, and is written once there is some") {
  check({.size = 2}, [](int rank) {
    const GCCL_Comm world = begin();
    float x[4] = {}, y[4];
    RANK_SUCCESS(GCCL_Allreduce(x, y, 4, GCCL_FLOAT32, GCCL_SUM, world));
    const gccl::test::Folder folder;
    for (const char* name : {"dump.json", "dump"})
      for (const bool lasting : {false, true}) {
        const std::string file = folder.path / (name + std::to_string(rank));
        const std::string path = name == std::string("dump") ? file : file + ".json";
        int met = 1, failures = 0;
        for (int n = 0; met; ++n) {
          denied = {.left = n, .lasting = lasting};
          const GCCL_Result result = GCCL_Dump(world, path.c_str());
          met = std::exchange(denied, {}).met;
          failures += result == GCCL_ERR_SYSTEM;
          if (result && !(met && result == GCCL_ERR_SYSTEM))
            report(path + ", allocation " + std::to_string(n) + ": " + std::to_string(result));
        }
        RANK_CHECK(failures > 0);
        RANK_CHECK(std::filesystem::exists(path));
      }
    RANK_SUCCESS(GCCL_Barrier(world));
    RANK_SUCCESS(GCCL_Finalize());
  });
}

// The watch asks the other rank after a tenth of a second.
TEST_CASE("one allocation that fails while a wait stalls, whichever it is, leaves the other communicators whole") {
  const int every = gccl::test::wide() ? 1 : 4;  // all 140 take 70 s: scripts/long has them
  check({.size = 2}, [&](int rank) {
    GCCL_Comm world = GCCL_COMM_NULL;
    RANK_SUCCESS(GCCL_Init(&world, nullptr));
    int met = 1, failures = 0;
    for (int n = 0; met; n += every) {
      GCCL_Comm c = GCCL_COMM_NULL;
      RANK_SUCCESS(GCCL_Comm_split(world, 0, 0, &c));
      if (rank == 0) {
        denied = {.left = n};
        failures += GCCL_Recv(output, 1, GCCL_FLOAT32, 1, c) != GCCL_SUCCESS;
        met = std::exchange(denied, {}).met;
      } else {
        usleep(250000);
        GCCL_Send(input, 1, GCCL_FLOAT32, 0, c);
      }
      if (rank == 1) usleep(250000);  // a wait on another communicator stalls, too
      const int mine = rank == 0 && met;
      RANK_SUCCESS(GCCL_Allreduce(&mine, &met, 1, GCCL_INT32, GCCL_MAX, world));
      GCCL_Comm_free(&c);
    }
    RANK_CHECK(failures > 0 || rank);
    RANK_SUCCESS(GCCL_Finalize());
  });
}

}  // namespace

// The library dials by this.
extern "C" int connect(int fd, const sockaddr* to, socklen_t bytes) {
  using Function = int (*)(int, const sockaddr*, socklen_t);
  static const auto next = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "connect"));
  if (const int us = dials_for_us) ::usleep(useconds_t(us));
  return next(fd, to, bytes);
}
