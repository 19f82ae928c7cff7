#include "libgccl/base/log.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gccl {

int log_level() {
  const char* const text = std::getenv("GCCL_LOG");
  // Anything else is an error of GCCL_Init.
  return text && std::strlen(text) == 1 && *text >= '0' && *text <= '2' ? *text - '0' : int(kLogWarnings);
}

void log_line(int level, const char* text) {
  static constexpr const char* kNames[] = {"error", "warning", "info"};
  if (level > log_level()) return;
  std::fprintf(stderr, "gccl %s: %s\n", kNames[std::clamp(level, 0, 2)], text);
}

}  // namespace gccl
