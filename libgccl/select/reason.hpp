// Why a call is carried out as it is, in words.
#pragma once

#include <string>

#include "libgccl/select/plan.hpp"

namespace gccl {

// "by the model: 12.3 us predicted, 14.1 us for swing", "by GCCL_TUNING_FILE (t.json: /entries/3)". `authorities` are
// those of the plan.
std::string reason_of(const Plan& plan, const Authorities& authorities);

}  // namespace gccl
