// Exceptions that must not leave the library, as results.
#pragma once

#include <exception>
#include <stdexcept>

#include "libgccl/base/status.hpp"

namespace gccl {

// One that a function of the caller's own has thrown: a reduction, or one of GCCL_On_complete.
struct CallersException : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// For a catch block: what a C function returns for the exception that is being handled. Memory that is short is
// GCCL_ERR_SYSTEM, and so is what else the system refuses; what a function of the caller's has thrown is
// GCCL_ERR_INVALID_USAGE; anything else is GCCL_ERR_INTERNAL.
Status caught() noexcept;

// In a catch block too: what the exception says.
std::string caught_text();

// The first exception that functions of the caller's own have thrown, kept until what must be done all the same is
// done.
class FirstThrown {
 public:
  template <class F>
  void by(F f) {
    try {
      f();
    } catch (...) {
      if (!first_) first_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::exception_ptr first_;
};

}  // namespace gccl
