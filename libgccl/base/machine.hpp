// What distinguishes machines, and containers of one machine.
#pragma once

#include <string>

namespace gccl {

// The kernel's, another one each time the machine starts; empty where the system does not say.
std::string boot_id();

// The same text for the same file, by whatever name; empty where there is none.
std::string file_identity(const char* path);

// For file_identity(): process numbers mean the same within one.
inline constexpr const char* kProcessNamespace = "/proc/self/ns/pid";

}  // namespace gccl
