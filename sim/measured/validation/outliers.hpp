// Measured points that are no property of a system: far from those beside them.
#pragma once

#include <string>
#include <vector>

#include "sim/measured/measurement.hpp"

namespace gccl::sim {

// A point is an outlier where it took more than kSlowFactor times as long as what is expected between its neighbours in
// size on the same curve, or at the same size between the neighbouring numbers of nodes; or less than a kFastFactor-th
// of it. Expected is what any latency and bandwidth give: at most a straight line through the neighbours' logarithms,
// at least the smaller neighbour's time and the larger one's scaled with the size; at an end of a curve anything from
// the neighbour's time to that scaled with the size. One point makes its neighbours look odd, so the worst is taken out
// and the rest judged anew. A single node is no neighbour of several: the network begins there. Numbers of nodes say
// nothing of a row where half of the other sizes on as many nodes or more are odd, too: that is the system.
constexpr double kSlowFactor = 2, kFastFactor = 4;

// A note without its numbers: what a file says of every point of a run differs in those.
std::string kind_of_note(const std::string& note);

// why[i]: of row i, "3.1 times what the sizes beside it suggest"; empty where it is none.
std::vector<std::string> outliers_of(const std::vector<Measurement>& rows);

}  // namespace gccl::sim
