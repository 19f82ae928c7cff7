// The optimiser of `gccl fit`, by NLopt: BOBYQA (M. J. D. Powell, DAMTP 2009/NA06), which models the function by a
// quadratic and needs few evaluations; then Subplex, a Nelder-Mead search over subspaces (T. Rowan, "Functional
// Stability Analysis of Numerical Algorithms", 1990), which takes steps in its stride.
#include <nlopt.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

struct Objective {
  double (*f)(const double*, void*);
  void* data;
};

double evaluated(unsigned, const double* x, double*, void* data) {
  const auto& o = *static_cast<Objective*>(data);
  return o.f(x, o.data);
}

}  // namespace

namespace {

// From x; leaves the best there, and in `left` how many evaluations are.
double search(nlopt_algorithm algorithm, unsigned n, const double* least, const double* most, double* x,
              Objective& objective, int evaluations_max, int& left) {
  nlopt_opt search = nlopt_create(algorithm, n);
  nlopt_set_lower_bounds(search, least);
  nlopt_set_upper_bounds(search, most);
  nlopt_set_min_objective(search, evaluated, &objective);
  nlopt_set_maxeval(search, evaluations_max);
  nlopt_set_xtol_abs1(search, 2e-3);
  nlopt_set_ftol_rel(search, 1e-6);
  const std::vector<double> step(n, 0.7);  // of a logarithm: twice as much
  nlopt_set_initial_step(search, step.data());
  double best = objective.f(x, objective.data);
  std::vector<double> found(x, x + n);
  if (double value = best; nlopt_optimize(search, found.data(), &value) >= NLOPT_ROUNDOFF_LIMITED && value < best) {
    best = value;
    std::copy(found.begin(), found.end(), x);
  }
  left -= nlopt_get_numevals(search) + 1;
  nlopt_destroy(search);
  return best;
}

}  // namespace

extern "C" double gccl_minimise(unsigned n, const double* least, const double* most, double* x,
                                double (*f)(const double*, void*), void* data, int evaluations_max) {
  Objective objective{f, data};
  int left = evaluations_max;
  search(n > 1 ? NLOPT_LN_BOBYQA : NLOPT_LN_NELDERMEAD, n, least, most, x, objective, std::clamp(left / 2, 1, 300),
         left);
  // Subplex ends where its simplex has become small, which need not be at a minimum: so again from there, with large
  // steps, as long as that is worth it.
  double best = INFINITY, before;
  do {
    before = best;
    best = search(NLOPT_LN_SBPLX, n, least, most, x, objective, std::max(left, 1), left);
  } while (left > 0 && best < 0.95 * before);
  return best;
}
