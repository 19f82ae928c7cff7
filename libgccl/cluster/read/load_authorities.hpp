// What the environment says of the choice of algorithms.
#pragma once

#include "libgccl/base/environment.hpp"
#include "libgccl/base/status.hpp"
#include "libgccl/cluster/cluster.hpp"
#include "libgccl/select/authorities.hpp"

namespace gccl {

// GCCL_ALGORITHM, GCCL_ALGO and GCCL_TUNING_FILE; what is empty or not set asks for nothing. GCCL_ERR_INVALID_ARGUMENT
// says which variable is wrong in what, for a file with its name and the place in it.
Status load_authorities(const Environment& environment, Authorities* out);

// GCCL_ERR_INVALID_ARGUMENT where the table is for another machine than ranks on these cards have (check_machine); the
// second for that of GCCL_TUNING_FILE, as far as there is one.
Status check_table(const TuningTable& table, const Cluster& cluster, const std::vector<Card>& cards);
Status check_table(const Authorities& authorities, const Cluster& cluster, const std::vector<Card>& cards);

}  // namespace gccl
