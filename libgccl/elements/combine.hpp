// The loops that carry out reductions on real elements: the library gccl_combine, which no simulation needs.
#pragma once

#include "libgccl/elements/reduction.hpp"

namespace gccl {

// to[i] = from[i] (+) message[i] for `count` elements; avg adds. `to` may be `from`; else the three are apart. All are
// aligned to the element.
// - integers wrap around; f16 and bf16 are computed in f32 and rounded to nearest even once per combination
// - max and min give NaN where either side is one, and order -0 below +0: so every operation is commutative bit for bit
//   (NaN payloads apart) and ranks that combine in opposite order agree
void combine(Dtype, Reduction, void* to, const void* from, const void* message, Count count);

// at[i] = at[i] / by, avg's end. Integers truncate toward zero, as NCCL's do; f16 and bf16 divide in f32. Requires by >
// 0.
void divide(Dtype, void* at, Count count, Rank by);

}  // namespace gccl
