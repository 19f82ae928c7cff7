// What standard error says of the journal of --resume.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/run/journal.hpp"

namespace gccl {

// Which of these points it spared, and what of it is not used: another scenario, cluster, seed or program wrote it.
// Nothing where it was new.
void say_known(const sim::Journal& journal, const std::vector<std::string>& keys);
// Nothing where every point is in it.
void say_unwritten(const sim::Journal& journal);

}  // namespace gccl
