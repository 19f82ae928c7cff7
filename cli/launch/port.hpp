// A port at which a job's ranks meet.
#pragma once

#include "libgccl/net/socket.hpp"

namespace gccl::launch {

// A loopback port that stays reserved while the socket lives: it is bound and does not listen, so nobody gets this port
// by chance, and rank 0, which asks for it with SO_REUSEADDR, may still listen there, again and again. Throws
// std::runtime_error.
Fd reserve_port(std::uint16_t* port);

}  // namespace gccl::launch
