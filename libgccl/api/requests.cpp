// Waiting for operations, and groups of them.
#include "libgccl/api/handles.hpp"

namespace gccl {

struct Group_calls {
  int depth = 0;
  std::vector<Operation*> operations;
  Status first;
};

namespace {

thread_local Group_calls group;

Status wrong(const std::string& text) { return Status::error(text, GCCL_ERR_INVALID_ARGUMENT); }

}  // namespace

Group_calls* current_group() { return group.depth > 0 ? &group : nullptr; }

GCCL_Result run_in_group(Group_calls& g, Communicator& c, Work&& work) {
  Operation* op = nullptr;
  const Status s = c.start(std::move(work), &op);
  if (s.ok()) {
    g.operations.push_back(op);
  } else if (g.first.ok()) {
    g.first = s;
  }
  return failed(s);
}

}  // namespace gccl

using namespace gccl;

extern "C" {

GCCL_Result GCCL_Wait_for(GCCL_Request* request, int64_t timeout_ms) {
  if (!request) return failed(wrong("request is null: expected the address of a request"));
  if (*request == GCCL_REQUEST_NULL) return GCCL_SUCCESS;
  Operation* const op = operation_of(*request);
  Status s;
  if (!op->communicator->wait(op, timeout_ms, &s)) return GCCL_IN_PROGRESS;
  *request = GCCL_REQUEST_NULL;
  return failed(s);
}

GCCL_Result GCCL_Wait(GCCL_Request* request) { return GCCL_Wait_for(request, -1); }

GCCL_Result GCCL_Waitall(int n, GCCL_Request* requests) {
  if (n < 0 || (n > 0 && !requests))
    return failed(wrong(n < 0 ? "n is " + std::to_string(n) + ": expected 0 or more" : "requests is null"));
  Status first;
  for (int i = 0; i < n; ++i) {
    if (requests[i] == GCCL_REQUEST_NULL) continue;
    Operation* const op = operation_of(requests[i]);
    Status s;
    op->communicator->wait(op, -1, &s);  // the others move on meanwhile: waiting makes progress for all
    requests[i] = GCCL_REQUEST_NULL;
    if (first.ok()) first = s;
  }
  return failed(first);
}

GCCL_Result GCCL_Test(GCCL_Request* request, int* done) {
  if (!request || !done) return failed(wrong(std::string(request ? "done" : "request") + " is null"));
  *done = 1;
  if (*request == GCCL_REQUEST_NULL) return GCCL_SUCCESS;
  Operation* const op = operation_of(*request);
  Status s;
  if (!op->communicator->test(op, &s)) {
    *done = 0;
    return GCCL_SUCCESS;
  }
  *request = GCCL_REQUEST_NULL;
  return failed(s);
}

GCCL_Result GCCL_On_complete(GCCL_Request request, GCCL_Completion_function function, void* context) {
  if (request == GCCL_REQUEST_NULL || !function)
    return failed(wrong(function ? "request is GCCL_REQUEST_NULL: nothing will complete" : "function is null"));
  Operation* const op = operation_of(request);
  op->communicator->on_complete(op, function, context);
  return GCCL_SUCCESS;
}

GCCL_Result GCCL_Request_free(GCCL_Request* request) {
  if (!request) return failed(wrong("request is null: expected the address of a request"));
  if (*request == GCCL_REQUEST_NULL) return GCCL_SUCCESS;
  Operation* const op = operation_of(*request);
  op->communicator->give_up(op);
  *request = GCCL_REQUEST_NULL;
  return GCCL_SUCCESS;
}

GCCL_Result GCCL_Group_start(void) {
  ++group.depth;
  return GCCL_SUCCESS;
}

GCCL_Result GCCL_Group_end(void) {
  if (group.depth == 0) return failed(Status::error("GCCL_Group_end without GCCL_Group_start", GCCL_ERR_INVALID_USAGE));
  if (--group.depth > 0) return GCCL_SUCCESS;
  std::vector<Operation*> operations = std::exchange(group.operations, {});
  Status first = std::exchange(group.first, {});
  // In turns: one thread may hold both ends of a message.
  Patience patience(true);
  while (!operations.empty()) {
    bool moved = false;
    std::erase_if(operations, [&](Operation* op) {
      Status s;
      if (!op->communicator->test(op, &s)) return false;
      moved = true;
      if (first.ok()) first = s;
      return true;
    });
    if (moved) {
      patience.reset();
    } else {
      patience.pause();
    }
  }
  return failed(first);
}

}  // extern "C"
