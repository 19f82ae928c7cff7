// What happened in a run with faults, for a row: each event with its time and a sentence.
#pragma once

#include <nlohmann/json.hpp>

#include "sim/fault/faults.hpp"

namespace gccl::sim {

// A list of {"at_us", "event", "text"} by their times, "event" being one of fault_begins, fault_ends, first_notified,
// all_notified, work, link_slow, link_recovered, planned_around; those of faults have "fault", their place in the row's
// "timeline".
nlohmann::json fault_events(const FaultOutcome& outcome, const FaultPlan& plan);

// Places in the "timeline" of the faults that did not come: the run was over before, or whom they concern was gone.
nlohmann::json faults_that_never_struck(const FaultOutcome& outcome, const FaultPlan& plan);

}  // namespace gccl::sim
