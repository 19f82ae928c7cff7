// Waiting for operations, and groups of them.
#include <fmt/core.h>

#include <cassert>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "libgccl/api/guard.hpp"
#include "libgccl/communicator/completions.hpp"

namespace gccl {

struct GroupCalls {
  int depth = 0;
  std::vector<Operation*> operations;
  std::vector<std::size_t> inner;  // of the groups inside the outermost one: how many operations there were before
  Status first;
  std::map<std::pair<std::uint64_t, Rank>, double> estimated_ns;  // by communicator and rank of it

  GroupCalls() = default;
  GroupCalls(GroupCalls&&) = default;
  GroupCalls& operator=(GroupCalls&&) = default;
  // What is left when the thread ends inside a group, where nobody will wait for it.
  ~GroupCalls() {
    if (in_forked_child()) return;  // they are the parent's
    for (Operation* op : operations) CommunicatorCore::give_up(op);
  }
};

namespace {

thread_local GroupCalls group;
thread_local int failure_functions = 0;  // that this thread is inside of

// While a function of the program's runs, whose calls are none of the group that this thread may be in.
class Aside {
 public:
  Aside() {
    if (group.depth > 0) outer_ = std::exchange(group, GroupCalls());
  }
  Aside(const Aside&) = delete;
  ~Aside() {
    if (!outer_ && group.depth == 0) return;
    // What was begun and not ended is given up.
    const GroupCalls left = std::exchange(group, outer_ ? std::move(*outer_) : GroupCalls());
  }

 private:
  std::optional<GroupCalls> outer_;
};

void call_on_complete(GCCL_Completion_function function, GCCL_Result result, void* context) {
  const Aside aside;
  function(result, context);
}

// What has ended needs no abort, and its communicator may be gone.
void abort_pending(const Operation* op, int code) {
  if (const Inside c(*op); c) c->abort(code);
}

}  // namespace

bool inside_failure_function() { return failure_functions > 0; }

void call_on_failure(GCCL_Failure_function function, GCCL_Comm comm, const GCCL_Failure* failure, void* context) {
  const Aside aside;
  struct Within {
    Within() { ++failure_functions; }
    ~Within() { --failure_functions; }
  } const within;
  function(comm, failure, context);
}

GroupCalls* current_group() { return group.depth > 0 ? &group : nullptr; }

GCCL_Result run_in_group(GroupCalls& g, CommunicatorCore& c, Work&& work) {
  assert(g.depth > 0);
  // First, as either may throw: what has started has a place, and no place is without an operation.
  if (g.operations.size() == g.operations.capacity()) g.operations.reserve(2 * g.operations.size() + 4);
  Operation* op = nullptr;
  const Status s = c.start(std::move(work), &op);
  if (op) g.operations.push_back(op);
  return failed_on(c, s);
}

double estimated_in_group(const CommunicatorCore& c, double ns) {
  if (group.depth == 0) return ns;
  group.estimated_ns[{c.members().id, c.rank()}] += ns;
  double longest = 0;
  for (const auto& [rank, sum] : group.estimated_ns)
    if (sum > longest || std::isnan(sum)) longest = sum;
  return longest;
}

void note_in_group(GCCL_Result result) noexcept {
  if (group.depth == 0 || !group.first.ok()) return;
  try {
    group.first = Status::error(GCCL_Last_error(), result);
  } catch (...) {
    group.first = Status::error("out of memory", result);  // short enough to need none
  }
}

Status wait_in_turns(std::vector<Operation*> operations) {
  Status first;
  FirstThrown thrown;  // by functions of GCCL_On_failure: what is left goes on, so it is waited for
  Backoff backoff(true);
  bool blocks = false;  // as far as the communicators know
  // Others' operations may always have something to do.
  constexpr unsigned kPolls = 4096;
  unsigned polls = 0;
  while (!operations.empty()) {
    Progress made = Progress::nothing;
    const std::size_t ended = std::erase_if(operations, [&](Operation* op) {
      assert(op);
      Status s;
      const CommunicatorCore* const of = op->communicator;
      if (!CommunicatorCore::test(op, &s, &made)) return false;
      if (!s.ok()) thrown.by([&] { notice_failure_of(of); });
      if (first.ok()) first = std::move(s);
      return true;
    });
    const bool may_look = backoff.after(ended > 0 ? Progress::something : made);
    if ((may_look || ++polls % kPolls == 0) && !std::exchange(blocks, true)) {
      for (Operation* op : operations) CommunicatorCore::thread_blocks(op);
    }
  }
  thrown.rethrow();
  return first;
}

}  // namespace gccl

using namespace gccl;

