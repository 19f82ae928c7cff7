#include "libgccl/api/last_error.hpp"

#include <utility>

#include "libgccl/base/shortened.hpp"

namespace gccl {
namespace {

// exit() ends this thread's text before it calls the exit handlers that are older than the text, and these may call
// GCCL, too: what their calls were about is kept where nothing ends.
thread_local bool ended = false;
thread_local char late[512] = "";

struct LastError {
  std::string text;
  ~LastError() { ended = true; }
};
thread_local LastError last_error;

}  // namespace

void set_last_error(std::string text) {
  if (ended)
    put_shortened(late, text);
  else
    last_error.text = std::move(text);
}

GCCL_Result failed(const Status& status) noexcept {
  if (status.ok()) return GCCL_SUCCESS;
  try {
    set_last_error(status.text());
  } catch (...) {  // there is no memory for words
    if (ended)
      late[0] = 0;
    else
      last_error.text.clear();
  }
  return GCCL_Result(status.code());
}

}  // namespace gccl

extern "C" const char* GCCL_Last_error(void) { return gccl::ended ? gccl::late : gccl::last_error.text.c_str(); }
