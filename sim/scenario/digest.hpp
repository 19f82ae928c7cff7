// Short texts that stand for long ones.
#pragma once

#include <string>
#include <string_view>

namespace gccl::sim {

// 128 bits of a text, in hexadecimal digits; not for secrets.
std::string digest(std::string_view text);

}  // namespace gccl::sim
