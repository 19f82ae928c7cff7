#include "pmpi/engine/mpi_waits.hpp"

#include <dlfcn.h>

#include "pmpi/engine/progress.hpp"

namespace gccl::pmpi {
namespace {

using Callback = int (*)();
using Register = int (*)(Callback);

int from_mpi() {
  if (!InOwnCode::is()) progress();
  return 0;  // of MPI's own messages, none was moved
}

void call_opal(const char* name) {
  if (const auto function = reinterpret_cast<Register>(dlsym(RTLD_DEFAULT, name))) function(from_mpi);
}

}  // namespace

void enter_mpi_waits() { call_opal("opal_progress_register"); }
void leave_mpi_waits() { call_opal("opal_progress_unregister"); }

}  // namespace gccl::pmpi
