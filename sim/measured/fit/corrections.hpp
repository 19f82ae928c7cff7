// What a set's parameters leave of measured times, as corrections by size.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "libgccl/cost/correction.hpp"
#include "sim/measured/measurement.hpp"

namespace gccl::sim {

// One measured point and its prediction without corrections.
struct CorrectedPoint {
  Corrected of;  // algorithm and protocol where the measurement states them
  Count bytes = 0;
  double measured_us = 0, predicted_us = 0;
  double operation_us = 0;  // the fixed cost in the prediction: no correction takes away more
};

struct CorrectionReport {
  std::size_t curves = 0, corrected = 0;         // operations of one kind, by size; and those that got a correction
  double without_percent = 0, with_percent = 0;  // mean errors of these, each size by a correction from the others
  std::size_t sizes = 0, at_floor = 0;           // of theirs; those whose fixed cost is less than what is too much
  std::size_t more_nodes = 0;                    // of them, that hold for more nodes, too
  double next_without_percent = 0, next_with_percent = 0;  // the next number of nodes by fewer nodes' corrections
};

// A correction for each curve of at least kCorrectedSizes sizes on which, leaving each size out in turn, what lies
// between its neighbours' corrections errs by less than kCorrectedMargin times as much as no correction. More than
// once, because such gaps are twice as wide as those that the correction leaves; and less than what it would be by
// noise alone, sqrt(3/2), about 1.22. A correction takes away no more than the fixed cost, and is judged so.
//
// The one for the most nodes holds for more nodes, too, where several numbers of nodes above one were measured, and by
// the correction for one of them the next is predicted better than without.
constexpr std::size_t kCorrectedSizes = 4;
constexpr double kCorrectedMargin = 1.2;
Corrections corrections_of(const std::vector<CorrectedPoint>& points, CorrectionReport& report);

}  // namespace gccl::sim
