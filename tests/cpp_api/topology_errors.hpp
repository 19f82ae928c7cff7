// What a wrong topology is refused with.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "gccl/gccl.hpp"

namespace gccl::test {

// What the call throws, or "" when it does not.
template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    CHECK(e.result() == GCCL_ERR_INVALID_ARGUMENT);
    return e.what();
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace gccl::test
