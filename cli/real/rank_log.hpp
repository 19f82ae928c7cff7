// What a rank of `gccl run --engine real` writes to standard error: kept in memory, and shown where the rank does not
// end as it should.
#pragma once

#include <string>

#include "libgccl/net/socket.hpp"

namespace gccl::real {

// Its standard error. None where there is no memory, or no descriptor.
Fd rank_log();

// The end of it, line by line, each with `before` in front: so many bytes of the log at most. What is left out is
// counted. Empty where nothing was written.
std::string last_words(const Fd& log, const std::string& before, std::size_t bytes_max);

}  // namespace gccl::real
