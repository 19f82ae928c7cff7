// The nearest valid name to what a user typed, for error messages.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace gccl {

// The candidate that is close to what was typed: a third of its letters off at most, or `letters` of them. Empty where
// none is.
std::string_view nearest(std::string_view typed, std::span<const std::string_view> candidates, std::size_t letters = 2);

// "; did you mean \"x\"?" where some candidate is close, else "; expected one of a, b, c": all of them (of more than 64
// the nearest), in the order given. Empty when there are no candidates.
std::string suggestion(std::string_view typed, std::span<const std::string_view> candidates);

}  // namespace gccl
