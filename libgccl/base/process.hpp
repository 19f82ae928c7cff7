// What fork() and exit() must not tear apart.
//
// A child that fork() makes has its parent's memory and descriptors, and one thread. It must not keep the parent's
// connections open: a parent that is killed would then never be missed. And it must not use the parent's communicators:
// two processes would write into the same pipes and streams.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace gccl {

// fork() waits for its holder, and so does a thread that opens a descriptor. For steps that a child must not see half
// done: while a descriptor comes into being, and while another library's locks are held. A thread may hold several.
class ProcessLock {
 public:
  ProcessLock();
  ~ProcessLock();
  ProcessLock(const ProcessLock&) = delete;
  ProcessLock& operator=(const ProcessLock&) = delete;
};

// Children that fork() makes close the descriptor at once. Requires a ProcessLock held since before it was opened.
void keep_from_children(int fd);
// Before such a descriptor is given away. Any other descriptor is passed over.
void forget_descriptor(int fd);
// Closes any descriptor; one that children do not keep so that none is forked between the two steps, and keeps it.
void close_descriptor(int fd);

// While one lives, this process uses GCCL, and a child of it may not.
class InUse {
 public:
  InUse();
  ~InUse();
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
};

// Starts a thread of GCCL's own, which makes no calls of the program's. Throws where there is no thread to be had.
[[nodiscard]] std::thread own_thread(std::function<void()> body);
// This process has one thread that is not GCCL's own. Never wrongly true; false where the system does not say, and for
// a moment after one of GCCL's own has ended, which Linux lists for longer than it takes to join it.
bool one_thread();

// Ends a function that the C library calls, as at fork() or exit(). Else the compiler may make a jump of the last call
// in it, such as a mutex's unlock, and its caller seems to be the C library: to the thread sanitizer, for one, which is
// to pass over what GCCL calls (docs/api.md).
inline void end_without_jump() { asm volatile(""); }

// This process is a child of one that used GCCL when it forked. Cheap enough for every call.
[[gnu::visibility("hidden")]] extern std::atomic<bool> forked_child;
inline bool in_forked_child() { return forked_child.load(std::memory_order_relaxed); }
// What such a child gets to read.
inline constexpr char kForkedChildText[] =
    "this process was forked from one that uses GCCL, and shares its memory and connections: only the parent may use "
    "them. Fork before GCCL_Init, or let the child call exec";

}  // namespace gccl
