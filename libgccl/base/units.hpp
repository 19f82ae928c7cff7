// Sizes and times as users write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gccl {

// "64MiB", "8", "1.5 GB" to bytes, "5ms", "10us" to nanoseconds; nullopt when it is neither.
std::optional<std::uint64_t> parse_bytes(std::string_view text);
std::optional<std::int64_t> parse_nanos(std::string_view text);

// The same before they become integers, which those below these ends do.
inline constexpr double kSizesEnd = 9.2e18, kTimesEnd = 9e18;
std::optional<double> size_of_text(std::string_view text);
std::optional<double> time_of_text(std::string_view text);

}  // namespace gccl
