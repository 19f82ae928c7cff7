// Texts in rooms of a fixed size, such as those that travel between ranks.
#pragma once

#include <cstring>
#include <span>
#include <string_view>

namespace gccl {

// The text and a zero; of one that does not fit as many whole words as do, and "..." behind them. Needs no memory.
// Requires room for 5 characters at least.
inline void put_shortened(std::span<char> room, std::string_view text) noexcept {
  constexpr std::string_view kMark = " ...";
  const bool fits = text.size() < room.size();
  if (!fits) {
    text = text.substr(0, room.size() - kMark.size());  // a word that ends here is followed by a space, or cut
    if (const std::size_t end = text.rfind(' '); end != text.npos) text = text.substr(0, end);
    text = text.substr(0, room.size() - 1 - kMark.size());
  }
  std::memcpy(room.data(), text.data(), text.size());
  if (!fits) std::memcpy(room.data() + text.size(), kMark.data(), kMark.size());
  room[text.size() + (fits ? 0 : kMark.size())] = 0;
}

}  // namespace gccl
