#include "libgccl/bootstrap/identity.hpp"

#include <fmt/core.h>

#include <cassert>
#include <climits>
#include <span>
#include <string>

#include "gccl/gccl.h"

namespace gccl {
namespace {

using Kind = Launcher::Kind;

// PMIx names no variable for the size: what its hosts set instead. An allocation of SLURM's sets sizes in shells that
// srun did not start.
constexpr Launcher kLaunchers[] = {
    {Kind::gccl, "GCCL", "GCCL_RANK", {"GCCL_SIZE"}, "GCCL_LOCAL_RANK", "GCCL_LOCAL_SIZE", {}, false},
    {Kind::torchrun, "torchrun", "RANK", {"WORLD_SIZE"}, "LOCAL_RANK", "LOCAL_WORLD_SIZE", {}, false},
    {Kind::openmpi,
     "Open MPI",
     "OMPI_COMM_WORLD_RANK",
     {"OMPI_COMM_WORLD_SIZE"},
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {},
     false},
    {Kind::pmix,
     "PMIx",
     "PMIX_RANK",
     {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "PMI_SIZE"},
     nullptr,
     nullptr,
     {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"},
     true},
    {Kind::slurm,
     "SLURM",
     "SLURM_PROCID",
     {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
     "SLURM_LOCALID",
     nullptr,
     {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"},
     true},
    {Kind::pmi, "PMI", "PMI_RANK", {"PMI_SIZE"}, "MPI_LOCALRANKID", "MPI_LOCALNRANKS", {}, false},
};

const char* first_set(const Environment& environment, std::span<const char* const> names) {
  for (const char* name : names)
    if (name && environment(name)) return name;
  return nullptr;
}

// Hydra, the mpiexec of MPICH and Intel MPI, starts ranks by srun or in a shell that SLURM has started, and they
// inherit what SLURM says of that process. PMI's pair alone says nothing of who is the inner launcher: srun --mpi=pmi2
// sets it, too, and the variables of each rank are to lead to the same answer. Hydra alone sets the local two.
bool started_by_hydra(const Environment& environment) {
  for (const char* name : {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"})
    if (!environment(name)) return false;
  return true;
}

// What one launcher's variables say.
struct Stated {
  std::int64_t rank = -1, size = -1;  // -1: not stated
  const char* size_name = nullptr;
  std::int64_t local_rank = -1, local_size = -1, nodes = -1;
};

// Where it is, which does not say who it is.
Status ask_machine(const Environment& environment, const Launcher& launcher, Stated* stated) {
  bool found = false;
  if (launcher.local_size)
    if (Status s = read_number(environment, launcher.local_size, 1, kRanksMax, &stated->local_size, &found); !s.ok())
      return s;
  if (const char* nodes = first_set(environment, launcher.nodes))
    if (Status s = read_number(environment, nodes, 1, kRanksMax, &stated->nodes, &found); !s.ok()) return s;
  if (launcher.local_rank)
    if (Status s = read_number(environment, launcher.local_rank, 0, kRanksMax - 1, &stated->local_rank, &found);
        !s.ok())
      return s;
  const std::int64_t local_end = stated->local_size >= 0 ? stated->local_size : stated->size;
  if (local_end >= 0 && stated->local_rank >= local_end)
    return invalid(fmt::format("{} is {}, expected less than {}, which is {}", launcher.local_rank, stated->local_rank,
                               stated->local_size >= 0 ? launcher.local_size : stated->size_name, local_end));
  if (stated->size >= 0 && stated->local_size > stated->size)
    return invalid(fmt::format("{} is {}, expected at most {}, which is {}", launcher.local_size, stated->local_size,
                               stated->size_name, stated->size));
  return {};
}

Status ask(const Environment& environment, const Launcher& launcher, Stated* stated) {
  bool found = false;
  stated->size_name = first_set(environment, launcher.sizes);
  if (Status s = read_number(environment, launcher.rank, 0, kRanksMax - 1, &stated->rank, &found); !s.ok()) return s;
  if (stated->size_name)
    if (Status s = read_number(environment, stated->size_name, 1, kRanksMax, &stated->size, &found); !s.ok()) return s;
  if (stated->size >= 0 && stated->rank >= stated->size)
    return invalid(fmt::format("{} is {}, expected less than {}, which is {}", launcher.rank, stated->rank,
                               stated->size_name, stated->size));
  return {};
}

Status half_set(const char* set, const char* missing, const Launcher& launcher) {
  assert(set && missing);
  std::string text = fmt::format("{} is set and {} is not: expected both or neither", set, missing);
  if (launcher.kind == Kind::pmix) text += " (or GCCL_RANK and GCCL_SIZE, which come first)";
  return invalid(text);
}

Identity::Machines machines_of(const Stated& stated) {
  using enum Identity::Machines;
  if (stated.nodes >= 0) return stated.nodes == 1 ? one : several;
  if (stated.local_size >= 0 && stated.size >= 0) return stated.local_size == stated.size ? one : several;
  return unknown;
}

}  // namespace

Status identify(const Environment& given, int rank, int size, Identity* out) {
  const Environment environment = without_empty(given);
  if (size != -1 && (size < 1 || size > kRanksMax))
    return invalid(
        fmt::format("the size is {}, expected 1 to {}, or -1 to take it from the environment", size, kRanksMax));
  if (rank < -1 || (size != -1 && rank >= size))
    return invalid(fmt::format("the rank is {}, expected 0 to {}, or -1 to take it from the environment", rank,
                               size != -1 ? std::to_string(size - 1) : "size - 1"));
  *out = {};
  Stated first;                   // of the first launcher that launched this process
  std::int64_t stated_size = -1;  // the first size that any launcher states
  const char* stated_size_name = nullptr;
  const bool both_given = rank != -1 && size != -1;
  const bool by_hydra = started_by_hydra(environment);
  for (const Launcher& launcher : kLaunchers) {
    if (by_hydra && launcher.size_alone) continue;  // inherited
    Stated stated;
    if (Status s = ask(environment, launcher, &stated); !s.ok()) {
      if (both_given) continue;  // another program's variables
      return s;
    }
    if (stated.size >= 0 && stated_size < 0 && (stated.rank >= 0 || !launcher.size_alone))
      stated_size = stated.size, stated_size_name = stated.size_name;
    // Half of a pair will do where the caller gives the other half.
    if (stated.rank >= 0 && stated.size < 0 && size == -1 && rank == -1)
      return half_set(launcher.rank, launcher.sizes[0], launcher);
    if (stated.rank < 0 && stated.size >= 0 && rank == -1 && !launcher.size_alone)
      return half_set(stated.size_name, launcher.rank, launcher);
    if (stated.rank < 0) continue;
    first = stated;
    out->launcher = &launcher;
    const Status machine = ask_machine(environment, launcher, &stated);
    if (machine.ok()) out->machines = machines_of(stated);
    if (!both_given) out->wrong = machine;
    break;
  }
  if (rank == -1 && size == -1 && !out->launcher) return {};  // a job of one

  if (size == -1) {
    if (stated_size < 0)
      return invalid(
          fmt::format("the rank is given as {} and the size is not: set GCCL_Config.size or GCCL_SIZE", rank));
    if (rank >= stated_size)
      return invalid(fmt::format("the rank is given as {}, expected less than {}, which is {}", rank, stated_size_name,
                                 stated_size));
    out->size = Rank(stated_size);
  } else {
    if (rank == -1 && out->launcher && stated_size >= 0 && stated_size != size)
      return invalid(fmt::format("the size is given as {}, but {} is {}", size, stated_size_name, stated_size));
    out->size = Rank(size);
  }
  if (rank == -1) {
    if (!out->launcher && size > 1)
      return invalid(
          fmt::format("the size is given as {} and the rank is not: set GCCL_Config.rank or GCCL_RANK", size));
    if (first.rank >= std::int64_t(out->size))
      return invalid(fmt::format("{} is {}, expected less than the size, which is given as {}", out->launcher->rank,
                                 first.rank, size));
    out->rank = Rank(std::max<std::int64_t>(first.rank, 0));
  } else {
    out->rank = Rank(rank);
  }
  assert(out->rank < out->size);
  return {};
}

}  // namespace gccl
