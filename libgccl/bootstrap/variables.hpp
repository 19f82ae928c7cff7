// GCCL's environment variables: all there are, what they may hold, and what holds without them. docs/start.md has the
// same table with their meanings; a test compares the two.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libgccl/base/environment.hpp"

namespace gccl {

struct Variable {
  std::string_view name;
  std::string_view fallback;      // what holds without it, as docs/start.md says it
  std::int64_t min = 0, max = 0;  // of a whole number; equal: it is none
  std::string_view words = "";    // "0|1|auto": what it may be besides; with no number either: any text
  bool any_case = false;          // of those words, in whatever case
};
std::span<const Variable> variables();

// GCCL_ERR_INVALID_ARGUMENT for the first variable whose value cannot be right, with what was expected. Texts, such as
// addresses, are checked where they are used. An empty value counts as none.
Status check_values(const Environment& environment);

// The names among "NAME=VALUE" (null: there are none) that begin with GCCL_ and are no variable of GCCL's: a sentence
// for each.
std::vector<std::string> unknown_variables(const char* const* environment);

}  // namespace gccl
