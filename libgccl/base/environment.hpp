// Environment variables, the process's or a test's own. Nothing else in the library and the program asks for a variable
// (tests/layers.sh): what a function reads there, its caller can see, and a test can say.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "libgccl/base/status.hpp"

namespace gccl {

// The value of a variable; null when it is not set.
using Environment = std::function<const char*(const char* name)>;

// Any thread, as long as none changes the environment; a value stays until the program changes that variable.
Environment process_environment();
// Variables with an empty value count as not set.
Environment without_empty(const Environment& environment);

// The value of a variable; empty when it is not set.
std::string read_text(const Environment& environment, const char* name);
// Of a variable that is 0 or 1, as parse_number takes it: 00 is 0, too. `unset` where it is not set, or empty.
bool read_flag(const Environment& environment, const char* name, bool unset);
// The whole of `text` as a decimal number from min to max; else GCCL_ERR_INVALID_ARGUMENT: "NAME is "TEXT", expected a
// whole number from MIN to MAX".
Status parse_number(const std::string& name, const std::string& text, std::int64_t min, std::int64_t max,
                    std::int64_t* out);
// As parse_number where the variable is set; else *out stays and *found is false.
Status read_number(const Environment& environment, const char* name, std::int64_t min, std::int64_t max,
                   std::int64_t* out, bool* found);

}  // namespace gccl
