#include "sim/measured/predict/algorithm_names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/measured/measurement.hpp"

namespace gccl::sim {
namespace {

// The same algorithm under other names: NCCL's (NCCL_ALGO), Open MPI's and MPICH's (coll_tuned, MPIR_CVAR), PICO's.
// What differs in messages or bytes is not here: linear exchanges of MPI in all-to-all, segmented trees, bine.
struct OtherName {
  Collective kind;
  std::string_view other, ours;
};
constexpr OtherName kOtherNames[] = {
    {Collective::allreduce, "segmented_ring", "ring"},
    {Collective::allreduce, "ring_segmented", "ring"},
    {Collective::allreduce, "nvlstree", "nvls_tree"},
    {Collective::allgather, "neighbor", "neighbor_exchange"},
    {Collective::allgather, "brucks", "bruck"},
    {Collective::allgather, "linear", "direct"},
    {Collective::broadcast, "ring", "chain"},
    {Collective::broadcast, "pipeline", "chain"},
    {Collective::broadcast, "linear", "direct"},
    {Collective::broadcast, "scatter_allgather_ring", "scatter_allgather"},
    {Collective::reduce, "ring", "chain"},
    {Collective::reduce, "pipeline", "chain"},
    {Collective::reduce, "linear", "direct"},
    {Collective::scatter, "linear_nb", "linear"},
    {Collective::alltoall, "modified_bruck", "bruck"},
    {Collective::alltoall, "brucks", "bruck"},
};
// Open MPI's and MPICH's scatter_allgather is by recursive doubling, GCCL's by a ring.
constexpr OtherName kFalseFriends[] = {{Collective::broadcast, "scatter_allgather", ""}};
// PICO's names of Open MPI's and MPICH's algorithms, and of its own over their messages.
constexpr std::string_view kMpiSuffixes[] = {"_ompi", "_mpich", "_over"};
constexpr std::string_view kPrefixes[] = {"nccl_algo=", "ctran ct"};

bool is_choice(std::string_view name) {
  for (const std::string_view whole : {"", "auto", "nccl", "rccl", "mpi", "open mpi", "mpich", "default"})
    if (name == whole) return true;
  for (const std::string_view begin :
       {"nccl default", "rccl default", "nccl tuned", "auto:", "auto ", "default_", "default "})
    if (name.starts_with(begin)) return true;
  return false;
}

bool is_mpi(std::string_view name) {
  if (name == "mpi" || name.starts_with("open mpi") || name.starts_with("mpich")) return true;
  return std::any_of(std::begin(kMpiSuffixes), std::end(kMpiSuffixes),
                     [&](std::string_view s) { return name.ends_with(s); });
}

PlannerKind library_of(std::string_view name) {
  if (name.starts_with("nccl")) return PlannerKind::nccl;
  return name.ends_with("_ompi") || name == "open mpi" ? PlannerKind::openmpi : PlannerKind::gccl;
}

}  // namespace

MeasuredAlgorithm measured_algorithm(Collective kind, const std::string& text) {
  if (const Algorithm* own = find_algorithm(kind, text)) return {.algorithm = own};
  std::string name = lower_case(text);
  const PlannerKind library = library_of(name);
  const bool mpi = is_mpi(name);
  if (is_choice(name)) return {.automatic = true, .library = library, .mpi = mpi};
  for (const std::string_view p : kPrefixes)
    if (name.starts_with(p)) name.erase(0, p.size());
  if (const std::size_t more = name.find(" ("); more != name.npos) name.resize(more);  // "Ring (tuner)"
  for (const std::string_view s : kMpiSuffixes)
    if (name.ends_with(s)) name.resize(name.size() - s.size());
  if (is_choice(name)) return {.automatic = true, .library = library, .mpi = mpi};
  const auto wrong = [&] {
    return MeasuredAlgorithm{.wrong = fmt::format("GCCL has no {} like \"{}\"", gccl::name(kind), text)};
  };
  for (const OtherName& f : kFalseFriends)
    if (f.kind == kind && f.other == name) return wrong();
  const bool in_turn = !name.ends_with("_nb");
  for (const OtherName& o : kOtherNames)
    if (o.kind == kind && o.other == name) {
      name = o.ours;
      break;
    }
  if (const Algorithm* found = find_algorithm(kind, name))
    return {.algorithm = found, .library = library, .mpi = mpi, .in_turn = in_turn};
  return wrong();
}

std::string named_alike(Collective kind, std::string_view ours, const std::string& like) {
  const std::string name = lower_case(like);
  // What means something else there has another name.
  for (const OtherName& o : kOtherNames)
    if (is_mpi(name) && o.kind == kind && o.ours == ours &&
        std::ranges::any_of(kFalseFriends, [&](const OtherName& f) { return f.kind == kind && f.other == ours; }))
      return named_alike(kind, o.other, like);
  for (const std::string_view s : kMpiSuffixes)
    if (name.ends_with(s)) return std::string(ours) + std::string(s);
  return std::string(ours) + (name.starts_with("open mpi") ? "_ompi" : is_mpi(name) ? "_mpich" : "");
}

}  // namespace gccl::sim
