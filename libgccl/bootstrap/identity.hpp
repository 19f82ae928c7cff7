// Which rank is this process, and of how many? Stated by the caller, or by the variables that a launcher sets.
#pragma once

#include <array>

#include "libgccl/base/environment.hpp"
#include "libgccl/base/limits.hpp"
#include "libgccl/schedule/types.hpp"

namespace gccl {

// The variables of one way to start a job; null where it has none.
struct Launcher {
  enum class Kind { gccl, torchrun, openmpi, pmix, slurm, pmi };
  Kind kind;
  const char* name;
  const char* rank;
  std::array<const char*, 3> sizes;  // the first that is set counts
  const char* local_rank;
  const char* local_size;
  std::array<const char*, 2> nodes;  // how many machines; the first that is set counts
  bool size_alone;                   // these set a size without a rank where no rank was launched
};

struct Identity {
  Rank rank = 0, size = 1;
  const Launcher* launcher = nullptr;  // the first whose rank variable is set; null when there is none
  // What the launcher's own variables say about where its processes are.
  enum class Machines { unknown, one, several } machines = Machines::unknown;
  // A mistake in those, which is no reason to stay away from the others: rank and size are known.
  Status wrong;
};

// `rank` and `size` are the caller's, -1 where the environment decides. Then launchers are asked in the order of
// Launcher::Kind; none at all makes a job of one rank. PMI comes before PMIx and SLURM where Hydra's variables of the
// machine are set as well. Variables with an empty value count as not set. GCCL_ERR_INVALID_ARGUMENT names the variable
// that is wrong or missing; with `rank` and `size` both given no variable is.
Status identify(const Environment& environment, int rank, int size, Identity* out);

}  // namespace gccl
