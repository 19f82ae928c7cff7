// How a call is cut up for a real backend (see sliced in algorithm.hpp). The same on every rank.
#pragma once

#include <compare>

#include "libgccl/schedule/types.hpp"

namespace gccl {

struct Slicing {
  Count shares = 1;
  Count lanes = 1;      // at most the largest MPI tag, or a communicator's channels; lanes beyond `shares` stay empty
  unsigned window = 8;  // steps in flight per lane, 2 .. kWindowMax; with 1 a send could wait for a send
  friend auto operator<=>(const Slicing&, const Slicing&) = default;
};

}  // namespace gccl
