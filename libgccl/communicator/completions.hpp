// The functions of GCCL_On_complete. An operation that has any is complete for its caller once they have returned, so
// that their context may be freed after GCCL_Wait, whichever thread runs them.
//
// They are kept apart from communicators: a request may outlive its communicator, and functions run without any lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "libgccl/communicator/operation.hpp"

namespace gccl::completions {

// Adds a function to an operation, ended or not. For the thread that has the request.
void add(Operation* op, const Completion& function);
// The communicator has done with an operation that has functions: they are due.
void ended(Operation* op) noexcept;

// Operations whose functions no thread has begun to run.
extern std::atomic<std::uint32_t> waiting;
// Some function is due. Every blocking call asks.
inline bool due() { return waiting.load(std::memory_order_relaxed) > 0; }
// Functions that have been given and have not returned: they may start calls.
extern std::atomic<std::uint32_t> unreturned;
inline bool to_come() { return unreturned.load(std::memory_order_acquire) > 0; }
// Runs what is due, of all communicators, in this thread, but not what the functions make due meanwhile, of which there
// may be no end; true when there was something. Without locks.
bool run_due();
inline bool run() { return due() && run_due(); }

// This thread is inside a function; or inside one of this operation.
bool inside();
bool inside(const Operation* op);

// While a thread has it no other one begins a function: it ends communicators that functions may use. What a function
// in another thread waits for meanwhile, this one has to run.
class OnlyHere {
 public:
  OnlyHere() = default;
  ~OnlyHere();
  OnlyHere(const OnlyHere&) = delete;
  // For a thread that is inside no function; may be asked again. False where another one has it.
  bool take();
  // Once it is taken: no other thread is inside a function any more.
  bool alone() const;

 private:
  bool taken_ = false;
};

// For an ended operation: returns once its functions have returned, or this thread is inside one; false when the clock
// (now_ns) reaches `until_ns` before.
bool settle(Operation* op, std::int64_t until_ns = INT64_MAX);
// Returns once the functions of all ended operations of the communicator have returned, those apart that this thread is
// inside.
void settle(const CommunicatorCore* c);
// The caller lets go of an ended operation. Where functions of it are to come, or run, who runs them deletes it.
void release(Operation* op);
// The caller gives up an ended operation: its functions have returned then, but where this thread is inside functions
// itself and cannot wait for another one that is inside them, or is as deep in such calls as may be.
void let_go(Operation* op);

}  // namespace gccl::completions
