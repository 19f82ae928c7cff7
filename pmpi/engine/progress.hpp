// Everything that is in flight, and its progress: a wait for anything makes progress on everything.
#pragma once

#include <atomic>
#include <memory>

#include "libgccl/base/backoff.hpp"
#include "pmpi/engine/communicator.hpp"
#include "pmpi/engine/mpi_waits.hpp"

namespace gccl::pmpi {

// A non-blocking call, from its start until it is complete and MPI has freed its request.
class PendingRequest {
 public:
  Call call;
  Function function{};
  Communicator* communicator = nullptr;
  MPI_Request request = MPI_REQUEST_NULL;  // generalized, the program's
  GCCL_Request gccl = GCCL_REQUEST_NULL;
  // Stored by the thread that completes it and loaded by the one that waits: what the call has written is seen by then.
  bool peer_lost = false;
  std::atomic<int> code{MPI_SUCCESS};
  std::atomic<bool> complete{false};
  std::atomic<bool> left{false};  // by one of the two that use it: MPI, and what completes it
};

// Blocking: false when the communicator cannot be served; all ranks then find that together.
bool connect(Communicator& k);
// Carries out a call on a connected communicator. Returns an MPI error code, of which no error handler has heard; or
// sets *to_mpi: MPI must carry it out.
int run(Communicator& k, Call& call, Function function, bool* to_mpi);

// Reason::none when GCCL serves non-blocking calls on it. It follows from the calls so far, which are the same on all
// ranks.
Reason may_begin(Communicator& k);
// Begins a call. Returns an MPI error code.
int begin(Communicator& k, std::unique_ptr<PendingRequest> pending, MPI_Request* request);

// True while any non-blocking call is in flight in this process.
bool anything_in_flight();
// Moves on what can move without waiting, and completes requests. From threads that may call MPI, also from within an
// MPI function that waits (mpi_waits.hpp).
void progress();
// Waits until nothing is in flight on `k`.
void settle(Communicator& k);
// GCCL's part of freeing it. Waits for nobody: calls in flight go on, and the last step is taken once all ranks have
// come here.
void retire(Communicator& k);
// That of the one that was called last.
void retire_latest();
// Looks whether the others have come there, and whether their calls were the same. Of one communicator alone: a rank
// that waits asks the others what they call, over connections that each communicator makes for itself.
void move_on_latest();
// That of all communicators; every rank is about to do it.
void retire_all();
// Waits for them, and for what is in flight, at most `seconds`. True when nothing is left.
bool settle_all(double seconds);
// Ends what is left.
void abandon_all();
// A freed communicator's last reference goes.
void released(Communicator* k);

// More ranks on this machine than processors for them.
void set_oversubscribed(bool oversubscribed);
bool is_oversubscribed();

// One wait, with a pause after each poll that found nothing.
class Wait {
 public:
  // mpi_moves: the polls themselves let MPI make progress.
  explicit Wait(bool mpi_moves) : mpi_moves_(mpi_moves) {}
  void pause();

 private:
  bool mpi_moves_;
  unsigned polls_ = 0;
};

// A wait for ranks that may compute for long, in which no data flows through this rank and the polls let MPI make
// progress: it sleeps, and leaves them the processors.
class IdleWait {
 public:
  void pause() { backoff_.pause(); }

 private:
  Backoff backoff_{is_oversubscribed()};
};

// Waits for something at MPI while GCCL's calls move on: test() is called until it says it is over. A handler of the
// program's may leave test() by longjmp: nothing is held then.
template <class Test, class How = Wait>
int wait_for(Test&& test, How wait = How(true)) {
  for (;;) {
    int flag = 0;
    progress();
    const int code = test(&flag);
    if (code != MPI_SUCCESS || flag) return code;
    wait.pause();
  }
}

// MPI's own collectives move on what was sent before them, and a program may look for that once, as by MPI_Iprobe after
// a barrier. GCCL's do not move it. So a look that finds nothing is repeated, the first time after GCCL's answers.
void count_answer();
bool answered_since();  // this thread last asked
inline constexpr int kLooks = 16;
template <class Look>
int look_for(const int* flag, Look&& look) {
  int code = look();
  if (code != MPI_SUCCESS || *flag || !answered_since()) return code;
  for (int i = 0; i < kLooks && code == MPI_SUCCESS && !*flag; ++i) code = look();
  return code;
}
// For functions that do not look themselves.
void move_messages_on();

}  // namespace gccl::pmpi
