// The transports' files as text inside the library (cmake/embed.cmake makes the definitions).
#pragma once

#include <string_view>

namespace gccl::embedded {

extern const std::string_view shared_memory_json, tcp_json, tcp_loopback_json, mpi_json;

}  // namespace gccl::embedded
