#include "pmpi/engine/communicator.hpp"

#include <array>
#include <cstring>
#include <mutex>

#include "libgccl/api/private_communicators.hpp"
#include "libgccl/base/splitmix.hpp"
#include "pmpi/engine/progress.hpp"

namespace gccl::pmpi {
namespace {

std::mutex attribute_mutex;  // of the key, and of making what it leads to
int keyval = MPI_KEYVAL_INVALID;
int dying_keyval = MPI_KEYVAL_INVALID;  // of communicators that MPI is freeing, once ours is gone from them
std::atomic<bool> stopped{false};

// A look-up of an attribute costs as much as a small all-reduce: each thread remembers what it found, until any
// communicator is freed.
std::atomic<std::uint64_t> epoch{1};
struct Remembered {
  std::uint64_t epoch = 0;
  MPI_Comm comm{};
  Communicator* found = nullptr;
};
thread_local std::array<Remembered, 16> remembered;

Remembered& memory_of(MPI_Comm comm) {
  std::uint64_t key = 0;
  std::memcpy(&key, &comm, sizeof comm);
  return remembered[std::size_t(key * splitmix::kGolden >> 60)];
}

thread_local Freeing* innermost = nullptr;

// Delete functions of the program's that come after it may call collectives on this communicator. Where a tool or a
// part in Fortran frees it, no Freeing says so; the attribute goes with the communicator, before its handle stands for
// another one.
int when_freed(MPI_Comm comm, int, void* attribute, void*) {
  forget_handles();
#ifdef OPEN_MPI  // MPICH's list of attributes must not be looked at meanwhile, by the program's functions either
  if (running() && !Freeing::is(comm)) PMPI_Comm_set_attr(comm, dying_keyval, attribute);
#else
  static_cast<void>(comm);
#endif
  released(static_cast<Communicator*>(attribute));
  return MPI_SUCCESS;
}

}  // namespace

Freeing::Freeing(MPI_Comm comm) : comm_(comm), outer_(innermost) { innermost = this; }
Freeing::~Freeing() { innermost = outer_; }
bool Freeing::is(MPI_Comm comm) {
  for (const Freeing* f = innermost; f; f = f->outer_)
    if (f->comm_ == comm) return true;
  return false;
}

void forget_handles() { epoch.fetch_add(1, std::memory_order_acq_rel); }

bool running() {
  if (stopped.load(std::memory_order_relaxed)) return false;
  int yes = 0, no = 0;
  PMPI_Initialized(&yes);
  PMPI_Finalized(&no);
  return yes && !no;
}

void stop_finding() {
  stopped = true;
  forget_handles();
}

Communicator* find_known(MPI_Comm comm) {
  if (is_no_handle(comm) || keyval == MPI_KEYVAL_INVALID || !running()) return nullptr;
  void* found = nullptr;
  int flag = 0;
  if (PMPI_Comm_get_attr(comm, keyval, &found, &flag) != MPI_SUCCESS || !flag) return nullptr;
  return static_cast<Communicator*>(found);
}

Communicator* find(MPI_Comm comm, Reason* why) {
  Remembered& m = memory_of(comm);
  const std::uint64_t now = epoch.load(std::memory_order_acquire);
  Communicator* k = m.epoch == now && m.comm == comm ? m.found : nullptr;
  if (!k) {
    *why = Reason::not_running;
    if (!running() || own_self() == MPI_COMM_NULL) return nullptr;
    *why = Reason::wrong_argument;
    if (is_no_handle(comm)) return nullptr;
    *why = Reason::not_connected;
    if (Freeing::is(comm)) return nullptr;
    *why = Reason::wrong_argument;
    std::lock_guard lock(attribute_mutex);
    if (keyval == MPI_KEYVAL_INVALID) {
      PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, when_freed, &keyval, nullptr);
      PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &dying_keyval, nullptr);
    }
    void* found = nullptr;
    int flag = 0;
    if (PMPI_Comm_get_attr(comm, keyval, &found, &flag) != MPI_SUCCESS) return nullptr;
    k = static_cast<Communicator*>(found);
    if (!flag) {
      void* dying = nullptr;
      PMPI_Comm_get_attr(comm, dying_keyval, &dying, &flag);
      *why = Reason::not_connected;
      if (flag) return nullptr;
      auto made = std::make_unique<Communicator>();
      int inter = 0;
      PMPI_Comm_test_inter(comm, &inter);
      PMPI_Comm_rank(comm, &made->me.rank);
      PMPI_Comm_size(comm, &made->me.size);
      made->mpi = comm;
      made->inter = inter != 0;
      k = made.release();
      PMPI_Comm_set_attr(comm, keyval, k);
    }
    m = {now, comm, k};
  }
  *why = Reason::intercommunicator;
  return k->inter ? nullptr : k;
}

namespace {

GCCL_Comm solo_comm = GCCL_COMM_NULL;

}  // namespace

GCCL_Comm solo() {
  static const bool made = [] {
    GCCL_Config config = GCCL_CONFIG_INIT;
    config.rank = 0;
    config.size = 1;
    config.allgather = [](const void* mine, void* all, size_t bytes, void*) {
      std::memcpy(all, mine, bytes);
      return 0;
    };
    config.progress_thread = 0;
    return GCCL_Init(&solo_comm, &config) == GCCL_SUCCESS && GCCL_Comm_set_private(solo_comm) == GCCL_SUCCESS;
  }();
  return made ? solo_comm : GCCL_COMM_NULL;
}

void release_solo() {
  if (solo_comm != GCCL_COMM_NULL) GCCL_Comm_release(&solo_comm);
}

}  // namespace gccl::pmpi
