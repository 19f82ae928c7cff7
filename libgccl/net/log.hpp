// What is said on standard error, as far as GCCL_LOG allows.
#pragma once

namespace gccl {

// Level 0: an error; 1, which GCCL_LOG is by default: a warning; 2: information.
bool logs(int level);
// "gccl warning: TEXT".
void log_line(int level, const char* text);

}  // namespace gccl
