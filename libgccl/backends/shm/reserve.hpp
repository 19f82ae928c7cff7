// Memory of a file in shared memory, reserved before anybody touches it: touching a page that the machine has no room
// for would end the process by SIGBUS.
#pragma once

#include <sys/types.h>

namespace gccl::shm {

// Makes sure that these bytes of the file can be written to; 0, or the error's number. Zeroed where they are new.
//
// tmpfs of Linux before 6.9 gives up with EINTR, and takes back what it had reserved, whenever any signal is pending:
// a timer of a profiler, SIGCHLD. Hence in pieces, and in shorter ones after each EINTR, so that it ends under a timer
// of any rate.
int reserve(int file, off_t at, off_t bytes);

// Gives the memory back; the file stays as long as it is, and reads as zeros there.
void release(int file, off_t at, off_t bytes);

}  // namespace gccl::shm
