// The drop-in's beginning and end within the program's MPI, and what is freed in between.
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "pmpi/background.hpp"
#include "pmpi/progress.hpp"

namespace gccl::pmpi {
namespace {

constexpr double kSettleSeconds = 10;

bool stats_wanted() {
  const char* const value = std::getenv("GCCL_PMPI_STATS");
  return value && std::strcmp(value, "0") != 0 && *value != 0;
}

// Before MPI ends: ends GCCL, and prints the counts where GCCL_PMPI_STATS=1. Collective.
void end_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    settle_all(kSettleSeconds);
    // GCCL's end waits for GCCL only: whoever still needs our MPI messages must have them before.
    PMPI_Barrier(MPI_COMM_WORLD);
    stop_finding();
    background::stop();
    GCCL_Finalize();
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && stats_wanted()) print_stats();
  });
}

// MPI_Finalize frees MPI_COMM_SELF first of all: so we hear of the end even where another language's MPI_Finalize is
// called.
int when_self_is_freed(MPI_Comm, int, void*, void*) {
  end_once();
  return MPI_SUCCESS;
}

void start() {
  learn_predefined_types();
  int keyval = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, when_self_is_freed, &keyval, nullptr);
  PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
  PMPI_Comm_free_keyval(&keyval);
  make_own_world();
  Reason why;
  if (Communicator* const world = find(MPI_COMM_WORLD, &why)) connect(*world);
}

// What the communicator's free functions have in common: GCCL's part goes first, on all ranks together.
void retire(MPI_Comm comm) {
  Communicator* const k = find_known(comm);
  if (!k) return;
  settle(*k);
  if (k->stage == Communicator::Stage::ready && k->me.size > 1) {
    // GCCL_Comm_free waits for the other ranks, but not for MPI: so all of them meet here first.
    Call barrier;
    GCCL_Request request = GCCL_REQUEST_NULL;
    GCCL_Result result = barrier.start(k->gccl, &request);
    Wait wait(false);
    for (int done = 0; result == GCCL_SUCCESS && !done;) {
      result = GCCL_Test(&request, &done);
      progress();
      if (!done) wait.pause();
    }
    GCCL_Comm_free(&k->gccl);
  }
  if (k->instead != k->mpi) {
    PMPI_Comm_free(&k->instead);
    k->instead = k->mpi;
  }
  // A delete function of the program's may still call collectives on it.
  k->stage = Communicator::Stage::retired;
}

}  // namespace
}  // namespace gccl::pmpi

using namespace gccl::pmpi;

extern "C" {

int MPI_Init(int* argc, char*** argv) {
  const int code = PMPI_Init(argc, argv);
  if (code == MPI_SUCCESS) start();
  return code;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  if (code == MPI_SUCCESS) start();
  return code;
}

int MPI_Finalize(void) {
  if (running() && own_world() != MPI_COMM_NULL) end_once();
  return PMPI_Finalize();
}

int MPI_Comm_free(MPI_Comm* comm) {
  if (comm) retire(*comm);
  return PMPI_Comm_free(comm);
}

int MPI_Comm_disconnect(MPI_Comm* comm) {
  if (comm) retire(*comm);
  return PMPI_Comm_disconnect(comm);
}

int MPI_Op_free(MPI_Op* op) {
  Operation known;
  if (!anything_under_way() || !op || *op == MPI_OP_NULL || predefined(*op, &known)) return PMPI_Op_free(op);
  free_op_when_idle(op);
  return MPI_SUCCESS;
}

int MPI_Type_free(MPI_Datatype* type) {
  if (!anything_under_way() || !type || *type == MPI_DATATYPE_NULL || predefined(*type)) return PMPI_Type_free(type);
  free_type_when_idle(type);
  return MPI_SUCCESS;
}

}  // extern "C"
