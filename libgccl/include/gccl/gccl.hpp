// GCCL's C++ interface (C++20). Header-only over gccl.h: link libgccl alone. One name per header:
//   communicator.hpp         Communicator: start, groups of ranks, every operation among them
//   request.hpp              Request: a pending operation; grouped()
//   element.hpp              what can be sent and reduced: dtype_of, ReduceOp, CustomOp, float16, bfloat16
//   memory.hpp               Allocator: memory that ranks of one machine reach in each other
//   error.hpp, config.hpp    Error: every failure; Config: how to start
//   devices.hpp              DeviceManager: what cards this machine has
//   topology.hpp             TopologyBuilder: machines and clusters, and the groups of ranks on them
//   process_groups.hpp       ProcessGroups: tensor, context, pipeline and data parallel groups
//   communication_group.hpp  CommunicationGroup: one process that is several ranks
//   stream_pool.hpp          StreamPool: queues of functions with priorities
#pragma once

#include "gccl/cpp20.hpp"

#include "gccl/communication_group.hpp"
#include "gccl/communicator.hpp"
#include "gccl/devices.hpp"
#include "gccl/memory.hpp"
#include "gccl/process_groups.hpp"
#include "gccl/stream_pool.hpp"
#include "gccl/topology.hpp"
