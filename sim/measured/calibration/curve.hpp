// Repeated measurements of one thing at several sizes, and the parameters that describe them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/measured/calibration/line.hpp"

namespace gccl::sim {

// A value, and where it is with a probability of 95 %.
struct Estimate {
  double value = 0, least = 0, most = 0;
};
// The median, and how well it is known: by the binomial distribution of how many samples are below it, whatever the
// samples' own is (David and Nagaraja, "Order Statistics", 7.1). Requires a sample.
Estimate median_of(std::vector<double> samples);

// Sizes are measured in turns, so that what disturbs the machine for a while disturbs all of them: sample r of each is
// of round r.
struct Curve {
  std::vector<double> amounts;          // bytes, or peers; rising
  std::vector<std::vector<double>> ns;  // [amount][round], as many rounds of each
  bool differences = false;             // of two times, so that noise makes some too short
  bool empty() const { return ns.empty() || ns[0].empty(); }
};

struct CurveFit {
  struct Row {
    double amount = 0;
    Estimate median_ns{};
    double pieces_ns = 0, line_ns = 0;
    double outliers = 0;  // the share of samples of more than twice the median
  };
  std::vector<Row> rows;
  Pieces pieces;
  Line line;                                // for all sizes: what the planner goes by
  Estimate fixed_ns, ns_each;               // of the line, when rounds are drawn anew (bootstrap)
  double line_error = 0, pieces_error = 0;  // in the mean, of the medians
};

// The median of the samples that are no scheduler's turn. Requires a sample.
double time_of(const std::vector<double>& samples);

// Medians of the samples that are no scheduler's turn, and the lines through them. The same curve gives the same fit.
// Requires that it is not empty.
CurveFit fit_curve(const Curve& curve);

}  // namespace gccl::sim
