#include "libgccl/base/environment.hpp"

#include <fmt/core.h>

#include <charconv>
#include <cstdlib>
#include <system_error>

#include "gccl/gccl.h"

namespace gccl {

Environment process_environment() {
  return [](const char* name) -> const char* { return std::getenv(name); };
}

Environment without_empty(const Environment& environment) {
  return [environment](const char* name) {
    const char* const text = environment(name);
    return text && *text ? text : nullptr;
  };
}

std::string read_text(const Environment& environment, const char* name) {
  const char* const text = environment(name);
  return text ? text : "";
}

bool read_flag(const Environment& environment, const char* name, bool unset) {
  const std::string text = read_text(environment, name);
  return text.empty() ? unset : std::atoi(text.c_str()) != 0;
}

Status parse_number(const std::string& name, const std::string& text, std::int64_t min, std::int64_t max,
                    std::int64_t* out) {
  std::int64_t number = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (text.empty() || error != std::errc() || end != last || number < min || number > max)
    return Status::error(fmt::format("{} is \"{}\", expected a whole number from {} to {}", name, text, min, max),
                         GCCL_ERR_INVALID_ARGUMENT);
  *out = number;
  return {};
}

Status read_number(const Environment& environment, const char* name, std::int64_t min, std::int64_t max,
                   std::int64_t* out, bool* found) {
  const char* text = environment(name);
  *found = text != nullptr;
  return text ? parse_number(name, text, min, max, out) : Status();
}

}  // namespace gccl