extern "C" {

GCCL_Result GCCL_Wait_for(GCCL_Request* request, int64_t timeout_ms) {
  return guarded([&] {
    if (!request) return failed(invalid("request is null: expected the address of a request"));
    if (*request == GCCL_REQUEST_NULL) return GCCL_SUCCESS;
    if (timeout_ms < 0 && timeout_ms != GCCL_TIMEOUT_NONE) timeout_ms = 0;  // what is left of a time that is up
    Status s;
    const CommunicatorCore* const of = operation_of(*request)->communicator;
    if (!CommunicatorCore::wait(operation_of(*request), timeout_ms, &s)) return GCCL_IN_PROGRESS;
    *request = GCCL_REQUEST_NULL;
    if (!s.ok()) notice_failure_of(of);
    return failed(s);
  });
}

GCCL_Result GCCL_Wait(GCCL_Request* request) { return GCCL_Wait_for(request, GCCL_TIMEOUT_NONE); }

GCCL_Result GCCL_Waitall(int n, GCCL_Request* requests) {
  return guarded([&] {
    if (n < 0 || (n > 0 && !requests))
      return failed(invalid(n < 0 ? fmt::format("n is {}: expected 0 or more", n) : "requests is null"));
    Status first;
    FirstThrown thrown;  // by functions of GCCL_On_failure: the requests behind are waited for all the same
    for (int i = 0; i < n; ++i) {
      if (requests[i] == GCCL_REQUEST_NULL) continue;
      Status s;
      const CommunicatorCore* const of = operation_of(requests[i])->communicator;
      CommunicatorCore::wait(operation_of(requests[i]), -1, &s);  // waiting makes progress for all
      requests[i] = GCCL_REQUEST_NULL;
      if (!s.ok()) thrown.by([&] { notice_failure_of(of); });
      if (first.ok()) first = std::move(s);
    }
    thrown.rethrow();
    return failed(first);
  });
}

GCCL_Result GCCL_Test(GCCL_Request* request, int* done) {
  return guarded([&] {
    if (!request || !done) return failed(invalid(fmt::format("{} is null", request ? "done" : "request")));
    *done = *request == GCCL_REQUEST_NULL;
    if (*done) return GCCL_SUCCESS;
    Status s;
    const CommunicatorCore* const of = operation_of(*request)->communicator;
    if (!CommunicatorCore::test(operation_of(*request), &s)) return GCCL_SUCCESS;
    *done = 1;  // where it throws, the request stays
    *request = GCCL_REQUEST_NULL;
    if (!s.ok()) notice_failure_of(of);
    return failed(s);
  });
}

GCCL_Result GCCL_On_complete(GCCL_Request request, GCCL_Completion_function function, void* context) {
  return guarded([&] {
    if (request == GCCL_REQUEST_NULL || !function)
      return failed(invalid(function ? "request is GCCL_REQUEST_NULL: nothing will complete" : "function is null"));
    completions::add(operation_of(request), {function, context, call_on_complete});
    return GCCL_SUCCESS;
  });
}

GCCL_Result GCCL_Request_free(GCCL_Request* request) {
  return guarded([&] {
    if (!request) return failed(invalid("request is null: expected the address of a request"));
    if (*request == GCCL_REQUEST_NULL) return GCCL_SUCCESS;
    CommunicatorCore::give_up(operation_of(*request));
    *request = GCCL_REQUEST_NULL;
    return GCCL_SUCCESS;
  });
}

GCCL_Result GCCL_Request_abort(GCCL_Request* request, int code) {
  return guarded([&] {
    if (!request) return failed(invalid("request is null: expected the address of a request"));
    if (*request == GCCL_REQUEST_NULL) return GCCL_SUCCESS;
    abort_pending(operation_of(*request), code);
    return GCCL_Wait(request);
  });
}

GCCL_Result GCCL_Group_start(void) {
  return guarded([] {
    if (group.depth > 0) group.inner.push_back(group.operations.size());
    ++group.depth;
    return GCCL_SUCCESS;
  });
}

GCCL_Result GCCL_Group_end(void) {
  return guarded([] {
    if (group.depth == 0)
      return failed(Status::error("GCCL_Group_end without GCCL_Group_start", GCCL_ERR_INVALID_USAGE));
    if (--group.depth > 0) {
      group.inner.pop_back();
      return GCCL_SUCCESS;
    }
    group.estimated_ns.clear();
    const Status started = std::exchange(group.first, {});
    const Status ended = wait_in_turns(std::exchange(group.operations, {}));
    return failed(started.ok() ? ended : started);
  });
}

int GCCL_Group_depth(void) { return group.depth; }

GCCL_Result GCCL_Group_abort(int code) {
  return guarded([&] {
    if (group.depth == 0)
      return failed(Status::error("GCCL_Group_abort without GCCL_Group_start", GCCL_ERR_INVALID_USAGE));
    const std::size_t before = group.depth > 1 ? group.inner.back() : 0;
    for (const Operation* op : std::span(group.operations).subspan(before)) abort_pending(op, code);
    return GCCL_Group_end();
  });
}

}  // extern "C"
