#include "pmpi/progress.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>

#include "pmpi/background.hpp"

namespace gccl::pmpi {
namespace {

std::mutex mutex;  // of all that follows, and of what communicator.hpp says
std::vector<Communicator*> connecting;
std::vector<Later*> started;
std::vector<MPI_Op> idle_ops;
std::vector<MPI_Datatype> idle_types;
std::atomic<int> under_way{0};     // calls and set-ups
thread_local bool inside = false;  // this thread holds the lock: a user's function has come back to us

class Inside {
 public:
  Inside() { inside = true; }
  ~Inside() { inside = false; }
};

void say(const Communicator& k, const char* function, const std::string& text) {
  std::fprintf(stderr, "gccl_pmpi: rank %d of %d, %s: %s\n", k.me.rank, k.me.size, function, text.c_str());
}

std::string last_error(GCCL_Result result) { return std::string(GCCL_Error_string(result)) + ": " + GCCL_Last_error(); }

// MPI's code for a call that GCCL could not finish.
int failed(const Communicator& k, Function function, GCCL_Result result) {
  say(k, name(function), last_error(result));
  return result == GCCL_ERR_SYSTEM ? MPI_ERR_INTERN : MPI_ERR_OTHER;
}

void complete(Later* later, int code) {
  Communicator* const k = later->communicator;
  later->code = code;
  if (later->call.runs_user_function()) background::user_functions(-1);
  under_way.fetch_sub(1);
  if (--k->under_way == 0 && k->forgotten) delete k;
  PMPI_Grequest_complete(later->request);  // *later may be gone now
}

void start(Later* later) {
  Communicator* const k = later->communicator;
  if (later->call.runs_user_function()) background::user_functions(+1);
  if (const GCCL_Result r = later->call.start(k->gccl, &later->gccl); r != GCCL_SUCCESS)
    return complete(later, failed(*k, later->function, r));
  started.push_back(later);
}

// More ranks on this machine than processors?
void look_for_crowd(const Communicator& k) {
  std::vector<int> nodes(static_cast<std::size_t>(k.me.size));
  if (GCCL_Comm_nodes(k.gccl, nodes.data()) != GCCL_SUCCESS) return;
  const auto here = std::count(nodes.begin(), nodes.end(), nodes[std::size_t(k.me.rank)]);
  if (here > background::processors()) set_crowded(true);
}

void start_at_mpi(Later* later) {
  if (const int code = later->by_mpi(later->communicator->instead, &later->at_mpi); code != MPI_SUCCESS)
    return complete(later, code);
  started.push_back(later);
}

// Blocks until the other ranks come here too, which they do in their next look.
void make_instead(Communicator* k) {
  MPI_Group group;
  MPI_Errhandler handler;
  PMPI_Comm_group(k->mpi, &group);
  PMPI_Comm_create_group(own_world(), group, 0, &k->instead);
  PMPI_Group_free(&group);
  PMPI_Comm_get_errhandler(k->mpi, &handler);
  PMPI_Comm_set_errhandler(k->instead, handler);
  PMPI_Errhandler_free(&handler);
}

// Every rank is through with the set-up.
void connected(Communicator* k) {
  k->gccl = k->setup->result();
  const bool ready = k->gccl != GCCL_COMM_NULL;
  if (ready) look_for_crowd(*k);
  if (!ready && !k->setup->error().empty()) say(*k, "connecting", k->setup->error() + "; MPI will answer the calls");
  k->stage = ready ? Communicator::Stage::ready : Communicator::Stage::failed;
  k->setup.reset();
  // The first call was the same one on all ranks: so all of them have calls waiting, or none.
  if (!ready && !k->waiting.empty()) make_instead(k);
  for (Later* later : k->waiting) {
    if (ready) {
      start(later);
    } else {
      start_at_mpi(later);
    }
  }
  k->waiting.clear();
  under_way.fetch_sub(1);
}

// True when it is over, and was completed.
bool look_at(Later* later) {
  if (later->at_mpi != MPI_REQUEST_NULL) {
    int flag = 0;
    const int code = PMPI_Test(&later->at_mpi, &flag, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS && !flag) return false;
    complete(later, code);
    return true;
  }
  int done = 0;
  const GCCL_Result r = GCCL_Test(&later->gccl, &done);
  if (r == GCCL_SUCCESS && !done) return false;
  complete(later, r == GCCL_SUCCESS ? later->call.finish() : failed(*later->communicator, later->function, r));
  return true;
}

void begin_setup(Communicator* k) {
  auto setup = std::make_unique<Setup>(k->mpi, k->me.rank, k->me.size);
  std::lock_guard lock(mutex);
  k->setup = std::move(setup);
  k->stage = Communicator::Stage::connecting;
  connecting.push_back(k);
  under_way.fetch_add(1);
}

// Size 1 needs nobody else.
bool connect_alone(Communicator& k) {
  k.gccl = solo();
  k.stage = k.gccl != GCCL_COMM_NULL ? Communicator::Stage::ready : Communicator::Stage::failed;
  return k.gccl != GCCL_COMM_NULL;
}

int query(void* state, MPI_Status* status) {
  PMPI_Status_set_elements(status, MPI_BYTE, 0);
  PMPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return static_cast<Later*>(state)->code;
}
int release(void* state) {
  delete static_cast<Later*>(state);
  return MPI_SUCCESS;
}
int cancel(void*, int) { return MPI_SUCCESS; }  // collectives cannot be cancelled

}  // namespace

bool anything_under_way() { return under_way.load(std::memory_order_relaxed) > 0; }

void progress() {
  if (!anything_under_way() || inside) return;
  background::main_was_here();
  std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock) return;
  const Inside here;
  for (std::size_t i = 0; i < connecting.size();) {
    Communicator* const k = connecting[i];
    if (!k->setup->advance()) {
      ++i;
      continue;
    }
    connecting.erase(connecting.begin() + std::ptrdiff_t(i));
    connected(k);
  }
  for (std::size_t i = 0; i < started.size();) {
    Later* const later = started[i];
    if (look_at(later)) {
      started.erase(started.begin() + std::ptrdiff_t(i));
    } else {
      ++i;
    }
  }
  if (anything_under_way() || (idle_ops.empty() && idle_types.empty())) return;
  auto ops = std::move(idle_ops);
  auto types = std::move(idle_types);
  idle_ops.clear();
  idle_types.clear();
  lock.unlock();
  for (MPI_Op& op : ops) PMPI_Op_free(&op);
  for (MPI_Datatype& type : types) PMPI_Type_free(&type);
}

