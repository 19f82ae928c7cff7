#include "libgccl/api/last_error.hpp"

#include <utility>

namespace gccl {
namespace {

thread_local std::string last_error;

}  // namespace

void set_last_error(std::string text) { last_error = std::move(text); }

GCCL_Result failed(const Status& status) {
  if (status.ok()) return GCCL_SUCCESS;
  set_last_error(status.text());
  return GCCL_Result(status.code());
}

}  // namespace gccl

extern "C" const char* GCCL_Last_error(void) { return gccl::last_error.c_str(); }
