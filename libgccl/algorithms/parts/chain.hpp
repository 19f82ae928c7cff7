// The chain of all ranks in a channel's order, from the root on.
#pragma once

#include "libgccl/schedule/call.hpp"
#include "libgccl/schedule/channel.hpp"

namespace gccl {

struct Chain {
  Rank size, rank;    // `rank` is this rank's distance from the root
  Rank next, before;  // the ranks beside it; of no meaning at the ends
  Chain(const View& v, Rank root) : Chain(ChannelOrder(v), root) {}
  bool head() const { return rank == 0; }
  bool tail() const { return rank + 1 == size; }

 private:
  Chain(const ChannelOrder& order, Rank root)
      : size(order.size),
        rank(order.behind(order.position(root))),
        next(order[order.ahead(1)]),
        before(order[order.behind(1)]) {}
};

}  // namespace gccl
