// What a rank of `gccl run --engine real` writes to standard error: kept in memory, and shown where the rank does not
// end as it should.
#pragma once

#include <string>

#include "libgccl/net/socket.hpp"

namespace gccl::real {

// Its standard error. None where there is no memory, or no descriptor.
Fd rank_log();

// A log keeps the last so many bytes, and up to as many more until this is called. What was there before reads as
// zeros, and takes no memory.
inline constexpr std::size_t kLogKept = std::size_t(256) << 10;
class LogLimit {
 public:
  void keep_the_end(const Fd& log);

 private:
  std::size_t dropped_ = 0;
};

// The end of it, line by line, each with `before` in front: so many bytes of the log at most. What is left out is
// counted. Empty where nothing was written.
std::string last_words(const Fd& log, const std::string& before, std::size_t bytes_max);

}  // namespace gccl::real
