#include "pmpi/engine/progress.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "pmpi/engine/background.hpp"
#include "pmpi/engine/connecting.hpp"
#include "pmpi/engine/recovery.hpp"

namespace gccl::pmpi {
namespace {

constexpr auto kLauncherTime = std::chrono::seconds(5);

// The GCCL side of a communicator that this rank has freed. Others may still be using it: so a barrier, which nobody
// waits for, comes last, and a rank that has passed it lets go.
struct Leaving {
  GCCL_Comm comm;
  GCCL_Request barrier;
  Member me;
  bool differs_said;
  Promised promised;
};

std::mutex mutex;  // of all that follows, and of what communicator.hpp says
std::vector<PendingRequest*> started;
std::vector<Communicator*> connected;
std::vector<Leaving> leaving;
std::atomic<int> in_flight{0};           // non-blocking calls
std::atomic<std::int64_t> all_calls{0};  // of the process that were handed to GCCL
thread_local bool inside = false;        // this thread holds the lock: an MPI function has come back to us

// Holds the lock. GCCL may call MPI, where its transport is MPI, and MPI calls progress(): not for this thread then.
class Locked {
 public:
  Locked() : lock_(mutex) { inside = true; }
  explicit Locked(std::try_to_lock_t try_it) : lock_(mutex, try_it) { inside = lock_.owns_lock(); }
  ~Locked() {
    if (lock_) inside = false;
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  explicit operator bool() const { return lock_.owns_lock(); }

 private:
  std::unique_lock<std::mutex> lock_;
};

void say(const Member& me, const char* function, const std::string& text) {
  std::fprintf(stderr, "gccl_pmpi: rank %d of %d, %s: %s\n", me.rank, me.size, function, text.c_str());
}

std::string last_error(GCCL_Result result) { return std::string(GCCL_Error_string(result)) + ": " + GCCL_Last_error(); }

// MPI's code where the lengths differ: those who receive have the error. `otherwise`: of calls without a root.
int truncated(Function function, bool is_root, int otherwise) {
  switch (function) {
    case Function::gather:
    case Function::igather:
    case Function::reduce: return is_root ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    case Function::bcast:
    case Function::ibcast:
    case Function::scatter:
    case Function::iscatter: return is_root ? MPI_SUCCESS : MPI_ERR_TRUNCATE;
    default: return otherwise;
  }
}

// Where a rank has died, the launcher ends the job, with that rank's exit code. MPI_ERRORS_ARE_FATAL of the others
// would end it with their own if they came first. So they wait, once: some launchers let them go on.
void leave_the_end_to_the_launcher(MPI_Comm handled_by) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  PMPI_Comm_get_errhandler(handled_by, &handler);
  bool ends_the_job = handler == MPI_ERRORS_ARE_FATAL;
#ifdef MPI_ERRORS_ABORT
  ends_the_job = ends_the_job || handler == MPI_ERRORS_ABORT;
#endif
  PMPI_Errhandler_free(&handler);
  if (!ends_the_job) return;
  static const auto until = std::chrono::steady_clock::now() + kLauncherTime;
  std::this_thread::sleep_until(until);
}

// MPI's code for a call that GCCL could not finish.
int failed(Communicator& k, Function function, GCCL_Result result) {
  say(k.me, name(function), last_error(result));
  if (result == GCCL_ERR_MISMATCH) k.differs_said = true;
  return result == GCCL_ERR_SYSTEM ? MPI_ERR_INTERN : MPI_ERR_OTHER;
}

// The same for a non-blocking one.
int failed(PendingRequest* pending, GCCL_Result result) {
  Communicator& k = *pending->communicator;
  const int code = failed(k, pending->function, result);
  pending->peer_lost = result == GCCL_ERR_PEER_LOST;
  if (result != GCCL_ERR_MISMATCH) return code;
  k.failed_before = true;
  return truncated(pending->function, pending->call.root == k.me.rank, code);
}

// What becomes of a blocking call whose ranks' calls differ; recovery.hpp.
int recovered(Communicator& k, Function function, int root, bool spoiled, int code, bool* to_mpi) {
  settle(k);  // GCCL has ended the non-blocking calls too: was it one of these that differed?
  const Recovery what = recover(k, function, root, spoiled);
  if (what == Recovery::none) return code;
  say(k.me, name(function), "MPI answers the calls on this communicator from now on");
  k.stage = Communicator::Stage::failed;
  *to_mpi = what == Recovery::mpi;
  return truncated(function, root == k.me.rank, MPI_ERR_TRUNCATE);
}

// A rank whose own calls have all ended, as a sender's do, hears here that they were not the others'. No call of its is
// left to return that.
void let_go_of(Leaving& l, GCCL_Result why) {
  if (why == GCCL_ERR_MISMATCH && !l.differs_said) say(l.me, "freeing a communicator", last_error(why));
  GCCL_Comm_release(&l.comm);
}

void leave(Communicator& k) {
  Leaving l{k.gccl, GCCL_REQUEST_NULL, k.me, k.differs_said, std::move(k.promised)};
  GCCL_Comm_set_timeout(l.comm, GCCL_TIMEOUT_NONE);  // the others may compute before they come here
  if (const GCCL_Result r = GCCL_Ibarrier(l.comm, &l.barrier); r == GCCL_SUCCESS) {
    leaving.push_back(std::move(l));
  } else {
    let_go_of(l, r);
  }
}

// False where there is nothing of GCCL's to leave, or no longer.
bool retire_locked(Communicator& k) {
  const bool ours = k.stage != Communicator::Stage::retired && k.gccl != GCCL_COMM_NULL && k.me.size > 1;
  if (ours) std::erase(connected, &k);
  if (ours && k.in_flight == 0) leave(k);
  // A delete function of the program's may still call collectives on it.
  k.stage = Communicator::Stage::retired;
  return ours;
}

// Whether all ranks have come there, or their calls differ: then it is over.
bool has_left(Leaving& l) {
  int done = 0;
  const GCCL_Result r = GCCL_Test(&l.barrier, &done);
  if (r == GCCL_SUCCESS && !done) return false;
  let_go_of(l, r);
  return true;
}

// Moves on those that are leaving. True when none is left.
bool let_go() {
  std::erase_if(leaving, has_left);
  return leaving.empty();
}

// The second of the two that are done with it deletes it.
void done_with(PendingRequest* pending) {
  if (pending->left.exchange(true)) delete pending;
}

void complete(PendingRequest* pending, int code) {
  Communicator* const k = pending->communicator;
  const MPI_Request request = pending->request;
  in_flight.fetch_sub(1);
  if (--k->in_flight == 0) {
    if (k->stage == Communicator::Stage::retired && k->me.size > 1) leave(*k);
    if (k->released) delete k;
  }
  count_answer();
  pending->code.store(code, std::memory_order_release);
  pending->complete.store(true, std::memory_order_release);
  PMPI_Grequest_complete(request);
  done_with(pending);
}

void start(PendingRequest* pending) {
  Communicator* const k = pending->communicator;
  if (const GCCL_Result r = pending->call.start(k->gccl, &pending->gccl); r != GCCL_SUCCESS)
    return complete(pending, failed(pending, r));
  started.push_back(pending);
}

// True when it is over, and was completed.
bool poll(PendingRequest* pending) {
  int done = 0;
  const GCCL_Result r = GCCL_Test(&pending->gccl, &done);
  if (r == GCCL_SUCCESS && !done) return false;
  complete(pending, r == GCCL_SUCCESS ? pending->call.finish() : failed(pending, r));
  return true;
}

// As GCCL finds out for its own waits.
void look_for_oversubscription(const Communicator& k, const Connected& made) {
  if (made.processors.empty()) return;
  if (made.oversubscribed) return set_oversubscribed(*made.oversubscribed);
  std::vector<int> nodes(static_cast<std::size_t>(k.me.size));
  if (GCCL_Comm_nodes(k.gccl, nodes.data()) != GCCL_SUCCESS) return;
  std::vector<ProcessorShare> here;
  for (std::size_t r = 0; r < nodes.size(); ++r)
    if (nodes[r] == nodes[std::size_t(k.me.rank)]) here.push_back(made.processors[r]);
  if (outnumber_processors(here)) set_oversubscribed(true);
}

// Size 1 needs nobody else.
void connect_alone(Communicator& k) {
  k.gccl = solo();
  k.stage = k.gccl != GCCL_COMM_NULL ? Communicator::Stage::ready : Communicator::Stage::failed;
}

int query(void* state, MPI_Status* status) {
  PMPI_Status_set_elements(status, MPI_BYTE, 0);
  PMPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  const PendingRequest& pending = *static_cast<PendingRequest*>(state);
  const int code = pending.code.load(std::memory_order_acquire);
  if (code != MPI_SUCCESS && pending.peer_lost) leave_the_end_to_the_launcher(MPI_COMM_WORLD);
  return code;
}
// Once it is complete; by MPICH also when the program gives it up before (MPI_Request_free).
int release(void* state) {
  done_with(static_cast<PendingRequest*>(state));
  return MPI_SUCCESS;
}
int cancel(void*, int) { return MPI_SUCCESS; }  // collectives cannot be cancelled

// MPICH's waits ask a request that was made so. For Open MPI's see mpi_waits.hpp.
int start_request(PendingRequest* pending) {
#ifdef MPICH_VERSION
  const auto poll = [](void*, MPI_Status*) {
    if (!InOwnCode::is()) progress();
    return MPI_SUCCESS;
  };
  const auto wait = [](int n, void** states, double, MPI_Status*) {
    Wait pause(false);
    for (int i = 0; i < n; ++i)
      for (; !static_cast<PendingRequest*>(states[i])->complete.load(std::memory_order_acquire); pause.pause())
        progress();
    return MPI_SUCCESS;
  };
  return PMPIX_Grequest_start(query, release, cancel, poll, wait, pending, &pending->request);
#else
  return PMPI_Grequest_start(query, release, cancel, pending, &pending->request);
#endif
}

}  // namespace

bool anything_in_flight() { return in_flight.load(std::memory_order_relaxed) > 0; }

void progress() {
  if (!anything_in_flight() || inside) return;
  background::main_was_here();
  Locked lock(std::try_to_lock);
  if (!lock) return;
  for (std::size_t i = 0; i < started.size();) {
    PendingRequest* const pending = started[i];
    if (poll(pending)) {
      started.erase(started.begin() + std::ptrdiff_t(i));
    } else {
      ++i;
    }
  }
}

bool connect(Communicator& k) {
  using Stage = Communicator::Stage;
  if (k.stage == Stage::ready) return true;
  if (k.stage != Stage::fresh) return false;
  if (k.me.size == 1) {
    connect_alone(k);
    return k.stage == Stage::ready;
  }
  GCCL_Comm world = GCCL_COMM_NULL;
  {
    const Locked lock;
    let_go();  // a program that makes and frees communicators in turn never keeps many
    for (const Communicator* c : connected)
      if (c->mpi == MPI_COMM_WORLD) world = c->gccl;
  }
  Connected made = connect_ranks(k.mpi, k.me.rank, k.me.size, world);
  if (!made.error.empty()) say(k.me, "connecting", made.error + "; MPI will answer the calls");
  if (made.comm == GCCL_COMM_NULL) {
    k.stage = Stage::failed;
    return false;
  }
  k.gccl = made.comm;
  k.promised = std::move(made.promised);
  k.tag = made.tag;
  look_for_oversubscription(k, made);
  const Locked lock;
  connected.push_back(&k);
  k.stage = Stage::ready;
  return true;
}

int run(Communicator& k, Call& call, Function function, bool* to_mpi) {
  const InOwnCode here;
  const background::KeepOff keep_off(call.combines_outside());
  ++k.calls;
  k.last_call = ++all_calls;
  GCCL_Request request = GCCL_REQUEST_NULL;
  GCCL_Result result = call.start(k.gccl, &request);
  const bool spoiled = result == GCCL_SUCCESS && call.in_place();
  int done = request == GCCL_REQUEST_NULL;
  Wait wait(false);
  while (result == GCCL_SUCCESS) {
    if (!done) result = GCCL_Test(&request, &done);
    if (done) break;
    progress();
    wait.pause();
  }
  count_answer();
  if (result == GCCL_SUCCESS && call.hears_others()) k.refused = 0;
  int code = result == GCCL_SUCCESS ? call.finish() : failed(k, function, result);
  if (result == GCCL_ERR_PEER_LOST) leave_the_end_to_the_launcher(k.mpi);
  if (result == GCCL_ERR_MISMATCH) code = recovered(k, function, call.root, spoiled, code, to_mpi);
  return code;
}

Reason may_begin(Communicator& k) {
  using Stage = Communicator::Stage;
  if (k.stage == Stage::ready) return Reason::none;
  if (k.stage != Stage::fresh) return Reason::not_connected;
  if (k.me.size > 1) return Reason::not_yet_connected;
  connect_alone(k);
  return k.stage == Stage::ready ? Reason::none : Reason::not_connected;
}

int begin(Communicator& k, std::unique_ptr<PendingRequest> pending, MPI_Request* request) {
  pending->communicator = &k;
  if (const int code = start_request(pending.get()); code != MPI_SUCCESS) return code;
  *request = pending->request;
  PendingRequest* const begun = pending.release();
  const Locked lock;
  in_flight.fetch_add(1);
  ++k.in_flight;
  ++k.calls;
  k.last_call = ++all_calls;
  background::needed();
  start(begun);
  return MPI_SUCCESS;
}

void settle(Communicator& k) {
  Wait wait(false);
  for (;;) {
    {
      const Locked lock;
      if (k.in_flight == 0) return;
    }
    progress();
    wait.pause();
  }
}

void retire(Communicator& k) {
  const Locked lock;
  if (retire_locked(k)) let_go();
}

void retire_latest() {
  Communicator* latest = nullptr;
  {
    const Locked lock;
    if (const auto k = std::ranges::max_element(connected, {}, &Communicator::last_call); k != connected.end())
      latest = *k;
  }
  if (latest) retire(*latest);
}

void move_on_latest() {
  const Locked lock;
  if (!leaving.empty() && has_left(leaving.back())) leaving.pop_back();
}

void retire_all() {
  std::vector<Communicator*> all;
  {
    const Locked lock;
    all = connected;
  }
  for (Communicator* k : all) retire(*k);
}

bool settle_all(double seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  Wait wait(false);
  for (;;) {
    progress();
    {
      const Locked lock;
      if (let_go() && !anything_in_flight()) return true;
    }
    if (std::chrono::steady_clock::now() > until) return false;
    wait.pause();
  }
}

void abandon_all() {
  {
    const Locked lock;
    for (const PendingRequest* pending : started) GCCL_Abort(pending->communicator->gccl, 0);
    for (const Leaving& l : leaving) GCCL_Abort(l.comm, 0);
  }
  settle_all(1);
}

void released(Communicator* k) {
  std::optional<Locked> lock;
  if (!inside) lock.emplace();
  retire_locked(*k);
  if (k->in_flight == 0) {
    delete k;
  } else {
    k->released = true;
  }
}

}  // namespace gccl::pmpi
