// Where the ranks of a job meet when nobody has said so but a launcher's variables distinguish the job from others.
#pragma once

#include <string>

#include "libgccl/bootstrap/identity.hpp"

namespace gccl {

// A prefix for a file store (file_store.hpp) that all processes of this job on this machine agree on, in a folder that
// only this user can enter: gccl-UID in XDG_RUNTIME_DIR, /dev/shm or /tmp, the first that is there. Jobs are
// distinguished by the launcher's own name for them, or else by the process that launched them, which may be process
// 1. Requires launcher != null.
Status job_prefix(const Environment& environment, const Launcher& launcher, std::string* out);

}  // namespace gccl
