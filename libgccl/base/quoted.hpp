// A name in an error text.
#pragma once

#include <string>
#include <string_view>

namespace gccl {

// On one line, whatever the name holds.
inline std::string quoted(std::string_view text) {
  std::string s = "\"";
  for (const char c : text) s += static_cast<unsigned char>(c) < ' ' || c == 127 ? '?' : c;
  return s += '"';
}

}  // namespace gccl
