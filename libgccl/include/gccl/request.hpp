// A pending operation.
#pragma once

#include "gccl/cpp20.hpp"

#include <chrono>
#include <exception>
#include <memory>
#include <utility>

#include "gccl/error.hpp"

namespace gccl {
inline namespace api {

// Its buffers must stay untouched until it is complete, so the destructor waits (and keeps an error to itself). Where
// an exception leaves its scope it aborts the operation's communicator first, as the other ranks' calls that this one
// needs may never come. detach() gives the operation up. Movable only; used by one thread at a time. An empty request
// is complete.
class [[nodiscard]] Request {
 public:
  Request() = default;
  // Takes over a request of the C interface.
  explicit Request(GCCL_Request request) noexcept : request_(request) {}
  Request(Request&& other) noexcept : request_(std::exchange(other.request_, GCCL_REQUEST_NULL)) {}
  Request& operator=(Request&& other) noexcept {
    Request old(std::exchange(request_, std::exchange(other.request_, GCCL_REQUEST_NULL)));
    return *this;
  }
  ~Request() {
    if (!request_) return;
    if (std::uncaught_exceptions() > exceptions_) {
      GCCL_Request_abort(&request_, 1);
    } else {
      GCCL_Wait(&request_);
    }
  }

  // Returns when the operation is complete; throws when it failed.
  void wait() { check(GCCL_Wait(&request_)); }
  // False when that was not enough time; the operation then goes on. A time below 0 is up already.
  bool wait_for(std::chrono::milliseconds time) {
    const GCCL_Result result = GCCL_Wait_for(&request_, time.count() < 0 ? 0 : time.count());
    if (result == GCCL_IN_PROGRESS) return false;
    check(result);
    return true;
  }
  // Makes progress; true once the operation is complete. Throws when it failed.
  bool test() {
    int done = 0;
    check(GCCL_Test(&request_, &done));
    return done != 0;
  }

  // Calls f(GCCL_Result) once the operation has ended: from a later call that makes progress or from the progress
  // thread, never from inside this one. f may start operations but must not wait. wait() returns, and test() gives
  // true, after f has returned; what f throws is an Error of theirs (GCCL_ERR_INVALID_USAGE). Several may be added;
  // they run in the order in which they were added. On an empty request: GCCL_ERR_INVALID_ARGUMENT.
  template <class F>
  Request& then(F f) & {
    auto function = std::make_unique<F>(std::move(f));
    check(GCCL_On_complete(request_, &run<F>, function.get()));
    function.release();  // run() owns it now
    return *this;
  }
  template <class F>
  Request&& then(F f) && {
    then(std::move(f));
    return std::move(*this);
  }

  // Gives up the handle: the operation goes on, and its buffers must stay for as long as its communicator does.
  void detach() { check(GCCL_Request_free(&request_)); }

  bool empty() const noexcept { return request_ == GCCL_REQUEST_NULL; }
  GCCL_Request get() const noexcept { return request_; }

 private:
  template <class F>
  static void run(GCCL_Result result, void* context) {
    const std::unique_ptr<F> f(static_cast<F*>(context));
    (*f)(result);
  }

  GCCL_Request request_ = GCCL_REQUEST_NULL;
  int exceptions_ = std::uncaught_exceptions();  // in flight when this object was made
};

// Waits for all; throws the first error, after all have ended.
template <class Requests>
void wait_all(Requests&& requests) {
  std::exception_ptr first;
  for (Request& r : requests) try {
      r.wait();
    } catch (const Error&) {
      if (!first) first = std::current_exception();
    }
  if (first) std::rethrow_exception(first);
}

// Blocking calls that f makes only begin; all of them are then carried out together. For a thread that drives several
// ranks, and for sends and receives in any order. What they were given must last until then: temporaries are an Error
// (GCCL_ERR_INVALID_USAGE), but for views (std::ranges::borrowed_range). Variables of f's own are gone by then, as may
// be what views look at: that is not noticed. Where f throws, the communicators of the calls that it has begun are
// aborted, and the exception is thrown on.
template <class F>
void grouped(F f) {
  check(GCCL_Group_start());
  try {
    f();
  } catch (...) {
    GCCL_Group_abort(1);
    throw;
  }
  check(GCCL_Group_end());
}

}  // namespace api
}  // namespace gccl
