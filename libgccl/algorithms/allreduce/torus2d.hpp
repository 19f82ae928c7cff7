// 2-D torus all-reduce: ring reduce-scatter along the rows, ring all-reduce along the columns, ring all-gather along
// the rows of the rank grid (View::columns). Mikami et al., "Massively distributed SGD: ImageNet/ResNet-50 training in
// a flash", arXiv:1811.05233 (2018), section 3. With rows of x and columns of y ranks 2(x-1) + 2(y-1) steps, 2
// (xy-1)/(xy) of the vector sent per rank.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule torus2d_all_reduce(Call c, View v, Share mine);
// The ranks must fill the grid.
bool torus2d_all_reduce_fits(const Call& c, const View& v);
Cost torus2d_all_reduce_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
