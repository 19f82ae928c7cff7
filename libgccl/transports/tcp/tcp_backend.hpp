// TCP between ranks, on one machine or on several.
#pragma once

#include <cstdint>

#include "gccl/backend.h"
#include "libgccl/fault/arrivals.hpp"
#include "libgccl/transports/link_counts.hpp"

namespace gccl {

// Environment variables: GCCL_TCP_STREAMS (1 .. 16 connections per peer and channel), GCCL_TCP_CONGESTION (unset: cubic
// within one machine, the system's between machines; empty: the system's), GCCL_TCP_ZEROCOPY (0, 1, auto),
// GCCL_TCP_PEER_TIMEOUT_MS, GCCL_LINK_LOST_MS (0: a connection that breaks is a lost peer; the same on all ranks).
// Reaches every other rank whose port can be connected to; never itself.
const GCCL_Backend* tcp_backend();
// Of an instance without ports (Transport::serves_alone).
void tcp_serves_alone(void* instance);
// By one of its ports (Transport::moved_bytes).
std::uint64_t tcp_moved_bytes(const void* port);
// Of one of its ports (Transport::link_counts).
LinkCounts tcp_link_counts(const void* port);
// Likewise (Transport::take_arrivals).
void tcp_take_arrivals(void* port, fault::Arrivals* by_peer);
// Likewise (Transport::take_leave).
void tcp_take_leave(void* port);
// Likewise (Transport::close_alone).
void tcp_close_alone(void* port);

}  // namespace gccl
