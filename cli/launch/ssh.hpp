// A rank on another machine: ssh, and the shell script at its far end.
#pragma once

#include <string>

#include "cli/launch/job.hpp"

namespace gccl::launch {

// A process that runs `rank` on `host`, in this machine's working directory by name. Its environment travels over ssh's
// standard input, where nobody sees it, as do signals; the far end kills the program when that closes. ssh is called as
// GCCL_LAUNCH_SSH says (words with blanks between them; by default "ssh"), with "-o BatchMode=yes HOST COMMAND" behind.
// Requires values without newlines.
Process over_ssh(const std::string& host, const Process& rank);

}  // namespace gccl::launch
