// How well predictions explain measured times.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace gccl::sim {

// Points of one curve within a factor of four in size err together, and count as one observation.
struct Observed {
  double us = 0;
  std::size_t bin = 0;
};

// What every explanation may adjust alike, because no parameter set is exact: a fixed cost of a call of at most 15 us,
// and one factor on all times of at most 1.25 either way.
struct Explained {
  double fixed_us = 0, factor = 1;
  double error = 0;           // the mean over the bins of |ln(measured / predicted)|
  double log_likelihood = 0;  // by Laplace's distribution of that logarithm, as wide as the error, at least 5 %
  double us(double predicted) const { return fixed_us + factor * predicted; }
};

// The best over those two. As many predictions as points; each above 0.
Explained explain(const std::vector<Observed>& points, const std::vector<double>& predicted_us);

// For what no listed cause explains: all times longer by one factor, calls by one fixed cost, of any size. One entry
// for each pair that is tried.
std::vector<Explained> explain_freely(const std::vector<Observed>& points, const std::vector<double>& predicted_us);

// The mean over exp(log_likelihoods), as a logarithm: the evidence for a cause, each of whose variants is as likely as
// the others beforehand. More variants are no advantage by themselves.
double log_mean(const std::vector<double>& log_likelihoods);
// exp of each, divided by their sum: how likely each cause is, where all were equally likely beforehand and it is one
// of them.
std::vector<double> probabilities(const std::vector<double>& log_evidence);

}  // namespace gccl::sim
