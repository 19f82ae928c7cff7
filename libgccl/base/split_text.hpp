// Lists in texts, such as "shm,tcp".
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace gccl {

// The parts between the separators; empty ones are left out.
inline std::vector<std::string> split_text(const std::string& text, char by) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(by, at), text.size());
    if (end > at) parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// Without the spaces around it.
inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace gccl
