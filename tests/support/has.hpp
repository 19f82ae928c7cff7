// Whether a text says something.
#pragma once

#include <string>
#include <string_view>

namespace gccl::test {

inline bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace gccl::test
