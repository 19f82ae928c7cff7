#include "libgccl/base/caught.hpp"

#include <fmt/core.h>

#include <exception>
#include <new>
#include <system_error>

#include "gccl/gccl.h"

namespace gccl {
namespace {

Status sorted() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return Status::error("out of memory", GCCL_ERR_SYSTEM);  // short enough to need no memory
  } catch (const std::system_error& e) {
    return Status::error(fmt::format("the system refused: {}", e.what()), GCCL_ERR_SYSTEM);
  } catch (const CallersException& e) {
    return Status::error(e.what(), GCCL_ERR_INVALID_USAGE);
  } catch (...) {
    return Status::error(fmt::format("unexpected exception: {}", caught_text()), GCCL_ERR_INTERNAL);
  }
}

}  // namespace

Status caught() noexcept {
  try {
    return sorted();
  } catch (...) {
    return Status::error("out of memory", GCCL_ERR_SYSTEM);
  }
}

std::string caught_text() {
  try {
    throw;
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "not a std::exception";
  }
}

}  // namespace gccl
