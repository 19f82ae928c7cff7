#include "libgccl/net/log.hpp"

#include <cstdio>
#include <cstdlib>

namespace gccl {

bool logs(int level) {
  const char* const setting = std::getenv("GCCL_LOG");
  return level <= (setting ? std::atoi(setting) : 1);
}

void log_line(int level, const char* text) {
  static constexpr const char* kLevels[] = {"error", "warning", "info"};
  if (!logs(level)) return;
  std::fprintf(stderr, "gccl %s: %s\n", kLevels[level < 0 ? 0 : level > 2 ? 2 : level], text);
}

}  // namespace gccl
