// A cost model in which the costs of one kind are a multiple of what they were.
#pragma once

#include "libgccl/cost/cost_model.hpp"

namespace gccl {

// 1: as it is; 0.5: takes half of the time.
struct CostScale {
  double start_up = 1;   // of an operation: Protocol::operation_ns
  double latency = 1;    // of messages: links, what the protocol adds, and handling at both ends
  double reduction = 1;  // combining, and copying
  double channel = 1;    // a byte on one channel: Protocol::channel_GBps
  double inside = 1;     // a byte between ranks of a node, and
  double between = 1;    // between nodes: both only where routes are not known (no LinkLoads)
};

CostModel scaled(CostModel model, const CostScale& by);

}  // namespace gccl
