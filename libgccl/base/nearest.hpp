// The nearest valid name to what a user typed, for error messages.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gccl {

// The candidate that is close to what was typed; empty where none is.
std::string_view nearest(std::string_view typed, std::span<const std::string_view> candidates);

// "; did you mean \"x\"?" where some candidate is close, else "; expected one of a, b, c": all of them (64 at most),
// the nearest first. Empty when there are no candidates.
std::string suggestion(std::string_view typed, std::span<const std::string_view> candidates);

}  // namespace gccl
