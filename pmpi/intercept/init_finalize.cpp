// The drop-in's beginning and end within the program's MPI, and what is freed in between.
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "pmpi/engine/background.hpp"
#include "pmpi/engine/own_world.hpp"
#include "pmpi/engine/progress.hpp"

namespace gccl::pmpi {
namespace {

constexpr double kSettleSeconds = 10;

bool stats_wanted() {
  const char* const value = std::getenv("GCCL_PMPI_STATS");
  return value && std::strcmp(value, "0") != 0 && *value != 0;
}

void print_stats_on_rank_0() {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0 && stats_wanted()) print_stats();
}

// Before MPI ends: ends GCCL, and prints the counts where GCCL_PMPI_STATS=1. Collective.
void end_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    // A rank that waits for one that is here, in a call on the communicator that both used last, finds that this one
    // has left.
    retire_latest();
    // GCCL waits for GCCL only: so all ranks come here first, where they move MPI's messages on.
    MPI_Request all_here = MPI_REQUEST_NULL;
    PMPI_Ibarrier(own_world(), &all_here);
    wait_for(
        [&](int* flag) {
          move_on_latest();
          return PMPI_Test(&all_here, flag, MPI_STATUS_IGNORE);
        },
        IdleWait());
    free_own_world();
    retire_all();
    if (!settle_all(kSettleSeconds)) abandon_all();
    stop_finding();
    leave_mpi_waits();
    background::stop();
    release_solo();
    print_stats_on_rank_0();
  });
}

// MPI_Finalize frees MPI_COMM_SELF first of all: so we learn of the end even where another language's MPI_Finalize is
// called.
int when_self_is_freed(MPI_Comm, int, void*, void*) {
  end_once();
  return MPI_SUCCESS;
}

// MPI libraries differ in what a communicator is, so calls must not go from one to another. `gccl pmpi` looks at the
// program that it starts; this sees what a script started, and what a program has loaded by itself.
void require_one_mpi() {
  struct Found {
    int n = 0;
    std::string names;
  } found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* context) {
        std::string name = info->dlpi_name ? info->dlpi_name : "";
        name = name.substr(name.rfind('/') + 1);
        if (!name.starts_with("libmpi.so") && !name.starts_with("libmpich.so")) return 0;
        Found& f = *static_cast<Found*>(context);
        f.names += (f.n++ > 0 ? " and " : "") + name;
        return 0;
      },
      &found);
  if (found.n < 2) return;
  std::fprintf(stderr,
               "gccl_pmpi: this program has %s in one process: it uses another MPI library than the drop-in was built "
               "for. Build GCCL for the program's MPI (-DGCCL_PMPI_COMPILER=mpicxx.mpich) and name that drop-in with "
               "gccl pmpi --library\n",
               found.names.c_str());
  std::_Exit(2);
}

// A launcher of another MPI starts the processes, and each becomes a job of its own: the program would end well, with
// results for one rank. `started`: how many such a launcher has started, before MPI's beginning, as that sets variables
// like a launcher's. 0: it is MPI's own, or none.
#ifdef OPEN_MPI
constexpr const char *kOwnLauncher[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK"}, *kOtherLauncher = "PMI_SIZE";
#else
constexpr const char *kOwnLauncher[] = {"PMI_RANK", "PMIX_RANK"}, *kOtherLauncher = "OMPI_COMM_WORLD_SIZE";
#endif

int started_by_another() {
  for (const char* const variable : kOwnLauncher)
    if (std::getenv(variable)) return 0;
  const char* const size = std::getenv(kOtherLauncher);
  return size ? std::atoi(size) : 0;
}

void require_own_launcher(int started) {
  int size = 0;
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size > 1 || started < 2) return;
  std::fprintf(
      stderr,
      "gccl_pmpi: this process was started as one of %d (%s), and is alone in its MPI_COMM_WORLD: the launcher "
      "is another MPI's than the program's. Start it with the mpirun of the program's MPI\n",
      started, kOtherLauncher);
  PMPI_Finalize();
  std::_Exit(2);
}

void start(int started) {
  require_own_launcher(started);
  learn_predefined_types();
  make_own_world();
  int keyval = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, when_self_is_freed, &keyval, nullptr);
  PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
  PMPI_Comm_free_keyval(&keyval);
  enter_mpi_waits();
  Reason why;
  if (Communicator* const world = find(MPI_COMM_WORLD, &why)) connect(*world);
}

// MPI refuses to free its own communicators, and none. Nothing of ours may be held then, as the program's error handler
// may leave by longjmp.
bool may_be_freed(const MPI_Comm* comm) {
  return comm && *comm != MPI_COMM_NULL && *comm != MPI_COMM_WORLD && *comm != MPI_COMM_SELF;
}

}  // namespace
}  // namespace gccl::pmpi

using namespace gccl::pmpi;

extern "C" {

int MPI_Init(int* argc, char*** argv) {
  require_one_mpi();
  const int started = started_by_another();
  const int code = PMPI_Init(argc, argv);
  if (code == MPI_SUCCESS) start(started);
  return code;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  require_one_mpi();
  const int started = started_by_another();
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  if (code == MPI_SUCCESS) start(started);
  return code;
}

int MPI_Finalize(void) {
  if (running() && own_self() != MPI_COMM_NULL)
    end_once();
  else if (running())  // MPI was started past the drop-in
    print_stats_on_rank_0();
  return PMPI_Finalize();
}

int MPI_Comm_free(MPI_Comm* comm) {
  if (!may_be_freed(comm)) return PMPI_Comm_free(comm);
  if (Communicator* const k = find_known(*comm)) retire(*k);
  const Freeing freeing(*comm);
  return PMPI_Comm_free(comm);
}

int MPI_Comm_disconnect(MPI_Comm* comm) {
  if (!may_be_freed(comm)) return PMPI_Comm_disconnect(comm);
  if (Communicator* const k = find_known(*comm)) {
    settle(*k);
    retire(*k);
  }
  const Freeing freeing(*comm);
  return PMPI_Comm_disconnect(comm);
}

}  // extern "C"
