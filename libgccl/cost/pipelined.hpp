// The time of messages of which several are on their way at once: a train of them, and what one rank or all ranks
// exchange with every other one.
#pragma once

#include "libgccl/cost/cost_model.hpp"
#include "libgccl/cost/slicing.hpp"

namespace gccl {

// The lane's default window: how many steps a rank keeps in flight.
constexpr double kStepsInFlight = 8;

// Messages of more bytes that meet at a port pass it in turns, shorter ones one after the other.
constexpr double kTurnsAbove = 128 << 10;

// `messages` independent messages of `bytes` each leave one rank (or, with steps_each = 2, are exchanged for as many):
// starts are apart by the port's or the processor's time, and the message that would be one too many in flight waits
// for the oldest to end. Nanoseconds from the first start to the last end.
Cost pipelined(double messages, const Hop& hop, double bytes, double overhead_ns, double steps_each);

// The same where each message has a way of its own (`alone`) of which all together take the share that `pairs` says.
// Each of the channels has so many, and a window of its own. `stretch`: of what they share, as LinkLoads has it; empty
// where it is not known.
Cost pairs_train(double messages, const Hop& pairs, const Hop& alone, const OnDemand<LinkLoads::Stretch>& stretch,
                 double bytes, const CostModel& m, double steps_each, Rank channels = 1);

// From the end of a chunk to the end of the next where so many are on their way, each of which takes `whole` alone and
// keeps what they meet at busy for `busiest`. One alone meets nothing; of many `busiest` is all that counts; between,
// they wait for each other now and then. The exponent is fitted to the model engine's trees (64 ranks of four shipped
// clusters, 1 and 64 MiB, 1 to 16 channels of 4 to 64 chunks).
Cost meeting(Cost whole, Cost busiest, double in_flight);
// The same where several lanes' own cycles, of a rank that passes a chunk on and then takes the next, meet at what is
// busiest: the two rarely fall together (exponent 3: by the flow engine's chains, 6, 20 and 40 ranks of
// deepseek-v3-h800-2048, 3 to 192 KiB in 1, 8 and 32 channels).
Cost cycles_meet(Cost cycle, Cost busiest);
// The mean over all chunks of a call: the first of all channels begin in step, so they take as long as one chunk of all
// their bytes, `block`, where one of them takes `one`; the others follow at that interval.
Cost after_in_step(Cost interval, Cost one, Cost block, const Slicing& s);
// How many chunks a rank that takes so many steps for each has in flight, in all channels: as many as the windows hold,
// and at least one each.
double chunks_in_flight(const Slicing& s, double steps);

// A message of `bytes` from one rank to each other one: one a channel, or of so many `chunks` in all channels, of which
// `in_step` (0 to 1) says how far they are with the same rank at once, so that each waits for those before it.
Cost fan_out(const View& v, const CostModel& m, double bytes, double chunks, double in_step);
inline Cost fan_out(const View& v, const CostModel& m, double bytes) { return fan_out(v, m, bytes, v.channels, 1); }
// A message from each other rank to one; from each rank to each other one.
Cost fan_in(const View& v, const CostModel& m, double bytes);
Cost all_pairs(const View& v, const CostModel& m, double bytes, double steps_each = 2);

}  // namespace gccl
