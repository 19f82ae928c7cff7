// Memory of a file in shared memory, reserved before anybody touches it: touching a page that the machine has no room
// for would end the process by SIGBUS. So would SIGXFSZ where the file gets longer than the process's limit for files
// (ulimit -f): that is EFBIG here.
#pragma once

#include <sys/types.h>

#include <string>

namespace gccl::shm {

// Makes sure that these bytes of the file can be written to; 0, or the error's number. Zeroed where they are new.
//
// tmpfs of Linux before 6.9 gives up with EINTR, and takes back what it had reserved, whenever any signal is pending:
// a timer of a profiler, SIGCHLD. Hence in pieces, and in shorter ones after each EINTR, so that it ends under a timer
// of any rate.
int reserve(int file, off_t at, off_t bytes);
// What to say after EFBIG's own words.
inline constexpr char kLimitText[] = "; the process may make no longer files: raise the limit (ulimit -f)";

// What to say of a file that could not be mapped, or opened for that. ENOMEM never means that the file system is full.
std::string text_of_mapping(int error);

// ftruncate, which makes the file as long as this; 0, or the error's number.
int resize(int file, off_t bytes);

// Gives the memory back; the file stays as long as it is, and reads as zeros there.
void release(int file, off_t at, off_t bytes);

}  // namespace gccl::shm
