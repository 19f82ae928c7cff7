// Characters in names that would change how other text is shown.
#pragma once

#include <string>
#include <string_view>

namespace gccl {

// The bytes of the first character of `text`, UTF-8, where that is a control character or turns the direction in which
// what follows is read (Unicode's Bidi_Control, but for the three marks of right-to-left names); else 0.
inline std::size_t control_bytes(std::string_view text) {
  const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  if (text.empty()) return 0;
  if (at(0) < 0x20 || at(0) == 0x7f) return 1;
  if (at(0) == 0xc2) return at(1) >= 0x80 && at(1) < 0xa0 ? 2 : 0;
  if (at(0) != 0xe2) return 0;
  const bool turns = (at(1) == 0x80 && at(2) >= 0xaa && at(2) <= 0xae) ||  // U+202A to U+202E
                     (at(1) == 0x81 && at(2) >= 0xa6 && at(2) <= 0xa9);    // U+2066 to U+2069
  return turns ? 3 : 0;
}

// The text with `with` in place of each of them but those in `kept`.
inline std::string without_control(std::string_view text, char with, std::string_view kept = {}) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t n = kept.find(text[0]) == kept.npos ? control_bytes(text) : 0;
    out += n > 0 ? with : text[0];
    text.remove_prefix(n > 0 ? n : 1);
  }
  return out;
}

}  // namespace gccl
