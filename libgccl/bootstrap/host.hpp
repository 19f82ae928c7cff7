// Which machine is this?
#pragma once

#include <string>

namespace gccl {

// The same text for all processes that can share memory, and another one for those that cannot: the kernel's boot id
// (the host's name where there is none), the file system behind /dev/shm, and the process-id namespace, which differ
// between containers of one machine.
std::string host_identity();

}  // namespace gccl
