// Which of GCCL's algorithms other libraries have too: what may be said in their tuning files. Only where theirs sends
// the same messages; a row that merely resembles theirs has no counterpart.
#pragma once

#include <optional>
#include <string_view>

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl::sim {

enum class Library : std::uint8_t { nccl, openmpi, mpich };
constexpr std::size_t kLibraries = 3;
constexpr std::string_view kLibraryNames[kLibraries] = {"NCCL", "Open MPI", "MPICH"};

struct Counterpart {
  std::string_view name;  // as the library names it
  int id = 0;             // as Open MPI numbers it
  // Right only for operations that commute, and taken for others too where a rule of Open MPI names it: its own choice
  // looks at the operation, its rules cannot.
  bool commuting = false;
};

// Which operations programs reduce by: with any, a rule of Open MPI must not name an algorithm for commuting ones.
enum class Operations : std::uint8_t { any, commute };

// What the files for other libraries are to say. Where what Open MPI chooses by itself is simulated to take at most so
// many percent longer than the fastest that rules can name, it is left to it: a simulation is no nearer to the machine
// than that, and of plans that are as good its own is the safer one. 0: where its own is faster than all that rules can
// name.
struct Exporting {
  static constexpr double kGainPercent = 10;

  Operations operations = Operations::any;
  double gain_percent = kGainPercent;

  Exporting(Operations o, double gain = kGainPercent) : operations(o), gain_percent(gain) {}
};

// What a counterpart depends on besides the algorithm.
struct PlannedCall {
  Rank ranks = 1, nodes = 1;
  std::string_view protocol;  // empty: the cluster has none
  Count chunks = 1;
};

// MPI libraries send a call whole, so no other slicing has one with them. NCCL has PAT only with one rank on each node,
// trees of switches only across nodes, and all but its rings and trees only with Simple (src/graph/tuning.cc).
std::optional<Counterpart> counterpart(Library library, const Algorithm& algorithm, const PlannedCall& call);

// Open MPI's number of a collective in coll_tuned_dynamic_rules_filename (ompi/mca/coll/base/coll_base_functions.h),
// and the name in its JSON; nothing where its rules know none.
struct OpenMpiCollective {
  int id;
  std::string_view name;
};
std::optional<OpenMpiCollective> openmpi_collective(Collective kind);

}  // namespace gccl::sim