bool connect(Communicator& k) {
  using Stage = Communicator::Stage;
  if (k.stage == Stage::ready) return true;
  if (k.stage == Stage::fresh) {
    if (k.me.size == 1) return connect_alone(k);
    begin_setup(&k);
  }
  Wait wait(false);
  while (k.stage == Stage::connecting) {
    progress();
    wait.pause();
  }
  return k.stage == Stage::ready;
}

int run(Communicator& k, Call& call, Function function) {
  GCCL_Request request = GCCL_REQUEST_NULL;
  GCCL_Result result = call.start(k.gccl, &request);
  int done = request == GCCL_REQUEST_NULL;
  Wait wait(false);
  while (result == GCCL_SUCCESS) {
    if (!done) result = GCCL_Test(&request, &done);
    if (done) break;
    progress();
    wait.pause();
  }
  int code = result == GCCL_SUCCESS ? call.finish() : failed(k, function, result);
  if (code != MPI_SUCCESS) PMPI_Comm_call_errhandler(k.mpi, code);
  return code;
}

bool begin(Communicator& k, std::unique_ptr<Later> later, const std::function<int(MPI_Comm, MPI_Request*)>& by_mpi,
           MPI_Request* request, int* code) {
  using Stage = Communicator::Stage;
  if (k.stage == Stage::fresh) {
    if (k.me.size == 1) {
      connect_alone(k);
    } else {
      begin_setup(&k);
    }
  }
  if (k.stage != Stage::connecting && k.stage != Stage::ready) return false;
  later->communicator = &k;
  *code = PMPI_Grequest_start(query, release, cancel, later.get(), &later->request);
  if (*code != MPI_SUCCESS) return true;
  *request = later->request;
  Later* const l = later.release();
  std::lock_guard lock(mutex);
  const Inside here;
  under_way.fetch_add(1);
  ++k.under_way;
  background::needed();
  // Between the look above and the lock a set-up may have ended: then there is nobody to wait for.
  if (k.stage == Stage::connecting) {
    l->by_mpi = by_mpi;
    k.waiting.push_back(l);
  } else if (k.stage == Stage::ready) {
    start(l);
  } else {
    l->by_mpi = by_mpi;
    start_at_mpi(l);
  }
  return true;
}

void settle(Communicator& k) {
  Wait wait(false);
  while (k.stage == Communicator::Stage::connecting || k.under_way > 0) {
    progress();
    wait.pause();
  }
}

void settle_all(double seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  Wait wait(false);
  while (anything_under_way() && std::chrono::steady_clock::now() < until) {
    progress();
    wait.pause();
  }
}

void forgotten(Communicator* k) {
  std::unique_lock lock(mutex, std::defer_lock);
  if (!inside) lock.lock();
  if (k->under_way == 0 && k->stage != Communicator::Stage::connecting) {
    delete k;
  } else {
    k->forgotten = true;
  }
}

void free_op_when_idle(MPI_Op* op) {
  std::lock_guard lock(mutex);
  idle_ops.push_back(*op);
  *op = MPI_OP_NULL;
}

void free_type_when_idle(MPI_Datatype* type) {
  std::lock_guard lock(mutex);
  idle_types.push_back(*type);
  *type = MPI_DATATYPE_NULL;
}

}  // namespace gccl::pmpi
