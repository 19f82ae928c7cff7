// Ranks over the C interface: check(job, f) runs f on so many ranks, real processes, over such transports. They are
// started together, watched, and never left behind. Ranks on a transport's own ports are in tcp_ranks.hpp and the tests
// of shared memory, ranks of stores in meeting.hpp.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gccl/gccl.h"
#include "tests/support/child.hpp"
#include "tests/support/clock.hpp"
#include "tests/support/folder.hpp"

namespace ranks {

// What a job of ranks is like.
struct Job {
  int size = 2;
  std::string backends = "shm";
  // The pretended machine of each rank: ranks with different numbers count as being on different machines. Empty: one
  // machine.
  std::vector<int> nodes = {};
  std::map<std::string, std::string> environment = {};  // besides the identity, for every rank
  int limit_s = 240;                                    // after this long all are killed and the test has failed
};

// How one rank's process ended.
struct End {
  int exit_code = -1;  // when it exited
  int signal = 0;      // when a signal ended it
  bool late = false;   // killed at the limit
  std::string text;    // what it printed and reported
  bool good() const { return exit_code == 0; }
};

// A running job. Its processes are killed at the latest by the destructor.
class Running {
 public:
  // Forks size processes; each sets its environment, calls body(rank) and ends: code 0 when nothing was reported.
  Running(const Job& job, const std::function<void(int rank)>& body);
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void kill(int rank, int signal) const { processes_[std::size_t(rank)].child->kill(signal); }
  // Reads until the rank has printed this; false when it ended or the limit came first.
  bool await(int rank, const std::string& printed);
  // Until ranks 0 .. ranks-1 are through ready(): who is hurt then is not missed in it.
  bool await_ready(int ranks);
  // Until all have ended, or the limit.
  std::vector<End> wait();

 private:
  struct Process {
    std::optional<gccl::test::Child> child;  // until it has ended
    int output = -1;
    End end;
    Process() = default;
    Process(const Process&) = delete;
    ~Process();
  };
  bool read_some(int timeout_ms);
  void reap(Process& p);

  gccl::test::Folder folder_;  // the store's; outlives the ranks
  std::vector<Process> processes_;
  long long until_ms_;
};

// Over shared memory, over TCP, and from 3 ranks on over both at once, on two machines by turns.
std::vector<Job> transports(int size);

// Runs the job to its end.
std::vector<End> run(const Job& job, const std::function<void(int rank)>& body);
// The same, as a doctest check that all ranks did well; otherwise shows what each printed.
void check(const Job& job, const std::function<void(int rank)>& body);
// A doctest check for each rank but those that were lost, that it did well.
void check_others(const std::vector<End>& ends, const std::set<int>& lost, const std::string& of = "");
// What each rank printed, for messages.
std::string texts(const std::vector<End>& ends);
std::string describe(const Job& job);

// Called by a rank: the world after GCCL_Init, and another communicator of the same ranks. Null after a failure, noted.
GCCL_Comm begin();
GCCL_Comm copy_of(GCCL_Comm comm);
// Called by a rank: a barrier, and word to the test that this rank has left it.
void ready(GCCL_Comm comm);
// Called by all of comm: rank `last` returns when the others have left all calls before, so that none of those fails
// for what it does then.
void leave_before(GCCL_Comm comm, int last);
// The same, and then it kills itself.
void lose(GCCL_Comm comm, int lost);
// Called by a rank: notes a failure, which makes the process end with code 1. The first ten are printed.
void report(const std::string& failure);
bool any_reported();
// Called by a rank that can start no thread at its end: the leak sanitizer, where there is one, needs a thread to look.
void without_leak_check();
// Called by a rank: its main thread ends, and then another one of its process calls f, behind which that ends.
[[noreturn]] void without_main_thread(std::function<void()> f);
// Called by a rank: f in a child that is the first process of a new process-id namespace, in a user namespace where
// that takes no rights; what it reports is this process's. False where the system does not allow it.
bool in_pid_namespace(const std::function<void()>& f);
// Whether GCCL_Last_error contains this.
bool says(const std::string& text);
// Reports a call that returned something else, and a GCCL_Last_error that does not contain this.
void expect(GCCL_Result result, GCCL_Result due, const std::string& what);
void expect_text(const std::string& text, const std::string& what);

using gccl::test::Clock;
using gccl::test::seconds_since;

}  // namespace ranks

// In a rank: what doctest's checks are in the test itself.
#define RANK_CHECK(condition)                                                                                \
  do {                                                                                                       \
    if (!(condition)) ranks::report(std::string(__FILE__ ":") + std::to_string(__LINE__) + ": " #condition); \
  } while (false)
#define RANK_SUCCESS(call)                                                                           \
  do {                                                                                               \
    if (const GCCL_Result result_ = (call); result_ != GCCL_SUCCESS)                                 \
      ranks::report(std::string(__FILE__ ":") + std::to_string(__LINE__) + ": " #call " returned " + \
                    std::to_string(int(result_)) + ": " + GCCL_Last_error());                        \
  } while (false)

namespace ranks {

// A communicator's own numbers.
inline int rank_of(GCCL_Comm comm) {
  int rank = -1;
  RANK_SUCCESS(GCCL_Comm_rank(comm, &rank));
  return rank;
}
inline int size_of(GCCL_Comm comm) {
  int size = -1;
  RANK_SUCCESS(GCCL_Comm_size(comm, &size));
  return size;
}

}  // namespace ranks
