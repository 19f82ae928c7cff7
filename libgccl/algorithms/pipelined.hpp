// The time of a train of messages of which several are on their way at once.
#pragma once

#include "cost-models/cost_model.hpp"

namespace gccl {

// The lane's default window: how many steps a rank keeps in flight.
constexpr double kStepsInFlight = 8;

// `messages` independent messages of `bytes` each leave one rank (or, with steps_each = 2, are exchanged for as many):
// starts are apart by the port's or the processor's time, and the message that would be one too many in flight waits
// for the oldest to end. Nanoseconds from the first start to the last end.
Cost pipelined(double messages, const Hop& hop, double bytes, double overhead_ns, double steps_each);

}  // namespace gccl
