// What goes wrong in a GCCL call, as an exception.
//
// All of GCCL's C++ interface is header-only over the C functions of gccl.h and lives in namespace gccl::api, which is
// inline: users write gccl::Communicator, and nothing here shares a symbol with the library's own types in gccl, nor a
// name: a file may include both.
#pragma once

#include "gccl/cpp20.hpp"

#include <stdexcept>
#include <string>

#include "gccl/gccl.h"

namespace gccl {
inline namespace api {

// Every failure of the C++ interface: the code, and in what() which rank, operation and peer were concerned and what to
// check.
class Error : public std::runtime_error {
 public:
  Error(GCCL_Result result, const std::string& text) : std::runtime_error(text), result_(result) {}
  GCCL_Result result() const noexcept { return result_; }

 private:
  GCCL_Result result_;
};

// Throws what the last call of this thread was about, unless it succeeded.
inline void check(GCCL_Result result) {
  if (result == GCCL_SUCCESS) return;
  const std::string text = GCCL_Last_error();
  throw Error(result, text.empty() ? GCCL_Error_string(result) : text);
}

namespace api_detail {

// What does not fit, found here: without the C interface.
[[noreturn]] inline void wrong(const char* call, const std::string& what) {
  throw Error(GCCL_ERR_INVALID_ARGUMENT, std::string(call) + ": " + what);
}

}  // namespace api_detail
}  // namespace api
}  // namespace gccl
