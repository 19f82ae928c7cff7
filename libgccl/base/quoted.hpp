// A name in an error text.
#pragma once

#include <string>
#include <string_view>

namespace gccl {

inline std::string quoted(std::string_view text) { return std::string("\"").append(text).append("\""); }

}  // namespace gccl
