// What stands behind the C interface's handles, and the communicators that this process owns.
#pragma once

#include <memory>

#include "libgccl/api/last_error.hpp"
#include "libgccl/communicator/communicator_core.hpp"
#include "libgccl/communicator/completions.hpp"

namespace gccl {

inline GCCL_Comm handle_of(CommunicatorCore* c) { return reinterpret_cast<GCCL_Comm>(c); }
inline GCCL_Request handle_of(Operation* op) { return reinterpret_cast<GCCL_Request>(op); }
inline Operation* operation_of(GCCL_Request r) { return reinterpret_cast<Operation*>(r); }
// Null and GCCL_Last_error for a handle that is none.
inline CommunicatorCore* communicator_of(GCCL_Comm handle) {
  auto* const c = reinterpret_cast<CommunicatorCore*>(handle);
  if (c && c->magic == CommunicatorCore::kMagic) return c;
  set_last_error(c ? "comm is not a communicator, or was freed"
                   : "comm is GCCL_COMM_NULL: expected a communicator, such as GCCL_Init's");
  return nullptr;
}

// Calls a function of GCCL_On_failure, outside of any group.
void call_on_failure(GCCL_Failure_function function, GCCL_Comm comm, const GCCL_Failure* failure, void* context);
bool inside_failure_function();  // this thread

// What a call on the communicator returns. Where ranks have failed, the program is notified first.
GCCL_Result failed_on(CommunicatorCore& c, const Status& s);

// Takes the communicator in and gives its handle out. Where the progress thread cannot be started, the communicator
// ends on all ranks.
Status keep(std::unique_ptr<CommunicatorCore> communicator, GCCL_Comm* out);
// Gives it back, or null where it is not this process's.
std::unique_ptr<CommunicatorCore> release(CommunicatorCore* communicator);
// Ends what was given back, and the progress thread with the last communicator that asked for one. Null is nothing.
void destroy(std::unique_ptr<CommunicatorCore> communicator);
// All of them, once no other thread is inside a function of GCCL_On_complete, and none begins one any more; or none
// where a function of GCCL_On_failure is running, or a thread waits in a call.
Status release_all(std::vector<std::unique_ptr<CommunicatorCore>>* all, completions::OnlyHere* functions);

// Ends the communicator, where it is one, on all ranks.
void break_after(GCCL_Comm comm, Status why) noexcept;

// For calls that wait for the other ranks right away. Not ok where this process is another rank of the communicator,
// too, and the thread could make that rank's call only afterwards: in a group, or as the only thread.
Status others_can_call(CommunicatorCore& c, const char* function);

// Waits for operations in turns, as one thread may be several ranks that wait for each other. The first error.
Status wait_in_turns(std::vector<Operation*> operations);

// The calls of this thread between GCCL_Group_start and GCCL_Group_end; null outside.
struct GroupCalls;
GroupCalls* current_group();
// Begins the work, for GCCL_Group_end to wait for.
GCCL_Result run_in_group(GroupCalls& group, CommunicatorCore& c, Work&& work);
// Nanoseconds for all calls of the group that were asked about, this one on that communicator included; outside a group
// those of this call.
double estimated_in_group(const CommunicatorCore& c, double ns);
// A call has failed with this, and with this thread's last error: inside a group it is GCCL_Group_end's to return.
[[gnu::cold]] void note_in_group(GCCL_Result result) noexcept;

}  // namespace gccl
