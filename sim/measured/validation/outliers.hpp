// Measured points that are no property of a system: several times slower than those beside them.
#pragma once

#include <string>
#include <vector>

#include "sim/measured/measurement.hpp"

namespace gccl::sim {

// A point is an outlier where it took more than kOutlierFactor times as long as what is expected between its neighbours
// in size on the same curve, or at the same size between the neighbouring numbers of nodes. Expected is a straight line
// through the neighbours' logarithms; at an end of a curve the neighbour's time, scaled up with the size behind the
// last point. One that slow makes its neighbours look fast, so the worst is taken out and the rest judged anew. A
// single node is no neighbour of several: the network begins there.
constexpr double kOutlierFactor = 2;

// why[i]: of row i, "3.1 times what sizes beside it suggest"; empty where it is none.
std::vector<std::string> outliers_of(const std::vector<Measurement>& rows);

}  // namespace gccl::sim
