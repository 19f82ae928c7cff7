#include "pmpi/engine/mpi_waits.hpp"

#include <dlfcn.h>

#include <atomic>

#include "pmpi/engine/progress.hpp"

namespace gccl::pmpi {
namespace {

using Callback = int (*)();
using Register = int (*)(Callback);

int from_mpi() {
  if (!InOwnCode::is()) progress();
  return 0;  // of MPI's own messages, none was moved
}

bool call_opal(const char* name) {
  const auto function = reinterpret_cast<Register>(dlsym(RTLD_DEFAULT, name));
  return function && function(from_mpi) == 0;
}

std::atomic<bool> entered{false};

}  // namespace

void enter_mpi_waits() { entered = call_opal("opal_progress_register"); }
bool mpi_waits_entered() { return entered.load(std::memory_order_relaxed); }
void leave_mpi_waits() {
  if (entered.exchange(false)) call_opal("opal_progress_unregister");
}

}  // namespace gccl::pmpi
