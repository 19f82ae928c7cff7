// A name in an error text.
#pragma once

#include <string>
#include <string_view>

#include "libgccl/base/control_characters.hpp"

namespace gccl {

// On one line, whatever the name holds.
inline std::string quoted(std::string_view text) { return '"' + without_control(text, '?') + '"'; }

}  // namespace gccl
