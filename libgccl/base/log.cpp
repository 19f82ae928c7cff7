#include "libgccl/base/log.hpp"

#include <strings.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "libgccl/base/environment.hpp"

namespace gccl {

int log_level() {
  const Environment environment = process_environment();
  // Other values are errors of GCCL_Init.
  const char* const text = environment("GCCL_LOG");
  if (text && std::strlen(text) == 1 && *text >= '0' && *text <= '2') return *text - '0';
  const char* const as_nccl = environment("GCCL_DEBUG");
  const bool info = as_nccl && (::strcasecmp(as_nccl, "INFO") == 0 || ::strcasecmp(as_nccl, "TRACE") == 0);
  return info ? int(kLogInfo) : int(kLogWarnings);
}

void log_line(int level, const char* text) {
  static constexpr const char* kNames[] = {"error", "warning", "info"};
  if (level > log_level()) return;
  std::fprintf(stderr, "gccl %s: %s\n", kNames[std::clamp(level, 0, 2)], text);
}

}  // namespace gccl
