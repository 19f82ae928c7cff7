// The optimiser of `gccl fit`: NLopt's Subplex, a Nelder-Mead search over subspaces (T. Rowan, "Functional Stability
// Analysis of Numerical Algorithms", 1990), which takes steps and noise in its stride.
#include <nlopt.h>

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

extern "C" double gccl_minimise(unsigned n, const double* least, const double* most, double* x,
                                double (*f)(const double*, void*), void* data, int evaluations_max) {
  Objective objective{f, data};
  nlopt_opt search = nlopt_create(NLOPT_LN_SBPLX, n);
  nlopt_set_lower_bounds(search, least);
  nlopt_set_upper_bounds(search, most);
  nlopt_set_min_objective(search, evaluated, &objective);
  nlopt_set_maxeval(search, evaluations_max);
  nlopt_set_xtol_rel(search, 1e-4);
  nlopt_set_ftol_rel(search, 1e-5);
  const std::vector<double> step(n, 0.4);  // of a logarithm: half as much again
  nlopt_set_initial_step(search, step.data());
  double best = 0;
  nlopt_optimize(search, x, &best);
  nlopt_destroy(search);
  return best;
}
