// The recorded steps of a run as a trace that chrome://tracing and ui.perfetto.dev open.
#pragma once

#include <string>

#include "sim/engine/workload.hpp"

namespace gccl::sim {

// Chrome's JSON array format. One process for each recorded rank, one thread for each row of each of its lanes, one
// complete event ("X") for each span, with peer, bytes and op; one more process shows the operations as wholes. Times
// are microseconds with three decimals, that is exact to the nanosecond. Within a thread events are in order of time
// and never overlap. The metadata event "gccl_trace" says how many spans were recorded and how many were dropped.
// Requires an outcome of this workload.
std::string chrome_trace(const Workload&, const Outcome&);

}  // namespace gccl::sim
