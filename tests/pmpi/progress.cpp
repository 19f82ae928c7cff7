// MPI's progress rule: a non-blocking collective completes on a rank that waits for it while the others are inside any
// other MPI call, or compute; and who makes that progress.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>

#include "tests/pmpi/support.hpp"
#include "tests/support/folder.hpp"

namespace {
std::atomic<int> combined_by_mpi_here{0}, combined_by_mpi_elsewhere{0};
const std::thread::id main_thread = std::this_thread::get_id();
}  // namespace

// The drop-in's calls come by here.
extern "C" int PMPI_Reduce_local(const void* in, void* inout, int count, MPI_Datatype type, MPI_Op op) {
  using Function = int (*)(const void*, void*, int, MPI_Datatype, MPI_Op);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "PMPI_Reduce_local"));
  if (count > 0) ++(std::this_thread::get_id() == main_thread ? combined_by_mpi_here : combined_by_mpi_elsewhere);
  return next(in, inout, count, type, op);
}

namespace gccl::test {
namespace {

struct World {
  int rank = 0, size = 1;
  World() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
  }
  int sum() const { return size * (size - 1) / 2; }
};

std::atomic<int> own_here{0}, own_elsewhere{0};
void add(void* in, void* inout, int* count, MPI_Datatype*) {
  ++(std::this_thread::get_id() == main_thread ? own_here : own_elsewhere);
  for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

// Blocking calls in which rank 0 waits for the others. None is answered by GCCL.
struct Blocking {
  const char* name;
  void (*call)(const World&);
};
const Blocking kBlocking[] = {
    {"MPI_Comm_dup",
     [](const World&) {
       MPI_Comm made;
       MPI_Comm_dup(MPI_COMM_WORLD, &made);
       MPI_Comm_free(&made);
     }},
    {"MPI_Comm_split",
     [](const World& w) {
       MPI_Comm made;
       MPI_Comm_split(MPI_COMM_WORLD, w.rank % 2, 0, &made);
       MPI_Comm_free(&made);
     }},
    {"MPI_Gatherv",
     [](const World& w) {
       std::vector<int> all(std::size_t(w.size)), counts(std::size_t(w.size), 1), displs(std::size_t(w.size));
       for (int i = 0; i < w.size; ++i) displs[std::size_t(i)] = i;
       MPI_Gatherv(&w.rank, 1, MPI_INT, all.data(), counts.data(), displs.data(), MPI_INT, 0, MPI_COMM_WORLD);
       CHECK((w.rank != 0 || all.back() == w.size - 1));
     }},
    {"MPI_Scan",
     [](const World& w) {
       int sum = 0;
       MPI_Scan(&w.rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
       MPI_Barrier(MPI_COMM_WORLD);
       CHECK(sum == w.rank * (w.rank + 1) / 2);
     }},
    {"MPI_Sendrecv_replace",
     [](const World& w) {
       int value = w.rank;
       const int peer = w.rank ^ 1;
       if (peer < w.size) MPI_Sendrecv_replace(&value, 1, MPI_INT, peer, 0, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
       CHECK((peer >= w.size || value == peer));
     }},
    {"MPI_Win_create",
     [](const World& w) {
       if (w.size == 1) return;  // Open MPI 4 cannot
       MPI_Win window;
       int memory = 0;
       MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
       MPI_Win_fence(0, window);
       MPI_Win_fence(0, window);
       MPI_Win_free(&window);
     }},
    {"MPI_File_open",
     [](const World& w) {
       std::optional<Folder> folder;
       char name[256] = "";
       if (w.rank == 0) std::snprintf(name, sizeof name, "%s", folder.emplace().write("file", "").c_str());
       PMPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
       MPI_File file;
       CHECK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file) ==
             MPI_SUCCESS);
       MPI_File_close(&file);
     }},
    {"PMPI_Recv",
     [](const World& w) {
       int token = 0;
       for (int r = 1; w.rank == 0 && r < w.size; ++r)
         PMPI_Recv(&token, 1, MPI_INT, r, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
       if (w.rank != 0) MPI_Send(&token, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
     }},
};

TEST_CASE("a non-blocking collective completes while rank 0 is inside another blocking call") {
  const World w;
  MPI_Op own;
  MPI_Op_create(add, 1, &own);
  std::vector<int> in(1 << 20, w.rank), out(in.size());
  for (const Blocking& blocking : kBlocking)
    // Fresh: the communicator's first collective. Large: more than fits on the way, so all ranks must go on working.
    for (const char* const what : {"fresh barrier", "fresh large sum", "large sum", "large own operation"}) {
      const bool fresh = std::string(what).starts_with("fresh"), barrier = std::string(what).ends_with("barrier");
      MPI_Comm comm;
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      if (!fresh) MPI_Barrier(comm);
      MPI_Request request;
      if (barrier) {
        MPI_Ibarrier(comm, &request);
      } else {
        MPI_Op op = std::string(what).ends_with("operation") ? own : MPI_SUM;
        MPI_Iallreduce(in.data(), out.data(), int(in.size()), MPI_INT, op, comm, &request);
      }
      if (w.rank != 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
      blocking.call(w);
      if (w.rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
      CAPTURE(blocking.name);
      CAPTURE(what);
      CHECK((barrier || (out.front() == w.sum() && out.back() == w.sum())));
      MPI_Comm_free(&comm);
    }
  MPI_Op_free(&own);
}

TEST_CASE("a profiling tool in front of the drop-in, or a part in Fortran, waits by MPI's own functions") {
  const World w;
  auto comms = make_comms();
  std::vector<int> in(300000, w.rank), out(in.size());
  for (const Comm& c : comms) {
    if (c.comm == MPI_COMM_NULL) continue;
    const auto start = [&](MPI_Request* request) {
      out.assign(out.size(), -1);
      CHECK(MPI_Iallreduce(in.data(), out.data(), int(in.size()), MPI_INT, MPI_MAX, c.comm, request) == MPI_SUCCESS);
    };
    int highest = 0;
    PMPI_Allreduce(&w.rank, &highest, 1, MPI_INT, MPI_MAX, c.comm);
    MPI_Request requests[2];
    int flag = 0, index = -1;
    // Where these tests never come true, the others would never end.
    start(&requests[0]);
    const double until = MPI_Wtime() + 60;
    while (!flag && MPI_Wtime() < until) PMPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    CHECK(flag);
    if (!flag) {
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      continue;
    }
    CHECK(out.back() == highest);
    start(&requests[0]);
    PMPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    CHECK(out.back() == highest);
    start(&requests[0]);
    MPI_Ibarrier(c.comm, &requests[1]);
    PMPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(out.back() == highest);
    start(&requests[0]);
    PMPI_Waitany(1, requests, &index, MPI_STATUS_IGNORE);
    CHECK(out.back() == highest);
  }
  free_comms(comms);
}

TEST_CASE("only the program's threads run the program's operations and MPI's") {
  const World w;
  MPI_Comm comm, late;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &late);
  MPI_Barrier(comm);
  MPI_Barrier(late);
  MPI_Op own;
  MPI_Op_create(add, 1, &own);
  struct Pair {
    double value;
    int index;
  };
  std::vector<int> in(20000, w.rank), out(in.size());
  std::vector<Pair> pairs(100000, Pair{double(w.rank), w.rank}), best(pairs.size());
  own_here = own_elsewhere = combined_by_mpi_here = combined_by_mpi_elsewhere = 0;
  // A call in flight keeps the background thread awake.
  MPI_Request request;
  if (w.rank == 0) MPI_Ibarrier(late, &request);
  for (int i = 0; i < 300; ++i) {
    MPI_Allreduce(in.data(), out.data(), int(in.size()), MPI_INT, own, comm);
    if (i % 30 == 0) MPI_Allreduce(pairs.data(), best.data(), int(pairs.size()), MPI_DOUBLE_INT, MPI_MAXLOC, comm);
  }
  if (w.rank != 0) MPI_Ibarrier(late, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(out.back() == w.sum());
  CHECK(best.back().index == w.size - 1);
  // Non-blocking, while the program computes.
  for (int i = 0; i < 3; ++i) {
    MPI_Request two[2];
    MPI_Iallreduce(pairs.data(), best.data(), int(pairs.size()), MPI_DOUBLE_INT, MPI_MAXLOC, comm, &two[0]);
    MPI_Iallreduce(in.data(), out.data(), int(in.size()), MPI_INT, own, comm, &two[1]);
    usleep(20000);
    MPI_Waitall(2, two, MPI_STATUSES_IGNORE);
  }
  CHECK((w.size == 1 || own_here > 0));
  CHECK((w.size == 1 || combined_by_mpi_here > 0));
  CHECK(own_elsewhere == 0);
  CHECK(combined_by_mpi_elsewhere == 0);
  MPI_Op_free(&own);
  MPI_Comm_free(&late);
  MPI_Comm_free(&comm);
}

TEST_CASE("the background thread takes no signals of the program's; over the backend mpi there is none") {
  if (World().size == 1) return;
  const char* const backends = std::getenv("GCCL_BACKENDS");
  int threads = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name, line;
    std::ifstream(entry.path() / "comm") >> name;
    if (name != "gccl_pmpi") continue;
    ++threads;
    std::ifstream status(entry.path() / "status");
    while (std::getline(status, line))
      if (line.starts_with("SigBlk:")) {
        const auto blocked = std::stoull(line.substr(7), nullptr, 16);
        for (const int signal : {SIGINT, SIGTERM, SIGALRM, SIGUSR1, SIGUSR2, SIGCHLD, SIGPROF})
          CHECK((blocked >> (signal - 1) & 1) == 1);
      }
  }
  CHECK(threads == (backends && std::string(backends) == "mpi" ? 0 : 1));
}

TEST_CASE("freeing a communicator waits for nobody") {
  const World w;
  MPI_Comm a, b;
  // In another order on each rank.
  MPI_Comm_dup(MPI_COMM_WORLD, &a);
  MPI_Comm_dup(MPI_COMM_WORLD, &b);
  MPI_Barrier(a);
  MPI_Barrier(b);
  MPI_Comm_free(w.rank % 2 ? &a : &b);
  MPI_Comm_free(w.rank % 2 ? &b : &a);
  // And before a message that the others need to come to it, also while calls are in flight.
  for (const bool in_flight : {false, true}) {
    int token = 5, sum = -1;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &a);
    MPI_Barrier(a);
    if (w.rank == 0) {
      if (in_flight) MPI_Iallreduce(&w.rank, &sum, 1, MPI_INT, MPI_SUM, a, &request);
      MPI_Comm_free(&a);
      for (int r = 1; r < w.size; ++r) MPI_Send(&token, 1, MPI_INT, r, 0, MPI_COMM_WORLD);
    } else {
      MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (in_flight) MPI_Iallreduce(&w.rank, &sum, 1, MPI_INT, MPI_SUM, a, &request);
      MPI_Comm_free(&a);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(sum == (in_flight ? w.sum() : -1));
  }
}

TEST_CASE("a delete function may call collectives on a communicator that a tool frees; the next one is another") {
  int keyval = MPI_KEYVAL_INVALID;
  const auto barrier = [](MPI_Comm comm, int, void*, void*) { return MPI_Barrier(comm); };
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, barrier, &keyval, nullptr);
  const World w;
  for (int i = 0; i < 6; ++i) {
    MPI_Comm comm;
    if (i % 2 == 0)
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    else
      MPI_Comm_split(MPI_COMM_WORLD, w.rank == 0, -w.rank, &comm);
    MPI_Comm_set_attr(comm, keyval, nullptr);  // before the drop-in's own, which is deleted first
    int size = 0, one = 1, sum = 0;
    MPI_Comm_size(comm, &size);
    CHECK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    CHECK(sum == size);
    CHECK(PMPI_Comm_free(&comm) == MPI_SUCCESS);
  }
  MPI_Comm_free_keyval(&keyval);
}

TEST_CASE("communicators that are freed give back what they held, also where a tool frees them by PMPI_Comm_free") {
  const auto open_files = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const World w;
  for (const auto free : {MPI_Comm_free, PMPI_Comm_free})
    for (const bool in_flight : {false, true}) {
      std::ptrdiff_t after_ten = 0;
      for (int i = 0; i < 60; ++i) {
        MPI_Comm comm;
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Barrier(comm);
        if (in_flight) MPI_Ibarrier(comm, &request);
        free(&comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (i == 10) after_ten = open_files();
      }
      // The last few may still be on their way.
      CHECK(open_files() <= after_ten + 4 * w.size);
    }
}

// Looks once for a message of the last rank that has this tag, and that `posted` receives; true when it is there.
struct Look {
  const char* name;
  bool (*finds)(int from, int tag, MPI_Request* posted);
  bool posts = true;
};
const Look kLooks[] = {
    {"MPI_Iprobe",
     [](int from, int tag, MPI_Request*) {
       int flag = 0, token = 0;
       MPI_Iprobe(from, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
       MPI_Recv(&token, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
       return flag != 0;
     },
     false},
    {"MPI_Improbe",
     [](int from, int tag, MPI_Request*) {
       int flag = 0, token = 0;
       MPI_Message message;
       MPI_Improbe(from, tag, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
       if (!flag) MPI_Mprobe(from, tag, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
       MPI_Mrecv(&token, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
       return flag != 0;
     },
     false},
    {"MPI_Test",
     [](int, int, MPI_Request* posted) {
       int flag = 0;
       MPI_Test(posted, &flag, MPI_STATUS_IGNORE);
       return flag != 0;
     }},
    {"MPI_Testall",
     [](int, int, MPI_Request* posted) {
       int flag = 0;
       MPI_Testall(1, posted, &flag, MPI_STATUSES_IGNORE);
       return flag != 0;
     }},
    {"MPI_Testany",
     [](int, int, MPI_Request* posted) {
       int flag = 0, index = 0;
       MPI_Testany(1, posted, &index, &flag, MPI_STATUS_IGNORE);
       return flag != 0;
     }},
    {"MPI_Testsome",
     [](int, int, MPI_Request* posted) {
       int done = 0, index = 0;
       MPI_Testsome(1, posted, &done, &index, MPI_STATUSES_IGNORE);
       return done == 1;
     }},
    {"MPI_Request_get_status",
     [](int, int, MPI_Request* posted) {
       int flag = 0;
       MPI_Request_get_status(*posted, &flag, MPI_STATUS_IGNORE);
       return flag != 0;
     }},
    {"MPI_Cancel",
     [](int from, int tag, MPI_Request* posted) {
       int cancelled = 0, token = 0;
       MPI_Status status;
       MPI_Cancel(posted);
       MPI_Wait(posted, &status);
       MPI_Test_cancelled(&status, &cancelled);
       if (cancelled) MPI_Recv(&token, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
       return !cancelled;
     }},
};

// Each collective of MPI's moves on what was sent before it, and programs rely on that.
TEST_CASE("a message that was sent before a barrier is found at the first look after it") {
  const World w;
  const int last = w.size - 1;
  if (last == 0) return;
  for (const bool nonblocking : {false, true})
    for (int tag = 0; tag < int(std::size(kLooks)); ++tag) {
      const Look& look = kLooks[tag];
      int found = 0, token = 0;
      for (int round = 0; round < 10; ++round) {
        MPI_Request posted = MPI_REQUEST_NULL, all_here = MPI_REQUEST_NULL;
        if (w.rank == 0 && look.posts) MPI_Irecv(&token, 1, MPI_INT, last, tag, MPI_COMM_WORLD, &posted);
        MPI_Barrier(MPI_COMM_WORLD);
        if (w.rank == last) MPI_Send(&token, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
        if (nonblocking) {
          MPI_Ibarrier(MPI_COMM_WORLD, &all_here);
          MPI_Wait(&all_here, MPI_STATUS_IGNORE);
        } else {
          MPI_Barrier(MPI_COMM_WORLD);
        }
        if (w.rank == 0) found += look.finds(last, tag, &posted);
        MPI_Wait(&posted, MPI_STATUS_IGNORE);
      }
      CHECK_MESSAGE((w.rank != 0 || found == 10), std::string(look.name), " found ", found, " of 10");
    }
}

TEST_CASE("a buffered message that was received before a barrier leaves its buffer before the next one needs it") {
  const World w;
  const int last = w.size - 1, count = 1 << 14;
  if (last == 0) return;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  std::vector<int> data(count), room(count + MPI_BSEND_OVERHEAD);  // for one message
  void* attached = room.data();
  int bytes = int(room.size() * sizeof(int));
  MPI_Request again = MPI_REQUEST_NULL;
  if (w.rank == 0) {
    MPI_Buffer_attach(attached, bytes);
    MPI_Bsend_init(data.data(), count, MPI_INT, last, 0, comm, &again);
  }
  using Begin = int (*)(const std::vector<int>& data, int to, MPI_Comm comm, MPI_Request* sent, MPI_Request* again);
  const Begin ways[] = {
      [](const std::vector<int>& d, int to, MPI_Comm on, MPI_Request*, MPI_Request*) {
        return MPI_Bsend(d.data(), int(d.size()), MPI_INT, to, 0, on);
      },
      [](const std::vector<int>& d, int to, MPI_Comm on, MPI_Request* sent, MPI_Request*) {
        return MPI_Ibsend(d.data(), int(d.size()), MPI_INT, to, 0, on, sent);
      },
      [](const std::vector<int>&, int, MPI_Comm, MPI_Request*, MPI_Request* start) { return MPI_Start(start); },
      [](const std::vector<int>&, int, MPI_Comm, MPI_Request*, MPI_Request* start) { return MPI_Startall(1, start); }};
  for (int round = 0; round < 12; ++round) {
    MPI_Request sent = MPI_REQUEST_NULL;
    int ok = 1;
    if (w.rank == 0) ok = ways[round % 4](data, last, comm, &sent, &again) == MPI_SUCCESS;
    for (MPI_Request* request : {&sent, &again})
      if (ok) MPI_Wait(request, MPI_STATUS_IGNORE);
    CHECK(ok);
    MPI_Bcast(&ok, 1, MPI_INT, 0, comm);
    if (w.rank == last && ok) MPI_Recv(data.data(), count, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
  }
  if (w.rank == 0) {
    MPI_Request_free(&again);
    MPI_Buffer_detach(&attached, &bytes);
  }
  MPI_Comm_free(&comm);
}

}  // namespace
}  // namespace gccl::test
