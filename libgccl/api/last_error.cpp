#include "libgccl/api/last_error.hpp"

#include <utility>

namespace gccl {
namespace {

thread_local std::string last_error;

}  // namespace

void set_last_error(std::string text) { last_error = std::move(text); }

GCCL_Result failed(const Status& status) noexcept {
  if (status.ok()) return GCCL_SUCCESS;
  try {
    set_last_error(status.text());
  } catch (...) {
    set_last_error(std::string("out of memory", 13));  // short enough to need none
  }
  return GCCL_Result(status.code());
}

}  // namespace gccl

extern "C" const char* GCCL_Last_error(void) { return gccl::last_error.c_str(); }
