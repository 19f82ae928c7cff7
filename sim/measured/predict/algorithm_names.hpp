// What other libraries call their algorithms, as GCCL's.
#pragma once

#include <string>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/select/others/other_planners.hpp"

namespace gccl::sim {

struct MeasuredAlgorithm {
  const Algorithm* algorithm = nullptr;
  bool automatic = false;                   // the library's own choice, which a planner's stands for
  PlannerKind library = PlannerKind::gccl;  // whose it is, where its rules are known
  bool mpi = false;        // of an MPI library, or over its messages: between processes, each step's message whole
  bool in_turn = false;    // named so that a message which its algorithm sends after another one waits for that
  std::string wrong = {};  // neither: why not
};

// "NCCL_ALGO=ring", "Tree", "recursive_doubling_ompi", "NCCL default (auto)", or a name of GCCL's own.
MeasuredAlgorithm measured_algorithm(Collective kind, const std::string& name);

// Another algorithm's name in the place of this one, of the same library: "ring" for "default_ompi" is "ring_ompi".
std::string named_alike(Collective kind, std::string_view ours, const std::string& like);

}  // namespace gccl::sim
