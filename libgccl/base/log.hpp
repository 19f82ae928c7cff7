// What the library says on standard error, as far as GCCL_LOG asks for it.
#pragma once

#include <string>

namespace gccl {

enum LogLevel : int { kLogErrors = 0, kLogWarnings = 1, kLogInfo = 2 };

// GCCL_LOG, else GCCL_DEBUG with NCCL's words: INFO and TRACE are kLogInfo; kLogWarnings by default.
int log_level();
// One line, "gccl warning: TEXT", where the level is asked for. Any thread.
void log_line(int level, const char* text);
inline void log_line(LogLevel level, const std::string& text) { log_line(int(level), text.c_str()); }

}  // namespace gccl
