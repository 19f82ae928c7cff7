// From the simulated times of a scenario's faults to moments of real ranks.
#pragma once

#include <span>
#include <vector>

#include "cli/real/program.hpp"
#include "sim/engine/workload.hpp"

namespace gccl::real {

// The stated times of a scenario (computing, faults, detection, healing) take this many times as long among real ranks,
// so that a detection time is 2 s at least: processes that share a few cores answer later than simulated ones.
double stretch_of(const sim::FaultPlan& plan);

// To whom fault number `fault` happens, of the ranks on `cards`: not to those that start later than it strikes in the
// simulation. Here all are there at time 0.
std::vector<Rank> hit_as_simulated(std::size_t fault, const sim::FaultPlan& plan, std::span<const Card> cards,
                                   const Cluster& cluster, const sim::Outcome& simulated);

// Besides those that hold from before the start (begins_before_start), all that strike in the simulation.
//   at_us            the operation in which the simulated fault strikes, by `simulated`, what the same scenario
//                    comes to in virtual time: in computing as long after its begin as there, stretched; else the
//                    same part of the operation. Where the rank is stopped then, as long after its stop has begun
//   operations       when the rank has completed so many
//   steps, bytes     the operation in which the rank's schedule comes to so many, and the part of its steps or bytes
//   agreements, epochs  as stated
std::vector<Strike> strikes_of(const sim::Workload& workload, const sim::Outcome& simulated, double stretch);

}  // namespace gccl::real
