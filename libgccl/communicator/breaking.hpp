// What is said when a communicator breaks: to the call that waits, and to the other ranks.
#pragma once

#include "libgccl/communicator/operation.hpp"
#include "libgccl/communicator/team.hpp"

namespace gccl {

// What a port's fault means for the operation that is first in flight, or for none (null); heard from others it is
// passed on as it is.
Status reason(const Team& team, const Operation* first, const GCCL_Fault& fault);
// Members::in_context(), as far as memory allows.
Status in_context(const Members& members, const Descriptor& what, Status why) noexcept;
Status in_context(const Members& members, const Operation& op, Status why) noexcept;
// Ends all traffic of the ports, and the other ranks get the reason. Any thread.
void abort_ports(Ports& ports, const GCCL_Fault& fault) noexcept;

}  // namespace gccl
